"""The history, or one run of it, as files: one per table for other tools, or one batch for another history."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ragscore.errors import HistoryError, UsageError
from ragscore.history import inbox, measurements, runs
from ragscore.history.connection import reading
from ragscore.history.inbox import PARENTS, Waiting
from ragscore.history.store import History
from ragscore.history.tables import TABLES, Row, Rows

if TYPE_CHECKING:
    import duckdb

Format = Literal["parquet", "csv", "jsonl"]
_OPTIONS: Mapping[str, str] = {
    "parquet": "FORMAT parquet, COMPRESSION zstd",
    "csv": "FORMAT csv, HEADER",
    "jsonl": "FORMAT json",
}


def export(history: History, folder: Path, *, format: Format = "parquet", run: str | None = None) -> dict[str, int]:
    """Write every table to `folder`, as `scores.parquet` and so on; the columns are those of docs/sql.md.

    Args:
        history: Where it comes from.
        folder: Made; it must not be there, or be empty. It appears in one step, whole.
        format: In CSV, lists and JSON columns are JSON text; an empty cell is NULL, "" the empty text.
        run: Only the rows of this run (its id, a beginning, or `last`).

    Returns:
        The number of rows by table.

    Raises:
        UsageError: `folder` is there and not empty, or there is no such run.
        HistoryError: It cannot be written.
    """
    import duckdb

    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError("is there already", where=str(folder), mend="name a folder that is not there, or empty it")
    new = folder.with_name(f".{folder.name}.{os.getpid()}-{secrets.token_hex(3)}.new")
    counts: dict[str, int] = {}
    try:
        with reading(history.path, lock_timeout_s=history.lock_timeout_s) as connection:
            run_id = None if run is None else runs.resolve(connection, run).run_id
            new.mkdir(parents=True)
            for table in (*TABLES, "runs", *measurements.KEYS):
                if (query := _query(connection, table, run_id, format)) is None:
                    continue
                file = str(new / f"{table}.{format}").replace("'", "''")
                try:
                    found = connection.execute(f"COPY ({query}) TO '{file}' ({_OPTIONS[format]})").fetchone()
                except duckdb.IOException as error:
                    said = str(error).splitlines()[0]
                    raise HistoryError(f"could not be written: {said}", where=str(folder), mend="make room") from error
                counts[table] = int(found[0]) if found else 0
        if folder.exists():
            folder.rmdir()
        new.rename(folder)
    except OSError as error:
        raise HistoryError(f"could not be written: {error.strerror}", where=str(folder)) from error
    finally:
        shutil.rmtree(new, ignore_errors=True)
    return counts


def export_batch(history: History, run: str, folder: Path) -> Path:
    """Leave one run in an inbox, for `ingest` on another host; gives the file.

    Raises:
        UsageError: There is no such run, or it is still in progress.
        HistoryError: The inbox cannot be written.
    """
    with reading(history.path, lock_timeout_s=history.lock_timeout_s) as connection:
        row = runs.resolve(connection, run)
        if row.status == runs.RUNNING:
            raise UsageError(f"run {row.run_id} is not at its end", mend=f"`ragscore resume {row.run_id}` first")
        resolved = "(item_id, context_set, attempt) IN (SELECT (item_id, context_set, attempt) FROM context_sets"
        resolved += " WHERE run_id = $1)"
        more = {("items", "contexts"): f"AND NOT {resolved}", ("context_sets", "contexts"): f"AND {resolved}"}
        rows: dict[str, Rows] = {}
        for parent, children in PARENTS.items():
            rows[parent] = {
                table: _rows(connection, table, row.run_id, more.get((parent, table), ""))
                for table in (parent, *children)
            }
    return inbox.leave(folder, Waiting(row, rows))


def _query(connection: duckdb.DuckDBPyConnection, table: str, run_id: str | None, format: Format) -> str | None:
    types = dict(
        connection.execute(
            "SELECT column_name, data_type FROM duckdb_columns()"
            " WHERE database_name = current_database() AND table_name = ? ORDER BY column_index",
            [table],
        ).fetchall()
    )
    picked = ", ".join(
        f'to_json("{name}")::VARCHAR AS "{name}"' if format == "csv" and kind.endswith("[]") else f'"{name}"'
        for name, kind in types.items()
    )
    if run_id is None:
        return f"SELECT {picked} FROM {table}"
    quoted = run_id.replace("'", "''")
    if table == "claims":
        return f"SELECT {picked} FROM claims WHERE {_CLAIMS_OF_A_RUN}".replace("$1", f"'{quoted}'")
    return f"SELECT {picked} FROM {table} WHERE run_id = '{quoted}'" if "run_id" in types else None


_CLAIMS_OF_A_RUN = "claim_set IN (SELECT claim_set FROM scores WHERE run_id = $1)"


def _rows(connection: duckdb.DuckDBPyConnection, table: str, run_id: str, more: str) -> list[Row]:
    """Rows of a table as `tables` takes them: JSON and times as text."""
    columns = TABLES[table].columns
    picked = ", ".join(
        f"{name}::VARCHAR" if kind in ("JSON", "TIMESTAMPTZ") else name for name, kind in columns.items()
    )
    where = _CLAIMS_OF_A_RUN if table == "claims" else f"run_id = $1 {more}"
    return connection.execute(f"SELECT {picked} FROM {table} WHERE {where}", [run_id]).fetchall()
