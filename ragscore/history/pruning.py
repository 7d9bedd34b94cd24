"""Taking old runs out of the history: what would go is told first, and some runs always stay."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from ragscore.history import runs
from ragscore.history.connection import reading, writing
from ragscore.history.runs import RunRow
from ragscore.history.store import History
from ragscore.history.tables import TABLES

if TYPE_CHECKING:
    import duckdb

_OF_A_RUN = tuple(name for name, table in TABLES.items() if table.is_of_a_run)


@dataclass(frozen=True, slots=True)
class Pruning:
    """What goes and what stays.

    Attributes:
        going: The runs that go, newest first.
        rows: The rows that go with them, by table.
        held: Runs that are old enough to go but stay, with the reason.
        kept: How many runs stay, those of `held` among them.
    """

    going: Sequence[RunRow]
    rows: Mapping[str, int]
    held: Mapping[str, str]
    kept: int


def plan_pruning(
    history: History, *, keep_runs: int | None = None, keep_since: datetime | None = None, suite: str | None = None
) -> Pruning:
    """What pruning would take out; nothing is changed.

    A run stays when it is among the newest `keep_runs` of its suite, or started at `keep_since` or later. These always
    stay: runs in progress, the last run of each suite and retriever, its last run with a passed gate and its last one
    that did not fail (which `last-passing` means), and runs that the gate of the latest suite file names as baseline or
    anchor.

    Raises:
        ValueError: Neither `keep_runs` nor `keep_since` says what to keep.
    """
    if keep_runs is None and keep_since is None:
        raise ValueError("nothing says what to keep")
    with reading(history.path, lock_timeout_s=history.lock_timeout_s) as connection:
        listed = runs.listed(connection, suite=suite)
        old = _old(listed, keep_runs, keep_since)
        reasons = _reasons(listed)
        going = [row for row in old if row.run_id not in reasons]
        held = {row.run_id: reasons[row.run_id] for row in old if row.run_id in reasons}
        return Pruning(going, _counted(connection, going), held, len(listed) - len(going))


def prune(history: History, pruning: Pruning) -> Mapping[str, int]:
    """Take the runs of a plan out, in one transaction; the rows that went, by table.

    Claims that no score stands on any more go too; comparisons, noise and calibrations stay. The file does not become
    smaller: its room is used again.
    """
    ids = [row.run_id for row in pruning.going]
    with writing(history.path, lock_timeout_s=history.lock_timeout_s) as connection:
        ids = [run_id for run_id in ids if (row := runs.find(connection, run_id)) and row.status != runs.RUNNING]
        gone = {
            table: _executed(connection, f"DELETE FROM {table} WHERE run_id IN (SELECT unnest(?))", [ids])
            for table in (*_OF_A_RUN, "runs")
        }
        gone["claims"] = _executed(
            connection,
            "DELETE FROM claims WHERE claim_set NOT IN (SELECT claim_set FROM scores WHERE claim_set IS NOT NULL)",
            [],
        )
    return gone


def _old(listed: Sequence[RunRow], keep_runs: int | None, keep_since: datetime | None) -> list[RunRow]:
    old, seen = [], dict[str, int]()
    for row in listed:  # newest first
        seen[row.suite] = seen.get(row.suite, 0) + 1
        is_kept = (keep_runs is not None and seen[row.suite] <= keep_runs) or (
            keep_since is not None and row.started_at >= keep_since
        )
        if not is_kept:
            old.append(row)
    return old


def _reasons(listed: Sequence[RunRow]) -> dict[str, str]:
    """Why a run stays however old it is; by run id. A retriever is measured against runs of its own."""
    reasons: dict[str, str] = {}
    found: set[tuple[str, str, str | None]] = set()
    named: dict[str, str] = {}
    retrievers: dict[str, set[str | None]] = {}
    for row in listed:
        retrievers.setdefault(row.suite, set()).add(row.retriever)
    for row in listed:
        what = row.suite if len(retrievers[row.suite]) == 1 else f"{row.suite} with {row.retriever}"
        if row.suite not in named:
            document = row.suite_doc if isinstance(row.suite_doc, dict) else {}
            named[row.suite] = json.dumps(document.get("gate"), ensure_ascii=False)
        is_baseline = row.status == "complete" and row.gate_verdict in ("pass", "inconclusive")
        for fits, which in (
            (True, ""),
            (row.gate_verdict == "pass", " that passed its gate"),
            (is_baseline, " that did not fail its gate"),
        ):
            if fits and (which, row.suite, row.retriever) not in found:
                found.add((which, row.suite, row.retriever))
                reasons.setdefault(row.run_id, f"the last run of {what}{which}")
        if row.run_id in named[row.suite] or (row.version and f'version:{row.version}"' in named[row.suite]):
            reasons.setdefault(row.run_id, f"the gate of {row.suite} names it")
        if row.status == runs.RUNNING:
            reasons.setdefault(row.run_id, "in progress, or waiting for `ragscore resume`")
    return reasons


def _counted(connection: duckdb.DuckDBPyConnection, going: Sequence[RunRow]) -> dict[str, int]:
    ids = [row.run_id for row in going]
    return {
        table: _executed(connection, f"SELECT count(*) FROM {table} WHERE run_id IN (SELECT unnest(?))", [ids])
        for table in _OF_A_RUN
    }


def _executed(connection: duckdb.DuckDBPyConnection, sql: str, params: list[list[str]]) -> int:
    found = connection.execute(sql, params).fetchone()
    return int(found[0]) if found else 0
