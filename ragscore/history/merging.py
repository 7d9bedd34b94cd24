"""Several histories as one: what another file holds and this one does not is copied; nothing is overwritten."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ragscore.errors import HistoryLocked, UsageError
from ragscore.history import measurements, runs, schema
from ragscore.history.audit import settle
from ragscore.history.connection import opened, reading, writing
from ragscore.history.inbox import PARENTS
from ragscore.history.store import History
from ragscore.history.tables import TABLES, mark_superseded

if TYPE_CHECKING:
    import duckdb


@dataclass(frozen=True, slots=True)
class Merged:
    """What came from one other history: runs that were not known here, runs of which something was, rows by table."""

    path: Path
    new_runs: tuple[str, ...]
    known_runs: tuple[str, ...]
    rows: Mapping[str, int]


def merge(history: History, other: Path) -> Merged:
    """Copy what `other` holds and `history` does not. Doing it again changes nothing; `other` is not changed.

    Of a cell (run, item, attempt and scorer or context set) that both hold, the one that is here stays, whole.

    Raises:
        UsageError: `other` is not there, or is this very history.
        HistoryError: One of the two cannot be used.
    """
    if other.resolve() == history.path.resolve():
        raise UsageError("is the history that is merged into", where=str(other), mend="name another file")
    with _up_to_date(other, history.lock_timeout_s) as source:
        with reading(source, lock_timeout_s=history.lock_timeout_s) as connection:
            theirs = runs.listed(connection)
        with writing(history.path, lock_timeout_s=history.lock_timeout_s) as connection:
            known = tuple(row.run_id for row in theirs if runs.find(connection, row.run_id) is not None)
            _attach(connection, source)
            for row in theirs:
                runs.adopt(connection, row)
            counts = _copied(connection, list(known))
            changed = [row.run_id for row in theirs]
            mark_superseded(connection, changed)
            for run_id in changed:
                settle(connection, run_id)
    fresh = tuple(row.run_id for row in theirs if row.run_id not in known)
    return Merged(other, fresh, known, counts)


@contextmanager
def _up_to_date(other: Path, lock_timeout_s: float) -> Iterator[Path]:
    """`other`, or a migrated copy of it when it is of an older schema: somebody's artefact is not changed."""
    if not other.exists():
        raise UsageError("there is no history here", where=str(other))
    with opened(other, lock_timeout_s=lock_timeout_s) as connection:
        number = schema.number_of(connection, other)
        is_current = number == schema.newest()
        if is_current:
            copy = None
        else:
            folder = tempfile.TemporaryDirectory(prefix="ragscore-")
            copy = Path(folder.name) / other.name
            # Held for reading, so that nobody writes meanwhile.
            for ending in ("", ".wal"):
                if (part := other.with_name(other.name + ending)).exists():
                    shutil.copyfile(part, copy.with_name(copy.name + ending))
    if copy is None:
        yield other
        return
    with folder:
        yield copy


def _attach(connection: duckdb.DuckDBPyConnection, source: Path) -> None:
    import duckdb

    quoted = str(source).replace("'", "''")
    try:
        connection.execute(f"ATTACH '{quoted}' AS other (READ_ONLY)")
    except duckdb.IOException as error:
        if "lock" in str(error):
            raise HistoryLocked("is being written", where=str(source), mend="try again later") from error
        raise


def _copied(connection: duckdb.DuckDBPyConnection, known: list[str]) -> dict[str, int]:
    tables = (*TABLES, *measurements.KEYS)
    before = {table: _count(connection, table) for table in tables}
    for parent, children in PARENTS.items():
        cell = TABLES[parent].cell
        picked = ", ".join(cell)
        connection.execute(f"CREATE OR REPLACE TEMP TABLE news AS SELECT DISTINCT {picked} FROM other.{parent}")
        # Runs that are not known here at all need no search.
        present = f"SELECT DISTINCT {picked} FROM {parent} WHERE run_id IN (SELECT unnest(?))"
        connection.execute(
            f"DELETE FROM news USING ({present}) AS present WHERE {_same(cell, 'news', 'present')}", [known]
        )
        if parent == "context_sets":  # contexts of a response that is not resolved here make way for those that are
            connection.execute(f"DELETE FROM contexts USING news WHERE {_same(cell, 'contexts', 'news')}")
        _insert(connection, parent, cell)
        for child in children:
            if TABLES[child].is_of_a_run:
                _insert(connection, child, cell, own=True)
    connection.execute("DROP TABLE news")
    _insert_missing(connection, "claims", ("claim_set",), list(TABLES["claims"].columns))
    for table, key in measurements.KEYS.items():
        _insert_missing(connection, table, key, measurements.columns_of(connection, table))
    return {table: _count(connection, table) - before[table] for table in tables}


def _insert(connection: duckdb.DuckDBPyConnection, table: str, of: tuple[str, ...], *, own: bool = False) -> None:
    """Copy the rows of `table` whose columns `of` are in the table `news`; with `own`, no cell that is here already."""
    columns, cell = ", ".join(TABLES[table].columns), TABLES[table].cell
    absent = f"ANTI JOIN {table} AS present ON {_same(cell, 'theirs', 'present')}" if own else ""
    connection.execute(
        f"INSERT INTO {table} ({columns}) SELECT {columns} FROM other.{table} AS theirs"
        f" SEMI JOIN news ON {_same(of, 'theirs', 'news')} {absent}"
    )


def _insert_missing(
    connection: duckdb.DuckDBPyConnection, table: str, key: tuple[str, ...], columns: list[str]
) -> None:
    quoted = ", ".join(f'"{name}"' for name in columns)
    connection.execute(
        f"INSERT INTO {table} ({quoted}) SELECT {quoted} FROM other.{table} AS theirs"
        f" ANTI JOIN {table} AS present ON {_same(key, 'theirs', 'present')}"
    )


def _same(names: tuple[str, ...], left: str, right: str) -> str:
    return " AND ".join(f"{left}.{name} = {right}.{name}" for name in names)


def _count(connection: duckdb.DuckDBPyConnection, table: str) -> int:
    found = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
    return int(found[0]) if found else 0
