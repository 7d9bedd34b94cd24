"""The schema of the history: numbered migrations, each applied in one transaction together with its own mark."""

from __future__ import annotations

import functools
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import ragscore
from ragscore.errors import HistoryTooNew, HistoryUnreadable

if TYPE_CHECKING:
    import duckdb


class Migration(NamedTuple):
    """One step of the schema: `0001_history.sql` has number 1 and name `history`."""

    number: int
    name: str
    sql: str


@functools.cache
def migrations() -> tuple[Migration, ...]:
    """All steps that this ragscore knows, in order."""
    found = []
    for file in resources.files("ragscore.history").joinpath("migrations").iterdir():
        if file.name.endswith(".sql"):
            number, name = file.name.removesuffix(".sql").split("_", 1)
            found.append(Migration(int(number), name, file.read_text(encoding="utf-8")))
    return tuple(sorted(found))


def newest() -> int:
    """The number of the schema that this ragscore reads and writes."""
    return migrations()[-1].number


def number_of(connection: duckdb.DuckDBPyConnection, path: Path) -> int:
    """The number of the schema that is in the file; 0 when the database holds nothing at all.

    Raises:
        HistoryTooNew: It is later than `newest()`.
        HistoryUnreadable: The database holds tables, but is no history of ours.
    """
    tables = {
        name
        for (name,) in connection.execute(
            "SELECT table_name FROM duckdb_tables() WHERE database_name = current_database()"
        ).fetchall()
    }
    if "schema_migrations" not in tables:
        if tables:
            raise HistoryUnreadable(
                "is a DuckDB database, but not a history of ragscore",
                where=str(path),
                mend="name another file with --history",
            )
        return 0
    last = connection.execute(
        "SELECT number, ragscore_version FROM schema_migrations ORDER BY number DESC LIMIT 1"
    ).fetchone()
    number, version = (int(last[0]), str(last[1])) if last else (0, "")
    if number > newest():
        raise HistoryTooNew(
            f"was written by ragscore {version} with schema {number}; ragscore {ragscore.__version__} knows {newest()}",
            where=str(path),
            mend="upgrade ragscore, or name another file with --history",
        )
    return number


def bring_up_to_date(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    """Apply the migrations that are not in the file yet; does nothing to a history that is up to date.

    Raises:
        HistoryTooNew, HistoryUnreadable: As `number_of`; nothing was changed.
    """
    present = number_of(connection, path)
    if present == newest():
        return
    connection.execute(
        "CREATE TABLE IF NOT EXISTS schema_migrations"
        " (number INTEGER NOT NULL, name VARCHAR NOT NULL, applied_at TIMESTAMPTZ NOT NULL,"
        " ragscore_version VARCHAR NOT NULL)"
    )
    for step in migrations():
        if step.number <= present:
            continue
        connection.begin()
        try:
            connection.execute(step.sql)
            connection.execute(
                "INSERT INTO schema_migrations VALUES (?, ?, now(), ?)", [step.number, step.name, ragscore.__version__]
            )
        except BaseException:
            connection.rollback()
            raise
        connection.commit()
