"""The tables that grow, as they are written: one statement per table and call, and only what is not there yet.

`TABLES` says which columns a writer fills, in which types, and which of them name a cell: rows of a cell that is
there already are left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import duckdb

Row = tuple[Any, ...]
#: Rows by table.
Rows = dict[str, list[Row]]


@dataclass(frozen=True, slots=True)
class Table:
    """A table as it is written: `columns` by name with their types; the values of `cell` name what a row is about."""

    name: str
    columns: Mapping[str, str]
    cell: tuple[str, ...]

    @property
    def is_of_a_run(self) -> bool:
        """Whether each row belongs to one run."""
        return "run_id" in self.columns

    def cells(self, rows: Sequence[Row], names: Sequence[str] | None = None) -> list[Row]:
        """For each of `rows` the values of the columns `names`: by default of those that name its cell."""
        places = [list(self.columns).index(name) for name in names or self.cell]
        return [tuple(row[place] for place in places) for row in rows]


def _table(name: str, cell: str, columns: str) -> Table:
    types = {word: " ".join(rest) for word, *rest in (part.split() for part in columns.split(","))}
    return Table(name, types, tuple(cell.split()))


TABLES = {
    table.name: table
    for table in (
        _table(
            "items",
            "run_id item_id attempt",
            "run_id VARCHAR, item_id VARCHAR, position BIGINT, attempt INTEGER, input VARCHAR, reference VARCHAR,"
            " reference_context_ids VARCHAR[], claims VARCHAR[], answerable BOOLEAN, metadata JSON, item_hash VARCHAR,"
            " output VARCHAR, response JSON, returned_contexts INTEGER, latency_ms DOUBLE, error VARCHAR,"
            " created_at TIMESTAMPTZ",
        ),
        _table(
            "context_sets",
            "run_id item_id context_set attempt",
            "run_id VARCHAR, item_id VARCHAR, attempt INTEGER, context_set VARCHAR, n INTEGER, error VARCHAR,"
            " created_at TIMESTAMPTZ",
        ),
        _table(
            "contexts",
            "run_id item_id context_set attempt",
            "run_id VARCHAR, item_id VARCHAR, attempt INTEGER, context_set VARCHAR, rank INTEGER, context_id VARCHAR,"
            " text VARCHAR, score DOUBLE, metadata JSON, duplicate_of INTEGER",
        ),
        _table(
            "scores",
            "run_id item_id scorer attempt",
            "run_id VARCHAR, item_id VARCHAR, position BIGINT, scorer VARCHAR, kind VARCHAR, attempt INTEGER,"
            " status VARCHAR, score DOUBLE, exact DOUBLE, exact_fraction VARCHAR, scale DOUBLE, counted BOOLEAN,"
            " reason VARCHAR, against VARCHAR, n INTEGER, n_positive INTEGER, context_set VARCHAR, claim_set VARCHAR,"
            " error VARCHAR, raw VARCHAR, calls BIGINT, remembered BIGINT, prompt_tokens BIGINT,"
            " completion_tokens BIGINT, cached_tokens BIGINT, cost_usd DOUBLE, created_at TIMESTAMPTZ, suite VARCHAR,"
            " retriever VARCHAR, version VARCHAR, target VARCHAR, dataset_hash VARCHAR, judge VARCHAR,"
            " judge_params VARCHAR, prompt_version VARCHAR, scorer_version VARCHAR, ragscore_version VARCHAR,"
            " item_hash VARCHAR",
        ),
        _table(
            "verdicts",
            "run_id item_id scorer attempt",
            "run_id VARCHAR, item_id VARCHAR, scorer VARCHAR, attempt INTEGER, kind VARCHAR, verdict_id VARCHAR,"
            " rank INTEGER, text VARCHAR, positive BOOLEAN, why VARCHAR, sources INTEGER[], quotes VARCHAR[],"
            " verified BOOLEAN, warnings VARCHAR[], confidence DOUBLE, remembered BOOLEAN, duplicate_of INTEGER",
        ),
        _table(
            "judge_calls",
            "run_id item_id scorer attempt",
            "run_id VARCHAR, item_id VARCHAR, scorer VARCHAR, attempt INTEGER, number INTEGER, task VARCHAR,"
            " model VARCHAR, mode VARCHAR, outcome VARCHAR, prompt_tokens BIGINT, completion_tokens BIGINT,"
            " cached_tokens BIGINT, cost_usd DOUBLE, latency_ms DOUBLE, error VARCHAR, started_at TIMESTAMPTZ,"
            " reply VARCHAR",
        ),
        _table(
            "claims",
            "claim_set",
            "claim_set VARCHAR, number INTEGER, text VARCHAR, item_hash VARCHAR, first_run_id VARCHAR,"
            " created_at TIMESTAMPTZ",
        ),
    )
}


def append_new(connection: duckdb.DuckDBPyConnection, rows: Rows, *, parent: str) -> set[Row]:
    """Write the rows of `parent` that are not there yet, and the rows of the other tables that belong to those.

    Never a child to a parent that was there before: what was written first stands, whole.

    Returns:
        The cells of the parents that were written.
    """
    cell = TABLES[parent].cell
    new = missing(connection, parent, TABLES[parent].cells(rows[parent]))
    for name, offered in rows.items():
        table = TABLES[name]
        belonging = offered
        if table.is_of_a_run:
            belonging = [row for row, of in zip(offered, table.cells(offered, cell), strict=True) if of in new]
        cells = table.cells(belonging)
        absent = new if name == parent else missing(connection, name, cells)
        _append(connection, name, [row for row, own in zip(belonging, cells, strict=True) if own in absent])
    if parent == "scores":
        mark_superseded(connection, {cell[0] for cell in new if cell[-1] > 1})
    return new


def mark_superseded(connection: duckdb.DuckDBPyConnection, run_ids: Iterable[str]) -> None:
    """Set `superseded` on the scores, and their verdicts, of these runs of whose cell a later attempt is there too."""
    for run_id in run_ids:
        connection.execute(
            "UPDATE scores SET superseded = true"
            " FROM (SELECT item_id, scorer, max(attempt) AS attempt FROM scores WHERE run_id = $1 AND attempt > 1"
            " GROUP BY ALL) AS later"
            " WHERE scores.run_id = $1 AND later.item_id = scores.item_id AND later.scorer = scores.scorer"
            " AND later.attempt > scores.attempt AND NOT scores.superseded",
            [run_id],
        )
        connection.execute(
            "UPDATE verdicts SET superseded = true"
            " FROM (SELECT item_id, scorer, attempt FROM scores WHERE run_id = $1 AND superseded) AS earlier"
            " WHERE verdicts.run_id = $1 AND earlier.item_id = verdicts.item_id AND earlier.scorer = verdicts.scorer"
            " AND earlier.attempt = verdicts.attempt AND NOT verdicts.superseded",
            [run_id],
        )


def missing(connection: duckdb.DuckDBPyConnection, table: str, cells: Sequence[Row]) -> set[Row]:
    """Those of `cells` that no row of `table` is about.

    All are of one run, which keeps the search within that run; or of none (`claims`, which many runs share).
    """
    if not cells:
        return set()
    names = TABLES[table].cell
    types = {name: TABLES[table].columns[name] for name in names}
    distinct = list(dict.fromkeys(cells))
    picked = ", ".join(names)
    params = [_as_text(types, distinct)]
    within = ""
    if TABLES[table].is_of_a_run:
        within = "WHERE run_id = ?"
        params.append(distinct[0][names.index("run_id")])
    absent = connection.execute(
        f"SELECT {picked} FROM ({_offered(types)}) AS offered"
        f" ANTI JOIN (SELECT {picked} FROM {table} {within}) AS present USING ({picked})",
        params,
    )
    return set(absent.fetchall())


def _append(connection: duckdb.DuckDBPyConnection, table: str, rows: Sequence[Row]) -> None:
    if rows:
        columns = TABLES[table].columns
        connection.execute(f"INSERT INTO {table} ({', '.join(columns)}) {_offered(columns)}", [_as_text(columns, rows)])


# Rows go over as one JSON text. As lists of Python values they would cost DuckDB 1.5 about 60 microseconds for each
# value, 0.3 s for the scores of 25 items; as a text it is 3 ms, as fast as any other way in DuckDB 2.


def _offered(types: Mapping[str, str]) -> str:
    """A SELECT that gives the rows of its one parameter, a text that `_as_text` made."""
    structure = json.dumps([{name: _in_json(kind) for name, kind in types.items()}])
    picked = ", ".join(f"offered.{name}::{kind} AS {name}" for name, kind in types.items())
    return f"SELECT {picked} FROM (SELECT unnest(from_json(?, '{structure}')) AS offered)"


def _in_json(kind: str) -> str | list[str]:
    if kind.endswith("[]"):
        return [kind.removesuffix("[]")]
    return "VARCHAR" if kind in ("JSON", "TIMESTAMPTZ") else kind


def _as_text(types: Mapping[str, str], rows: Sequence[Row]) -> str:
    named = [dict(zip(types, row, strict=True)) for row in rows]
    return json.dumps(named, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=str)
