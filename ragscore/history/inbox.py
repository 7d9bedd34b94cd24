"""The inbox beside a history: batches that could not be written because others held the file, kept until it is free.

A batch is one Parquet file with one row per row of a table: `place` (the table) and `row` (its columns as JSON text,
as `tables` writes them). It holds the row of its run too, so that any history can take it in. It appears under its
name in one step; whoever writes to the history next takes it in and removes it. Taking a batch in twice changes
nothing.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ragscore.errors import HistoryError, UsageError
from ragscore.history import runs, values
from ragscore.history.runs import RunRow
from ragscore.history.tables import TABLES, Row, Rows, append_new, missing

if TYPE_CHECKING:
    import duckdb

ENDING = ".batch.parquet"
#: Which table of a batch decides what of it is new (see `append_new`), in the order in which parts are taken in.
PARENTS: Mapping[str, tuple[str, ...]] = {
    "items": ("contexts",),
    "context_sets": ("contexts",),
    "scores": ("verdicts", "judge_calls", "claims"),
}
_RUN, _DISPLACED = "runs", "displaced"
_LOG = logging.getLogger("ragscore.history")


@dataclass(frozen=True, slots=True)
class Waiting:
    """One batch: the run it is of, as it stood then (its end too), and rows by their parent table.

    Attributes:
        displaced: Cells of the table `contexts` that make way for other rows of the same cell.
    """

    run: RunRow
    rows: Mapping[str, Rows]
    displaced: Sequence[Row] = ()


def folder_of(path: Path) -> Path:
    """The inbox of the history at `path`."""
    return path.with_name(path.name + ".inbox")


def waiting(folder: Path) -> list[Path]:
    """The batches in an inbox, oldest first; none when there is no such folder."""
    try:
        return sorted(each for each in folder.iterdir() if each.name.endswith(ENDING))
    except (FileNotFoundError, NotADirectoryError):
        return []


def leave(folder: Path, batch: Waiting) -> Path:
    """Write a batch to the inbox `folder`, which is made if need be.

    Raises:
        HistoryError: That cannot be done either.
    """
    lines = [(_RUN, json.dumps(batch.run.as_stored(), ensure_ascii=False, default=str))]
    for parent, rows in batch.rows.items():
        for table, offered in rows.items():
            names = list(TABLES[table].columns)
            lines += [
                (f"{parent}/{table}", json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False, default=str))
                for row in offered
            ]
    lines += [(_DISPLACED, json.dumps(list(cell))) for cell in batch.displaced]
    name = f"{values.now():%Y%m%dT%H%M%S.%f}-{os.getpid()}-{secrets.token_hex(3)}"
    return write(folder, name, lines)


def write(folder: Path, name: str, lines: Sequence[tuple[str, str]]) -> Path:
    """Put `lines` (place, row) into one Parquet file that appears in one step."""
    import duckdb

    new, done = folder / f".{name}.new", folder / (name + ENDING)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with duckdb.connect(":memory:") as connection:
            connection.execute(
                'COPY (SELECT line.place, line."row" FROM (SELECT unnest(from_json(?, '
                '\'[{"place":"VARCHAR","row":"VARCHAR"}]\')) AS line)) '
                f"TO '{_quoted(new)}' (FORMAT parquet, COMPRESSION zstd)",
                [json.dumps([{"place": place, "row": row} for place, row in lines], ensure_ascii=False)],
            )
        with new.open("rb") as file:
            os.fsync(file.fileno())
        new.rename(done)
    except (duckdb.Error, OSError) as error:
        with contextlib.suppress(OSError):
            new.unlink()
        raise HistoryError(f"a batch could not be left here: {error}", where=str(folder), mend="make room") from error
    return done


def read(file: Path) -> Waiting:
    """One batch of an inbox.

    Raises:
        UsageError: The file is no batch of ragscore, or it is damaged.
    """
    import duckdb

    try:
        with duckdb.connect(":memory:") as connection:
            lines = connection.execute(f"SELECT place, \"row\" FROM read_parquet('{_quoted(file)}')").fetchall()
        return _understood(lines)
    except (duckdb.Error, ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"is not a batch of ragscore, or damaged: {str(error).splitlines()[0]}",
            where=str(file),
            mend="move it out of the inbox",
        ) from error


def _understood(lines: Sequence[tuple[str, str]]) -> Waiting:
    run: RunRow | None = None
    rows: dict[str, Rows] = {}
    displaced: list[Row] = []
    for place, text in lines:
        row = json.loads(text)
        if place == _RUN:
            run = RunRow.from_stored(row)
        elif place == _DISPLACED:
            displaced.append(tuple(row))
        else:
            parent, table = place.split("/")
            if table != parent and table not in PARENTS[parent]:
                raise ValueError(f"rows of {table} under {parent}")
            # By name: a batch of an older ragscore lacks a column, which is NULL then.
            rows.setdefault(parent, {}).setdefault(table, []).append(tuple(row.get(n) for n in TABLES[table].columns))
    if run is None:
        raise ValueError("it does not say of which run it is")
    return Waiting(run, rows, displaced)


def take_in(connection: duckdb.DuckDBPyConnection, batch: Waiting) -> int:
    """Write what is new of a batch, within the transaction of `connection`; how many rows of parent tables that was."""
    runs.adopt(connection, batch.run)
    new = 0
    for parent, children in PARENTS.items():
        rows = batch.rows.get(parent)
        if not rows:
            continue
        if parent == "context_sets":
            make_way(connection, batch.displaced)
        whole: Rows = {parent: rows.get(parent, [])}
        whole |= {child: rows.get(child, []) for child in children}
        new += len(append_new(connection, whole, parent=parent))
    return new


def make_way(connection: duckdb.DuckDBPyConnection, cells: Sequence[Row]) -> None:
    """Take out the contexts of these cells (run, item, set, attempt), where their set is not resolved yet."""
    for cell in missing(connection, "context_sets", cells):
        connection.execute(
            "DELETE FROM contexts WHERE run_id = ? AND item_id = ? AND context_set = ? AND attempt = ?", list(cell)
        )


def readable(files: Sequence[Path], *, strict: bool) -> Iterator[tuple[Path, Waiting]]:
    """The batches among `files`; one that is none is an error when `strict`, else it stays, with a warning."""
    for file in files:
        try:
            yield file, read(file)
        except UsageError as error:
            if file.exists():  # else somebody else has just taken it in
                if strict:
                    raise
                _LOG.warning("%s", error)


def remove(files: Sequence[Path]) -> None:
    """Remove batches that are committed, and their folder when nothing else is in it."""
    for file in files:
        with contextlib.suppress(FileNotFoundError):
            file.unlink()
    for folder in {file.parent for file in files}:
        with contextlib.suppress(OSError):
            folder.rmdir()


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")
