"""Where the labelled questions come from."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import Field, model_validator

from ragscore.addresses import without_secrets
from ragscore.suite_parts.part import Part
from ragscore.suite_parts.plugin import Plugin

ItemField = Literal[
    "id",
    "input",
    "reference",
    "reference_context_ids",
    "contexts",
    "context_ids",
    "output",
    "claims",
    "answerable",
    "metadata",
    "tags",
    "relevance",
]


class DatasetPart(Part):
    """Where the labelled questions are. Paths are relative to the suite file."""

    path: str | None = Field(
        default=None,
        min_length=1,
        description="File, pattern (*), folder (BEIR, Hugging Face), DuckDB database, or address (http, s3).",
    )
    python: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_][\w.]*$",
        description="module:callable that yields rows; called without arguments.",
    )
    plugin: Plugin | None = Field(
        default=None, description="A reader that an installed package offers; it is given `path` where there is one."
    )
    sql: str | None = Field(
        default=None, min_length=1, description="A SELECT over files, over `path` as `data`, or over a database."
    )
    format: Literal["jsonl", "json", "csv", "tsv", "parquet", "arrow", "duckdb", "run", "qrels"] | None = Field(
        default=None, description="The kind of the files, where their names do not say it."
    )
    columns: dict[ItemField, str] = Field(
        default_factory=dict, description="Field: column, where a column has another name. Dots lead into objects."
    )
    where: str | None = Field(default=None, min_length=1, description="A SQL condition over the columns of the rows.")
    sample: int | None = Field(default=None, ge=1, description="So many rows, chosen by `seed`.")
    seed: int = Field(default=0, description="Another seed makes another choice.")
    limit: int | None = Field(default=None, ge=1, description="So many rows, from the beginning.")
    split: str | None = Field(default=None, min_length=1, description="Which split of a folder.")
    references: Literal["alternatives"] | None = Field(
        default=None, description="`alternatives`: a reference may be a list of texts, any of which is right."
    )
    queries: str | None = Field(default=None, min_length=1, description="Queries (BEIR JSONL, or TSV) of a collection.")
    qrels: str | None = Field(default=None, min_length=1, description="Graded judgements (BEIR TSV, or TREC).")
    run: str | None = Field(default=None, min_length=1, description="A TREC run; its documents become the contexts.")
    corpus: str | None = Field(default=None, min_length=1, description="Texts of a run's documents (BEIR JSONL).")

    @model_validator(mode="after")
    def _one_source(self) -> DatasetPart:
        collection = any((self.queries, self.qrels, self.run))
        if self.plugin is not None:
            beside = [name for name in ("python", "sql", "format", "split") if getattr(self, name) is not None]
            if collection or beside:
                raise ValueError("`plugin` reads the rows itself; name no other source or format beside it than `path`")
            return self
        if self.path is None and self.python is None and self.sql is None and not collection:
            raise ValueError("name a source: path, python, sql or plugin")
        if self.python is not None and (self.path is not None or self.sql is not None or collection):
            raise ValueError("`python` yields the rows itself; name no other source beside it")
        if self.sql is not None and collection:
            raise ValueError("`sql` cannot be used with queries, qrels or run")
        return self

    @property
    def described(self) -> str:
        """The dataset as it is named in the history; of an address without user, password and query."""
        if self.python is not None:
            return f"python:{self.python}"
        if self.path is not None:
            return without_secrets(self.path) if "://" in self.path else self.path
        if self.sql is not None:
            folded = " ".join(self.sql.split())
            return f"sql:{folded}" if len(folded) <= 80 else f"sql:{folded[:79]}…"
        if self.plugin is not None:
            return f"plugin:{self.plugin.name}"
        return self.run or self.qrels or self.queries or ""

    @property
    def beside(self) -> str:
        """The path that what belongs to the dataset (its claims) stands beside, whether or not there is such a file."""
        path = self.path or self.queries or self.qrels or self.run
        if path is not None and "://" not in path:
            return re.sub(r"[*?\[\]]", "_", path)
        name = path.rpartition("/")[2] if path else self.described
        return re.sub(r"[^\w.-]+", "-", name).strip("-")[:60] or "dataset"
