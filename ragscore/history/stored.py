"""What the history holds of the items of a run, as the stages take it up again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from ragscore.history import restoring, values
from ragscore.history.restoring import CONTEXT_COLUMNS, RESPONSE_COLUMNS
from ragscore.history.rows import RESPONSE_SET
from ragscore.history.tables import Row
from ragscore.items import Context, ContextSet, Response

if TYPE_CHECKING:
    import duckdb


def keeps_text(connection: duckdb.DuckDBPyConnection, run_id: str) -> bool:
    """Whether the texts of the run are there to be read (`store_text: full`)."""
    found = connection.execute("SELECT store_text FROM runs WHERE run_id = ?", [values.text(run_id)]).fetchone()
    return found is None or found[0] != "hash"


def responses_of(
    connection: duckdb.DuckDBPyConnection, run_id: str, ids: Mapping[str, str]
) -> dict[str, tuple[Response, int]]:
    """As `History.responses`; `ids` gives for each id as it is stored the id that the result has."""
    found = of_items(connection, f"item_id, attempt, {RESPONSE_COLUMNS}", "latest_items", run_id, ids)
    # Those of the very attempt, whatever has been resolved since.
    contexts = _contexts(connection, run_id, ids, "contexts", f"AND context_set = '{RESPONSE_SET}'")
    return {
        ids[stored]: (restoring.to_response(tuple(row), contexts.get((stored, RESPONSE_SET, attempt), [])), attempt)
        for stored, attempt, *row in found
    }


def context_sets_of(
    connection: duckdb.DuckDBPyConnection, run_id: str, ids: Mapping[str, str]
) -> dict[str, dict[str, ContextSet]]:
    """As `History.context_sets`; `ids` as for `responses_of`."""
    found = of_items(connection, "item_id, context_set, attempt, error", "latest_context_sets", run_id, ids)
    contexts = _contexts(connection, run_id, ids, "contexts")
    sets: dict[str, dict[str, ContextSet]] = {}
    for stored, name, attempt, error in found:
        held = tuple(contexts.get((stored, name, attempt), ()))
        sets.setdefault(ids[stored], {})[name] = ContextSet(name, held, error)
    return sets


def of_items(
    connection: duckdb.DuckDBPyConnection, columns: str, table: str, run_id: str, ids: Iterable[str], more: str = ""
) -> list[Row]:
    asked = """item_id IN (SELECT unnest(from_json(?, '["VARCHAR"]')))"""
    return connection.execute(
        f"SELECT {columns} FROM {table} WHERE run_id = ? AND {asked} {more}",
        [values.text(run_id), values.to_json(list(ids))],
    ).fetchall()


def _contexts(
    connection: duckdb.DuckDBPyConnection, run_id: str, ids: Iterable[str], table: str, more: str = ""
) -> dict[tuple[str, str, int], list[Context]]:
    """Contexts in rank order by (item, set, attempt)."""
    found = of_items(
        connection, f"item_id, context_set, attempt, {CONTEXT_COLUMNS}", table, run_id, ids, f"{more} ORDER BY rank"
    )
    contexts: dict[tuple[str, str, int], list[Context]] = {}
    for item_id, name, attempt, *row in found:
        contexts.setdefault((item_id, name, attempt), []).append(restoring.to_context(tuple(row)))
    return contexts
