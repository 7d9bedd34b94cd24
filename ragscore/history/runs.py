"""The table `runs`: one row per run, from its start to the audit at its end."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

import ragscore
from ragscore.errors import UsageError
from ragscore.history import values

if TYPE_CHECKING:
    import duckdb

RUNNING, COMPLETE, INCOMPLETE, FAILED, CANCELLED = "running", "complete", "incomplete", "failed", "cancelled"
STATUSES = (RUNNING, COMPLETE, INCOMPLETE, FAILED, CANCELLED)

_JSON = frozenset({"suite_doc", "scorers", "gate"})
_TIMES = frozenset({"started_at", "ended_at"})


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run: what it evaluates, under which settings, and what became of it.

    Attributes:
        suite_doc: The suite as the user wrote it, `${VAR}` unresolved, as a JSON-able value.
        base_dir: The folder that relative paths of the suite start from.
        items: How many items the run is to score.
        scorers: One JSON-able mapping per scorer, `name` and `kind` among its keys.
        expected_scores: `items` x scorers; what the audit at the end holds against the rows.
        written_scores: What the audit counted; None before it.
        attempt: 1, and one more with each resume.
        started_at: When the first attempt started; times are UTC.
        min_coverage: The share of eligible rows that must have a score.
        gate_verdict: `pass`, `fail` or `inconclusive`; None without a gate. `gate` holds its numbers, JSON-able.
        store_text: `full`, or `hash` where no text of the corpus may be kept.
    """

    run_id: str
    suite: str
    dataset: str
    dataset_hash: str
    items: int
    judge: str
    expected_scores: int
    scorers: tuple[Mapping[str, Any], ...]
    started_at: datetime = field(default_factory=values.now)
    suite_doc: Any = None
    suite_path: str | None = None
    base_dir: str | None = None
    retriever: str | None = None
    version: str | None = None
    target: str | None = None
    judge_params: str = "{}"
    missing_reference: str = "zero"
    duplicates: str = "count"
    min_coverage: float = 0.95
    trigger: str | None = None
    engine: str | None = None
    flow_run_id: str | None = None
    status: str = RUNNING
    ended_at: datetime | None = None
    written_scores: int | None = None
    attempt: int = 1
    error: str | None = None
    ragscore_version: str = field(default_factory=lambda: ragscore.__version__)
    host: str | None = None
    pid: int | None = None
    gate_verdict: str | None = None
    gate: Any = None
    store_text: str = "full"

    def ended(self, status: str, **changes: Any) -> RunRow:
        """A copy with another status and other `changes`."""
        return replace(self, status=status, **changes)

    def is_later_than(self, other: RunRow) -> bool:
        """Whether this row tells of a later state of the same run: a later attempt, or its end."""
        return (self.attempt, self.ended_at is not None, self.ended_at or self.started_at) > (
            other.attempt,
            other.ended_at is not None,
            other.ended_at or other.started_at,
        )

    def as_stored(self) -> dict[str, Any]:
        """The row by column, as text, numbers and times; JSON columns as JSON text."""
        return {name: _stored(self, name) for name in _COLUMNS}

    @classmethod
    def from_stored(cls, row: Mapping[str, Any]) -> RunRow:
        """The row that `as_stored` gave, times as ISO text; columns that it lacks have their defaults."""
        stored = {name: row[name] for name in _COLUMNS if row.get(name) is not None}
        stored |= {name: values.from_json(stored[name]) for name in _JSON & set(stored)}
        stored |= {name: values.utc(datetime.fromisoformat(stored[name])) for name in _TIMES & set(stored)}
        return cls(**stored | {"scorers": tuple(stored["scorers"])})


_COLUMNS = tuple(column.name for column in fields(RunRow))
_SELECT = "SELECT " + ", ".join(f"epoch_us({name}) AS {name}" if name in _TIMES else name for name in _COLUMNS)


