"""Several histories become one, however often it is done."""

from __future__ import annotations

import gzip
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import duckdb
import pytest

from ragscore.errors import HistoryTooNew, HistoryUnreadable, UsageError
from ragscore.history import History, select
from ragscore.history.merging import merge

from .example import START, example
from .records import record, run_row, store
from .test_inbox import contents

OLD = Path(__file__).parent / "old"


def test_a_merged_history_is_the_other_one_and_merging_again_changes_nothing(history: History, tmp_path: Path) -> None:
    other = example(tmp_path / "other.duckdb")
    bytes_before = other.path.read_bytes()
    merged = merge(history, other.path)
    assert merged.new_runs == ("run-4", "run-3", "run-2", "run-1")
    assert contents(history.path) == contents(other.path)
    assert history.runs() == other.runs()
    for table in ("comparisons", "noise", "calibrations"):
        assert select(history.path, f"FROM {table}").rows == select(other.path, f"FROM {table}").rows != []
    again = merge(history, other.path)
    assert (again.new_runs, len(again.known_runs), set(again.rows.values())) == ((), 4, {0})
    assert contents(history.path) == contents(other.path)
    assert other.path.read_bytes() == bytes_before


def test_two_jobs_of_one_run_and_a_run_of_each_come_together(history: History, tmp_path: Path) -> None:
    other = History(tmp_path / "other.duckdb")
    for each, number in ((history, 0), (other, 1)):
        each.start_run(run_row(items=2, started_at=START))
        store(each, "run-1", [record(number)])
        each.start_run(run_row(f"own-{number}", items=1, started_at=START + timedelta(days=number)))
        store(each, f"own-{number}", [record(5)])
        each.finish_run("run-1", status="complete")
        each.finish_run(f"own-{number}", status="complete")
    assert history.run("run-1").status == "incomplete"
    merged = merge(history, other.path)
    assert (merged.new_runs, merged.known_runs) == (("own-1",), ("run-1",))
    assert {row.run_id: (row.status, row.written_scores) for row in history.runs()} == {
        "run-1": ("complete", 4),
        "own-0": ("complete", 2),
        "own-1": ("complete", 2),
    }
    assert merged.rows["scores"] == 4


def test_what_both_hold_stays_as_it_is_here_and_a_later_attempt_supersedes(history: History, tmp_path: Path) -> None:
    other = History(tmp_path / "other.duckdb")
    for each in (history, other):
        each.start_run(run_row(items=1, started_at=START))
    store(history, "run-1", [record(1)])
    changed = record(1)
    assert changed.scores is not None
    other.store_scores("run-1", [changed.having(scores=(replace(changed.scores[0], reason="another"),))])
    other.reopen_run("run-1")
    other.store_scores("run-1", [replace(changed, attempt=2)])
    merge(history, other.path)
    found = select(history.path, "SELECT scorer, attempt, reason, superseded FROM scores ORDER BY 1, 2").rows
    assert found == [
        ("context_precision", 1, "by place", True),
        ("context_precision", 2, "by place", False),
        ("context_recall", 1, "because", True),
        ("context_recall", 2, "because", False),
    ]
    assert history.run("run-1").attempt == 2


def test_an_older_history_is_merged_and_stays_as_old_as_it_is(history: History, tmp_path: Path) -> None:
    old = tmp_path / "old.duckdb"
    old.write_bytes(gzip.decompress((OLD / "schema-1.duckdb.gz").read_bytes()))
    before = old.read_bytes()
    assert merge(history, old).new_runs == ("run-3", "run-2", "run-1")
    assert old.read_bytes() == before
    assert select(history.path, "SELECT count(*) FROM regressions").rows != [(0,)]


def test_what_cannot_be_merged_is_said_and_nothing_is_changed(history: History, tmp_path: Path) -> None:
    history.start_run(run_row())
    before = history.path.read_bytes()
    (tmp_path / "text.duckdb").write_bytes(b"no database, this\n" * 99)
    newer = History(tmp_path / "newer.duckdb")
    newer.start_run(run_row("b"))
    with duckdb.connect(newer.path) as connection:
        connection.execute("INSERT INTO schema_migrations VALUES (999, 'later', now(), '9.9.9')")
    for other, kind, message in (
        (tmp_path / "none.duckdb", UsageError, "there is no history here"),
        (history.path, UsageError, "the history that is merged into"),
        (tmp_path / "text.duckdb", HistoryUnreadable, "not a DuckDB file"),
        (newer.path, HistoryTooNew, "schema 999"),
    ):
        with pytest.raises(kind, match=message):
            merge(history, other)
    assert history.path.read_bytes() == before
