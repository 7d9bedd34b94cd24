"""The small tables of what is found out about runs and judges: comparisons, noise, calibrations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ragscore.history import values

if TYPE_CHECKING:
    import duckdb

#: Per table the columns that name a row.
KEYS: Mapping[str, tuple[str, ...]] = {
    "comparisons": ("comparison_id", "scorer"),
    "noise": ("noise_id", "scorer"),
    "calibrations": ("calibration_id", "kind"),
}


def columns_of(connection: duckdb.DuckDBPyConnection, table: str) -> list[str]:
    """The columns of one of these tables, in their order."""
    found = connection.execute(
        "SELECT column_name FROM duckdb_columns() WHERE database_name = current_database() AND table_name = ?"
        " ORDER BY column_index",
        [table],
    )
    return [name for (name,) in found.fetchall()]


def insert(connection: duckdb.DuckDBPyConnection, table: str, rows: Sequence[Mapping[str, Any]]) -> int:
    """Write the rows whose key is not there yet.

    Args:
        connection: Inside a transaction.
        table: One of `KEYS`.
        rows: By column. A column that is left out is NULL, `created_at` the present moment. `details` is any
            JSON-able value. Numbers that are not finite become NULL.

    Returns:
        How many rows were new.

    Raises:
        ValueError: A row names a column that the table does not have.
    """
    key, columns = KEYS[table], columns_of(connection, table)
    quoted = ", ".join(f'"{name}"' for name in columns)
    new = 0
    for row in rows:
        if unknown := set(row) - set(columns):
            raise ValueError(f"{table} has no column {', '.join(sorted(unknown))}")
        stored = {name: _stored(name, row.get(name)) for name in columns}
        present = connection.execute(
            f"SELECT 1 FROM {table} WHERE {' AND '.join(f'{name} = ?' for name in key)}", [stored[name] for name in key]
        ).fetchone()
        if present is None:
            marks = ", ".join("?" for _ in columns)
            connection.execute(f"INSERT INTO {table} ({quoted}) VALUES ({marks})", list(stored.values()))
            new += 1
    return new


def _stored(name: str, value: Any) -> Any:
    if name == "details":
        return values.to_json(value)
    if name == "created_at":
        return values.utc(value if isinstance(value, datetime) else values.now())
    if isinstance(value, float):
        return values.number(value)
    return values.text(value) if isinstance(value, str) else value
