"""A DuckDB connection for reading files: nothing guessed, nothing downloaded, order kept."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ragscore.errors import DatasetError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

REMOTE = re.compile(r"^(https?|s3|s3a|s3n|gcs|gs|r2|hf|az|azure|abfss)://", re.IGNORECASE)


@contextmanager
def connected(*, base_dir: Path | None = None) -> Iterator[DuckDBPyConnection]:
    """A connection in memory, closed at the end; relative paths in SQL are relative to `base_dir`."""
    import duckdb

    # Without these DuckDB would fetch an extension from the network, which nobody asked for.
    settings: dict[str, str | bool | int | float | list[str]] = {
        "autoinstall_known_extensions": "false",
        "preserve_insertion_order": "true",
    }
    with duckdb.connect(config=settings) as connection:
        if base_dir is not None:
            connection.execute(f"SET file_search_path = {text(str(base_dir))}")
        yield connection


@contextmanager
def explained(where: str, *, mend: str = "check the file", what: str = "cannot be read") -> Iterator[None]:
    """Turns what DuckDB says into a DatasetError about `where`; `what` comes before it.

    Raises:
        DatasetError: instead of any error of DuckDB.
    """
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        raise said_by_duckdb(error, where, mend=mend, what=what) from None


def said_by_duckdb(
    error: Exception, where: str, *, mend: str = "check the file", what: str = "cannot be read"
) -> DatasetError:
    """The sentence for an error of DuckDB: its first line, or what to do about a missing extension."""
    said = str(error)
    lacking = re.search(r"[Ee]xtension \"?'?(\w+)", said)
    if lacking is not None and re.search(r"not found|install|LOAD|load", said):
        name = lacking[1]
        needed = f"DuckDB's extension {name}, which reads this, is not installed"
        return DatasetError(
            needed, where=where, mend=f"run `INSTALL {name}` in DuckDB where there is a network, or copy the data here"
        )
    first = re.sub(r"^(\w+ )*Error: ", "", said.strip().splitlines()[0]) if said.strip() else type(error).__name__
    return DatasetError(f"{what}: {first}", where=where, mend=mend)


def text(value: str) -> str:
    """`value` as a SQL string literal."""
    return "'" + value.replace("'", "''") + "'"


def name(value: str) -> str:
    """`value` as a quoted SQL name."""
    return '"' + value.replace('"', '""') + '"'


def texts(values: list[str]) -> str:
    """`values` as a SQL list of string literals."""
    return "[" + ", ".join(map(text, values)) + "]"
