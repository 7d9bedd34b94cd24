"""Anybody's SQL on the history: read-only, and without a way out of it."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragscore.errors import UsageError
from ragscore.history import values
from ragscore.history.connection import LOCK_TIMEOUT_S, damaged, first_line, reading

if TYPE_CHECKING:
    import duckdb

# No files, no network, no variables of this process; and no SQL that takes it back.
_CLOSED = (
    "SET python_enable_replacements = false",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)
_ZONED = "TIMESTAMP WITH TIME ZONE"


@dataclass(frozen=True, slots=True)
class Selection:
    """What a query gave: names and DuckDB types of its columns, and its rows as Python values (times in UTC)."""

    columns: tuple[str, ...]
    types: tuple[str, ...]
    rows: list[tuple[Any, ...]]


def select(
    path: Path,
    sql: str,
    params: Sequence[Any] = (),
    *,
    allow_external: bool = False,
    lock_timeout_s: float = LOCK_TIMEOUT_S,
) -> Selection:
    """Run SQL on the history at `path`, which it cannot change.

    Args:
        path: The history file.
        sql: One statement, or several of which the last gives the rows; in that, `?` or `$1` stand for `params`.
        params: The values for them.
        allow_external: Let the SQL read and write other files. The history stays read-only.
        lock_timeout_s: How long to wait for a process that writes, in seconds.

    Raises:
        UsageError: There is no history, or DuckDB refuses the statement; the message is DuckDB's first line.
        HistoryLocked, HistoryTooNew, HistoryUnreadable: As for every reading.
    """
    with _ready(path, sql, allow_external, lock_timeout_s) as (connection, last):
        return _selected(connection, last, list(params))


def save(
    path: Path, sql: str, file: Path, *, allow_external: bool = False, lock_timeout_s: float = LOCK_TIMEOUT_S
) -> int:
    """Run SQL as `select` does, and write its rows to a Parquet file, replaced when it is there; the number of rows.

    Raises:
        UsageError: As `select`; also when the last statement gives no rows, or the file cannot be written.
    """
    quoted = str(file.resolve()).replace("'", "''")
    with _ready(path, sql, allow_external, lock_timeout_s, writes=quoted) as (connection, last):
        found = connection.execute(
            f"COPY (\n{last}\n) TO '{quoted}' (FORMAT parquet, COMPRESSION zstd, USE_TMP_FILE false)"
        ).fetchone()
    return int(found[0]) if found else 0


@contextmanager
def _ready(
    path: Path, sql: str, allow_external: bool, lock_timeout_s: float, *, writes: str | None = None
) -> Iterator[tuple[duckdb.DuckDBPyConnection, str]]:
    """A connection on which all statements but the last have been run, and the last; refusals are explained."""
    import duckdb

    with reading(path, lock_timeout_s=lock_timeout_s) as connection:
        if writes is not None:
            connection.execute(f"SET allowed_paths = ['{writes}']")
        if not allow_external and not _is_closed(connection):
            for setting in _CLOSED:
                connection.execute(setting)
        try:
            statements = connection.extract_statements(sql)
            if not statements:
                raise UsageError("there is no SQL to run", mend='for example "select * from score_history"')
            for statement in statements[:-1]:
                connection.execute(statement)
            yield connection, statements[-1].query.strip().rstrip(";")
        except duckdb.Error as error:
            if damaged(error):
                raise
            raise UsageError(first_line(error), mend=_hint(error)) from error


def _is_closed(connection: duckdb.DuckDBPyConnection) -> bool:
    """Whether that was done before: a connection that `one_state` holds answers several questions."""
    found = connection.execute("SELECT current_setting('lock_configuration')").fetchone()
    return found is not None and bool(found[0])


def _selected(connection: duckdb.DuckDBPyConnection, sql: str, params: list[Any]) -> Selection:
    connection.execute(sql, params)
    described = connection.description or []
    columns = tuple(str(column[0]) for column in described)
    types = tuple(str(column[1]) for column in described)
    zoned = {place for place, kind in enumerate(types) if kind == _ZONED}
    if not zoned or _hands_out_zoned_times():
        return Selection(columns, types, connection.fetchall() if described else [])
    picked = ", ".join(f"epoch_us(#{place + 1})" if place in zoned else f"#{place + 1}" for place in range(len(types)))
    found = connection.execute(f"SELECT {picked} FROM (\n{sql}\n)", params).fetchall()
    rows = [
        tuple(values.from_micros(value) if place in zoned else value for place, value in enumerate(row))
        for row in found
    ]
    return Selection(columns, types, rows)


def _hands_out_zoned_times() -> bool:
    # DuckDB 1.x makes zoned times with pytz, which nothing else here needs.
    import duckdb

    return int(duckdb.__version__.split(".")[0]) >= 2 or importlib.util.find_spec("pytz") is not None


def _hint(error: Exception) -> str | None:
    hints = ("Candidate bindings", "Did you mean", "Candidate Entries")
    return next((line.strip() for line in str(error).split("\n")[1:] if line.strip().startswith(hints)), None)