def insert(connection: duckdb.DuckDBPyConnection, row: RunRow) -> bool:
    """Write the row of a new run; False, and nothing written, when the run is there already."""
    if find(connection, row.run_id) is not None:
        return False
    marks = ", ".join("?" for _ in _COLUMNS)
    connection.execute(
        f"INSERT INTO runs ({', '.join(_COLUMNS)}) VALUES ({marks})", [_stored(row, n) for n in _COLUMNS]
    )
    return True


def update(connection: duckdb.DuckDBPyConnection, row: RunRow) -> None:
    """Replace the row of a run that is there."""
    changes = ", ".join(f"{name} = ?" for name in _COLUMNS)
    connection.execute(
        f"UPDATE runs SET {changes} WHERE run_id = ?", [*(_stored(row, n) for n in _COLUMNS), values.text(row.run_id)]
    )


def adopt(connection: duckdb.DuckDBPyConnection, row: RunRow) -> None:
    """Take over the row of a run that another history or host wrote, unless a later state of it is here."""
    known = find(connection, row.run_id)
    if known is None:
        insert(connection, row)
    elif row.is_later_than(known):
        update(connection, row)


def find(connection: duckdb.DuckDBPyConnection, run_id: str) -> RunRow | None:
    """The run of exactly this id, if there is one."""
    row = connection.execute(f"{_SELECT} FROM runs WHERE run_id = ?", [values.text(run_id)]).fetchone()
    return None if row is None else _restored(row)


def listed(
    connection: duckdb.DuckDBPyConnection, *, limit: int | None = None, suite: str | None = None
) -> list[RunRow]:
    """The runs, newest first; only those of `suite`, and at most `limit`, where these are given."""
    rows = connection.execute(
        f"{_SELECT} FROM runs WHERE $1::VARCHAR IS NULL OR suite = $1 ORDER BY runs.started_at DESC, run_id DESC"
        " LIMIT coalesce($2::BIGINT, 9223372036854775807)",
        [values.text(suite), limit],
    ).fetchall()
    return [_restored(row) for row in rows]


def resolve(connection: duckdb.DuckDBPyConnection, ref: str) -> RunRow:
    """The run that `ref` names: its id, a beginning of it that no other run shares, or `last`.

    Raises:
        UsageError: None, or several, fit; the message names near ones.
    """
    exact = find(connection, ref)
    if exact is not None:
        return exact
    ids = [
        str(run_id)
        for (run_id,) in connection.execute("SELECT run_id FROM runs ORDER BY started_at DESC, run_id DESC").fetchall()
    ]
    if not ids:
        raise UsageError("the history holds no run yet", mend="make one with `ragscore run SUITE`")
    fitting = ids[:1] if ref == "last" else [run_id for run_id in ids if ref and run_id.startswith(ref)]
    if len(fitting) == 1:
        found = find(connection, fitting[0])
        assert found is not None
        return found
    if fitting:
        raise UsageError(f"{len(fitting)} runs begin with {ref!r}", mend=f"write more of the id: {_some(fitting)}")
    near = difflib.get_close_matches(ref, ids, n=3, cutoff=0.5) or ids[:3]
    raise UsageError(f"no run {ref!r}", mend=f"take a run id, a beginning of one, or `last`; near: {_some(near)}")


def _some(ids: list[str]) -> str:
    return ", ".join(ids[:4]) + (", …" if len(ids) > 4 else "")


def _stored(row: RunRow, name: str) -> Any:
    value = getattr(row, name)
    if name in _JSON:
        return values.to_json(value)
    if name in _TIMES:
        return values.utc(value)
    return values.text(value) if isinstance(value, str) else value


def _restored(row: tuple[Any, ...]) -> RunRow:
    stored = dict(zip(_COLUMNS, row, strict=True))
    for name in _JSON:
        stored[name] = values.from_json(stored[name])
    for name in _TIMES:
        stored[name] = values.from_micros(stored[name])
    return RunRow(**stored | {"scorers": tuple(stored["scorers"])})
