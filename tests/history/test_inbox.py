"""What cannot be written waits in the inbox, and is taken in by whoever writes next."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from ragscore.errors import HistoryLocked, UsageError
from ragscore.history import History, select
from ragscore.history.exporting import export_batch
from ragscore.history.inbox import waiting
from ragscore.history.remote import ingest_from, leave_at
from ragscore.items import Context, ContextSet

from .example import example
from .records import record, run_row, store
from .test_connection import held

TABLES = ("items", "context_sets", "contexts", "scores", "verdicts", "judge_calls", "claims")


def contents(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """Every row of every table but for the moment when it was written."""
    return {
        table: select(path, f"SELECT * EXCLUDE (created_at) FROM {table} ORDER BY ALL").rows
        if table not in ("contexts", "verdicts", "judge_calls")
        else select(path, f"SELECT * FROM {table} ORDER BY ALL").rows
        for table in TABLES
    }


def test_a_run_goes_on_while_others_hold_the_file_and_nothing_of_it_is_lost(path: Path, tmp_path: Path) -> None:
    history = History(path, lock_timeout_s=0.2)
    plain = History(tmp_path / "plain.duckdb")
    fewer = record(1).having(context_sets={"response": ContextSet("response", (Context("another"),))})
    records = [record(0), fewer, record(2)]
    for each in (history, plain):
        each.start_run(run_row(items=3))
    with held(path):
        assert history.responses("run-1", ["item-0"]) == {}
        assert store(history, "run-1", records) == (3, 3, 6)
        assert history.scored("run-1", ["item-0"]) == {}
        with pytest.raises(HistoryLocked, match=r"held by process \d+ .*waits in .*inbox.*ragscore ingest"):
            history.finish_run("run-1", status="complete")
        assert len(waiting(history.inbox)) == 4
        assert not [each for each in history.inbox.iterdir() if each.name.startswith(".")]
    store(plain, "run-1", records)
    plain.finish_run("run-1", status="complete")
    assert history.start_run(run_row("run-2"))  # the next write, of whomever
    assert not history.inbox.exists()
    assert contents(path) == contents(plain.path)
    row = history.run("run-1")
    assert (row.status, row.written_scores, row.error) == ("complete", 6, None)


def test_a_run_that_another_process_began_is_not_guessed_about(path: Path) -> None:
    History(path).start_run(run_row())
    other = History(path, lock_timeout_s=0.1)
    with held(path):
        with pytest.raises(HistoryLocked):
            other.responses("run-1", ["item-1"])
        with pytest.raises(HistoryLocked):
            other.store_scores("run-1", [record(1)])
    assert waiting(other.inbox) == []


def test_taking_a_batch_in_twice_changes_nothing(history: History, tmp_path: Path) -> None:
    other = example(tmp_path / "other.duckdb")
    for place in ("a", "b"):
        export_batch(other, "run-3", tmp_path / place)
    first = history.ingest(tmp_path / "a")
    assert (first.batches, first.run_ids) == (1, ("run-3",))
    before = contents(history.path)
    assert history.ingest(tmp_path / "b").rows == 0
    assert contents(history.path) == before
    assert not (tmp_path / "a").exists()
    assert history.ingest(tmp_path / "a").batches == 0


def test_a_run_left_for_another_host_arrives_whole_with_its_attempts_and_gate(history: History, tmp_path: Path) -> None:
    other = example(tmp_path / "other.duckdb")
    for run_id in ("run-4", "run-3", "run-2", "run-1"):
        export_batch(other, run_id, tmp_path / "inbox")
    assert history.ingest(tmp_path / "inbox").batches == 4
    ours, theirs = contents(history.path), contents(other.path)
    for each in (ours, theirs):  # which run used a set of claims first depends on the order of arrival
        each["claims"] = [row[:3] for row in each["claims"]]
    assert ours == theirs
    assert history.runs() == other.runs()


def test_rows_that_arrive_after_the_end_of_their_run_complete_it(history: History, path: Path) -> None:
    impatient = History(path, lock_timeout_s=0.1)
    impatient.start_run(run_row(items=1))
    with held(path):
        store(impatient, "run-1", [record(1)])
    late = [file.rename(path.parent / file.name) for file in waiting(impatient.inbox)]
    assert history.finish_run("run-1", status="complete").status == "incomplete"
    (path.parent / "late").mkdir()
    for file in late:
        file.rename(path.parent / "late" / file.name)
    history.ingest(path.parent / "late")
    assert (history.run("run-1").status, history.run("run-1").error) == ("complete", None)


def test_attempts_that_arrive_in_another_order_supersede_all_the_same(path: Path, history: History) -> None:
    impatient = History(path, lock_timeout_s=0.1)
    impatient.start_run(run_row(items=1))
    with held(path):
        impatient.store_scores("run-1", [record(1)])
    late = path.parent / "late"
    impatient.inbox.rename(late)
    history.reopen_run("run-1")
    history.store_scores("run-1", [record(1, attempt=2)])
    history.ingest(late)
    found = select(path, "SELECT attempt, superseded, count(*) FROM scores GROUP BY ALL ORDER BY 1").rows
    assert found == [(1, True, 2), (2, False, 2)]
    found = select(path, "SELECT attempt, count(*) FROM latest_verdicts GROUP BY ALL").rows
    assert found == [(2, 6)]


def test_a_file_that_is_no_batch_stays_with_a_warning_and_stops_nothing(
    history: History, caplog: pytest.LogCaptureFixture, count: Callable[[str], int]
) -> None:
    history.start_run(run_row())
    history.inbox.mkdir()
    bad = history.inbox / "x.batch.parquet"
    bad.write_bytes(b"PAR1 and then nothing")
    with caplog.at_level(logging.WARNING, "ragscore.history"):
        assert history.store_scores("run-1", [record(1)]) == 2
    assert "is not a batch of ragscore" in caplog.text
    assert bad.exists()
    with pytest.raises(UsageError, match=r"x\.batch\.parquet: is not a batch.*move it out"):
        history.ingest(history.inbox)


def test_an_inbox_at_an_address_is_taken_in_and_emptied(history: History, tmp_path: Path) -> None:
    other = example(tmp_path / "other.duckdb")
    address = (tmp_path / "shared" / "inbox").as_uri()
    left = leave_at(export_batch(other, "run-4", tmp_path / "local"), address)
    assert left.startswith(address)
    assert [file.name for file in (tmp_path / "shared" / "inbox").iterdir()] == [left.rsplit("/", 1)[1]]
    assert ingest_from(history, address).run_ids == ("run-4",)
    assert list((tmp_path / "shared" / "inbox").iterdir()) == []
    assert history.run("last").gate_verdict == "inconclusive"
    with pytest.raises(UsageError, match="cannot be reached"):
        ingest_from(history, "nosuch://bucket/inbox")
