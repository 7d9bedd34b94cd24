"""What is scored, and how."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from ragscore import expressions, plugins, scorer_kinds
from ragscore.suite_parts.contexts import ContextsPart
from ragscore.suite_parts.part import Part, bare

Against = Literal["auto", "reference", "output"]


ScorerKind = Literal[
    "context_recall",
    "context_precision",
    "context_relevance",
    "context_utilization",
    "context_entities_recall",
    "noise_sensitivity",
    "faithfulness",
    "hallucination",
    "answer_relevancy",
    "answer_similarity",
    "answer_correctness",
    "precision_at_k",
    "recall_at_k",
    "hit_rate",
    "mrr",
    "average_precision",
    "ndcg_at_k",
    "python",
    "prompt",
    "plugin",
]


class ScorerPart(Part):
    """One scorer. In YAML a name alone, or `{context_precision: {scale: 10, name: precision10}}`."""

    kind: ScorerKind
    name: str = Field(min_length=1)
    scale: float = Field(default=1.0, gt=0, allow_inf_nan=False, description="The score of a perfect item.")
    against: Against = Field(default="auto", description="context_precision: the expected answer.")
    contexts: Annotated[ContextsPart, bare("path")] | None = None
    k: int | None = Field(default=None, ge=1, description="Rank metrics: how many ranks are looked at; else all.")
    measure: Literal["f1", "precision", "recall"] | None = Field(
        default=None, description="answer_similarity (f1), answer_correctness (precision): which of them."
    )
    unsure: float | None = Field(default=None, ge=0, le=1, description="answer_relevancy: an uncertain claim; 0.3.")
    weights: dict[Literal["high", "medium", "low", "none"], float] | None = Field(
        default=None, description="context_relevance: what a grade counts; high 1, medium 0.7, low 0.3, none 0."
    )
    unused: float | None = Field(
        default=None, ge=0, le=1, description="context_relevance: off per unused context of grade high; 0.1."
    )
    missing: float | None = Field(
        default=None, ge=0, le=1, description="context_relevance: off per missing claim; 0.15."
    )
    most_missing: float | None = Field(
        default=None, ge=0, le=1, description="context_relevance: off for missing claims at most; 0.5."
    )
    call: str | None = Field(
        default=None, min_length=1, description="python: module:name of a function or class; plugin: its name."
    )
    options: dict[str, Any] | None = Field(default=None, description="python, plugin: what the class is made with.")
    question: str | None = Field(default=None, min_length=1, description="prompt: what the judge is asked.")
    reply: dict[str, Literal["boolean", "number", "text"]] | None = Field(
        default=None, min_length=1, description="prompt: the fields of the judge's reply and their kinds."
    )
    score: str | None = Field(
        default=None, min_length=1, description="prompt: the score by the fields; an expression of Jinja2."
    )

    @model_validator(mode="before")
    @classmethod
    def _short_forms(cls, value: Any) -> Any:
        return _spelt_out(value)

    @property
    def brings_its_scale(self) -> bool:
        """Whether the scale is that of the user's function or class, since the suite names none."""
        return self.kind in ("python", "plugin") and "scale" not in self.model_fields_set

    def as_written(self, written: Any) -> dict[str, Any]:
        """This scorer as JSON, its options as they stand in the suite document, with `${VAR}` unresolved.

        Args:
            written: The entry of the document's `scorers` that this part was made of.
        """
        spelt_out = _spelt_out(written)
        options = spelt_out.get("options") if isinstance(spelt_out, dict) else None
        part = self if self.options is None or options is None else self.model_copy(update={"options": options})
        return part.model_dump(mode="json", exclude_none=True)

    @model_validator(mode="after")
    def _options_are_of_the_kind(self) -> ScorerPart:
        known = scorer_kinds.OPTIONS[self.kind]
        if self.kind == "context_recall" and self.against != "auto":
            raise ValueError("`against` is an option of context_precision; recall is always against the reference")
        for name in sorted(self.model_fields_set - known - scorer_kinds.COMMON):
            if getattr(self, name) != type(self).model_fields[name].default:
                here = ", ".join(sorted(known | (scorer_kinds.COMMON - {"kind"})))
                raise ValueError(f"`{name}` is no option of {self.kind}; known here: {here}")
        needed = {"python": ("call",), "plugin": ("call",), "prompt": ("question", "reply", "score")}
        for name in needed.get(self.kind, ()):
            if getattr(self, name) is None:
                raise ValueError(f"a scorer of kind {self.kind} needs `{name}`")
        if self.kind == "python" and not re.fullmatch(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*", self.call or ""):
            raise ValueError(f"{self.call!r} is not of the form module:name; write e.g. my_scorers:cites_a_source")
        if self.score is not None and (fault := expressions.formula_fault(self.score, self.reply or {})) is not None:
            raise ValueError(fault)
        if self.weights is not None and not all(0 <= each <= 1 for each in self.weights.values()):
            raise ValueError("a weight is a number in 0..1")
        return self


def _spelt_out(value: Any) -> Any:
    """The fields of a scorer, whichever way it is written."""
    if isinstance(value, str):
        return _of_package(value, {}) or {"kind": value, "name": value}
    if not isinstance(value, dict):
        return value
    if "kind" in value:
        return {"name": value["kind"], **value}
    if len(value) != 1:
        raise ValueError("a scorer is one kind; indent options under it, or write {context_recall: {scale: 10}}")
    kind, options = next(iter(value.items()))
    if options is None:
        options = {}
    if kind == "python" and isinstance(options, str):
        options = {"call": options}
    if not isinstance(options, dict):
        raise ValueError(f"the options of {kind} are no mapping; write {{{kind}: {{scale: 10}}}}")
    if (of_package := _of_package(kind, options)) is not None:
        return of_package
    name = str(options.get("call", kind)).rpartition(":")[2] if kind == "python" else kind
    return {"kind": kind, "name": name, **options}


def _of_package(kind: Any, options: dict[str, Any]) -> dict[str, Any] | None:
    """The scorer that an installed package offers under that name; None for kinds of our own and unknown ones."""
    if not isinstance(kind, str) or kind in scorer_kinds.OPTIONS or kind not in plugins.offered("scorers"):
        return None
    common: dict[str, Any] = {key: options[key] for key in ("name", "scale", "contexts") if key in options}
    rest = {key: value for key, value in options.items() if key not in common}
    return {"kind": "plugin", "name": kind, "call": kind, **common, **({"options": rest} if rest else {})}
