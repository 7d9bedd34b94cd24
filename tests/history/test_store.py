"""What is stored is stored once, comes back as it was, and is audited."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from ragscore.errors import UsageError
from ragscore.history import History, select
from ragscore.items import Call, Context, ContextSet, Item, Record, Response, Status

from .records import PRECISION, RECALL, contexts_of, precision, recall, record, run_row, store

TABLES = ("items", "context_sets", "contexts", "scores", "verdicts")


def test_storing_twice_keeps_every_row_once(history: History, count: Callable[[str], int]) -> None:
    history.start_run(run_row())
    records = [record(number) for number in range(4)]
    assert store(history, "run-1", records) == (4, 4, 8)
    first = {table: count(table) for table in TABLES}
    assert first == {"items": 4, "context_sets": 4, "contexts": 12, "scores": 8, "verdicts": 24}
    assert store(history, "run-1", records) == (0, 0, 0)
    assert store(history, "run-1", [*records, record(9), record(9)]) == (1, 1, 2)
    assert {table: count(table) for table in TABLES} == {
        "items": 5,
        "context_sets": 5,
        "contexts": 15,
        "scores": 10,
        "verdicts": 30,
    }


def test_two_runs_and_two_scorers_of_one_item_do_not_hide_each_other(
    history: History, count: Callable[[str], int]
) -> None:
    one = record(1)
    assert one.scores is not None
    for run_id in ("run-1", "run-2"):
        history.start_run(run_row(run_id))
        assert history.store_scores(run_id, [one.having(scores=one.scores[:1])]) == 1
        assert history.store_scores(run_id, [one]) == 1
    assert count("scores") == 4


def test_a_response_comes_back_whole_so_that_a_resume_does_not_ask_again(history: History) -> None:
    history.start_run(run_row())
    one = record(1)
    silent = Record(Item("s", "?"), 5, response=Response(output="only text"))
    nothing = Record(Item("n", "?"), 6, response=Response(contexts=(), raw=[], latency_ms=1))
    failed = Record(Item("f", "?"), 7, response=Response(error="ConnectionError: refused"))
    history.store_responses("run-1", [one, silent, nothing, failed, Record(Item("later", "?"), 8)])
    found = history.responses("run-1", ["item-1", "s", "n", "f", "later", "unknown"])
    assert found == {
        "item-1": (one.response, 1),
        "s": (silent.response, 1),
        "n": (nothing.response, 1),
        "f": (failed.response, 1),
    }


def test_a_set_that_is_empty_or_failed_is_known_as_resolved(history: History) -> None:
    history.start_run(run_row())
    sets = {
        "response": ContextSet("response", contexts_of(1)),
        "static": ContextSet("static"),
        "function": ContextSet("function", error="KeyError: hits"),
    }
    one = record(1).having(context_sets=sets)
    history.store_responses("run-1", [one])
    assert history.context_sets("run-1", ["item-1"]) == {}
    history.store_contexts("run-1", [one])
    assert history.context_sets("run-1", ["item-1", "other"]) == {"item-1": sets}


def test_what_the_target_returned_stands_once_beside_the_set_of_that_name(
    history: History, count: Callable[[str], int]
) -> None:
    history.start_run(run_row())
    history.store_responses("run-1", [record(1)])
    history.store_contexts("run-1", [record(1)])
    assert count("contexts") == 3


def test_a_set_that_differs_from_what_was_returned_is_what_was_judged(history: History) -> None:
    history.start_run(run_row())
    fewer = ContextSet("response", contexts_of(1)[1:])
    one = record(1).having(context_sets={"response": fewer})
    history.store_responses("run-1", [one])
    history.store_contexts("run-1", [one])
    assert history.context_sets("run-1", ["item-1"]) == {"item-1": {"response": fewer}}


def test_repeated_contexts_point_to_the_first(history: History) -> None:
    history.start_run(run_row())
    held = (Context("a  b"), Context("c"), Context("a b"), Context("a b", id="1"), Context("other", id="1"))
    one = record(1).having(context_sets={"item": ContextSet("item", held)})
    history.store_contexts("run-1", [one])
    found = select(history.path, "SELECT rank, duplicate_of FROM contexts ORDER BY rank")
    assert found.rows == [(1, None), (2, None), (3, 1), (4, 1), (5, None)]


def test_the_requests_before_the_first_item_are_kept_with_the_start_of_each_attempt(history: History) -> None:
    probe = [Call("probe", "m", "json_schema", "bad_request"), Call("probe", "m", "text", "ok", cost_usd=0.5)]
    assert history.start_run(run_row(), probe=probe)
    assert not history.start_run(run_row(), probe=probe)
    history.finish_run("run-1", status="cancelled")
    history.reopen_run("run-1", probe=probe[1:])
    found = select(history.path, "SELECT item_id, scorer, attempt, number, outcome FROM judge_calls ORDER BY ALL")
    assert found.rows == [("", "", 1, 1, "bad_request"), ("", "", 1, 2, "ok"), ("", "", 2, 1, "ok")]


def test_the_calls_of_a_score_are_kept_with_it(history: History, count: Callable[[str], int]) -> None:
    history.start_run(run_row())
    calls = (
        Call(
            "rate_contexts",
            "m",
            "json_schema",
            "truncated",
            prompt_tokens=9,
            started_at=1.5,
            reply='{"a": "\x00\n שלום',
        ),
        Call("rate_contexts", "m", "json_schema", "ok", cost_usd=0.5, error="x\ud800", reply="</script>\ud800"),
        Call("rate_contexts", "m", "json_schema", "timeout"),
        Call("rate_contexts", "m", "json_schema", "malformed", reply=""),
    )
    one = record(1).having(scores=(replace(recall(1), calls=calls), precision(1)))
    for _ in range(2):
        history.store_scores("run-1", [one])
    found = select(
        history.path,
        "SELECT scorer, number, outcome, prompt_tokens, cost_usd, error, epoch(started_at), reply FROM judge_calls",
    )
    assert found.rows == [
        (RECALL, 1, "truncated", 9, None, None, 1.5, '{"a": "\x00\n שלום'),
        (RECALL, 2, "ok", None, 0.5, "x\ufffd", None, "</script>\ufffd"),
        (RECALL, 3, "timeout", None, None, None, None, None),
        (RECALL, 4, "malformed", None, None, None, None, ""),
    ]


def test_a_later_attempt_supersedes_the_earlier_one_and_keeps_it(history: History, count: Callable[[str], int]) -> None:
    history.start_run(run_row(items=2))
    store(history, "run-1", [record(1, status=Status.JUDGE_ERROR), record(2)])
    assert history.scored("run-1", ["item-1", "item-2"]) == {
        "item-1": {RECALL: (Status.JUDGE_ERROR, 1), PRECISION: (Status.OK, 1)},
        "item-2": {RECALL: (Status.OK, 1), PRECISION: (Status.OK, 1)},
    }
    again = history.reopen_run("run-1")
    assert (again.attempt, again.status, again.ended_at) == (2, "running", None)
    retried = record(1, attempt=2)
    assert retried.scores is not None
    history.store_scores("run-1", [retried.having(scores=retried.scores[:1])])
    assert history.scored("run-1", ["item-1"]) == {"item-1": {RECALL: (Status.OK, 2), PRECISION: (Status.OK, 1)}}
    assert (count("scores"), count("latest_scores")) == (5, 4)
    assert count("verdicts") == count("latest_verdicts") == 12
    assert history.finish_run("run-1", status="complete").ok


def test_a_later_attempt_without_verdicts_leaves_none(history: History, count: Callable[[str], int]) -> None:
    history.start_run(run_row(items=1))
    store(history, "run-1", [record(1)])
    store(history, "run-1", [record(1, attempt=2, status=Status.JUDGE_ERROR)])
    assert (count("verdicts"), count("latest_verdicts")) == (9, 3)


def test_a_target_that_failed_and_then_answered_shows_the_answer(history: History, count: Callable[[str], int]) -> None:
    history.start_run(run_row())
    history.store_responses("run-1", [record(1).having(response=Response(error="down"))])
    history.store_responses("run-1", [record(1, attempt=2)])
    assert history.responses("run-1", ["item-1"]) == {"item-1": (record(1).response, 2)}
    assert (count("items"), count("latest_items")) == (2, 1)


def test_sets_resolved_in_a_later_passage_than_the_response_are_whole(history: History) -> None:
    history.start_run(run_row())
    history.store_responses("run-1", [record(1)])
    history.store_contexts("run-1", [record(1, attempt=2)])
    assert history.context_sets("run-1", ["item-1"])["item-1"]["response"].contexts == contexts_of(1)
    assert history.responses("run-1", ["item-1"]) == {"item-1": (record(1).response, 1)}
    assert len(select(history.path, "SELECT * FROM latest_contexts").rows) == 3


def test_a_run_is_complete_only_when_every_score_is_there(history: History) -> None:
    history.start_run(run_row(items=2))
    store(history, "run-1", [record(1)])
    audit = history.finish_run("run-1", status="complete")
    assert not audit.ok
    assert (audit.status, audit.expected, audit.written) == ("incomplete", 4, 2)
    row = history.run("run-1")
    assert (row.status, row.error, row.written_scores) == ("incomplete", "2 of 4 scores are missing", 2)
    assert row.ended_at is not None
    store(history, "run-1", [record(2)])
    assert history.finish_run("run-1", status="complete").ok
    assert (history.run("run-1").status, history.run("run-1").error) == ("complete", None)


def test_a_score_that_is_there_twice_is_found_by_the_audit(history: History) -> None:
    history.start_run(run_row(items=1))
    store(history, "run-1", [record(1)])
    with duckdb.connect(history.path) as connection:
        connection.execute("INSERT INTO scores SELECT * FROM scores WHERE scorer = 'context_recall'")
    audit = history.finish_run("run-1", status="complete")
    assert (audit.status, audit.duplicated, audit.reason) == ("incomplete", 1, "1 scores are there twice")


def test_a_run_with_more_scores_than_expected_is_not_complete(history: History) -> None:
    history.start_run(run_row(items=1))
    store(history, "run-1", [record(1), record(2)])
    assert history.finish_run("run-1", status="complete").status == "incomplete"


def test_a_failed_run_keeps_its_own_error(history: History) -> None:
    history.start_run(run_row(items=2))
    audit = history.finish_run("run-1", status="failed", error="the target is down")
    assert (audit.status, audit.reason) == ("failed", None)
    assert history.run("run-1").error == "the target is down"
    with pytest.raises(UsageError, match="cannot end"):
        history.finish_run("run-1", status="running")


def test_a_run_row_comes_back_as_it_was_and_starts_once(history: History) -> None:
    row = run_row(engine="local", host="h", pid=7, min_coverage=0.9)
    assert history.start_run(row)
    assert not history.start_run(replace(row, suite="other"))
    assert history.run("run-1") == row


def test_runs_are_found_by_id_by_its_beginning_and_as_the_last(history: History) -> None:
    first = run_row("20260101-aa")
    history.start_run(first)
    history.start_run(run_row("20260102-ab", suite="other"))
    assert history.run("last").run_id == "20260102-ab"
    assert history.run("20260101").run_id == "20260101-aa"
    assert [row.run_id for row in history.runs()] == ["20260102-ab", "20260101-aa"]
    assert [row.run_id for row in history.runs(1)] == ["20260102-ab"]
    assert history.runs(suite="docs") == [first]
    with pytest.raises(UsageError, match="2 runs begin with '2026'"):
        history.run("2026")
    with pytest.raises(UsageError, match=r"no run '20260101-ab'.*20260101-aa"):
        history.run("20260101-ab")
    with pytest.raises(UsageError, match="no run ''"):
        history.run("")


def test_a_missing_history_or_run_is_a_usage_error_and_makes_nothing(history: History, path: Path) -> None:
    with pytest.raises(UsageError, match="no history here yet"):
        history.runs()
    assert not history.exists()
    assert not path.parent.exists()
    history.start_run(run_row())
    for call in (history.store_scores, history.store_responses, history.store_contexts):
        with pytest.raises(UsageError, match="holds no run 'run-9'"):
            call("run-9", [record(1)])


def test_a_score_names_all_that_it_depends_on(history: History) -> None:
    history.start_run(run_row(target="module:callable"))
    store(history, "run-1", [record(2)])
    columns = (
        "suite, retriever, version, target, dataset_hash, judge, judge_params, prompt_version, scorer_version,"
        " exact_fraction, n, n_positive, counted"
    )
    (row,) = select(history.path, f"SELECT {columns} FROM scores WHERE scorer = ?", [RECALL]).rows
    assert dict(zip(columns.split(", "), row, strict=True)) == {
        "suite": "docs",
        "retriever": "docs-search",
        "version": "v1",
        "target": "module:callable",
        "dataset_hash": "d" * 32,
        "judge": "offline-lexical-1",
        "judge_params": "{}",
        "prompt_version": "lexical-1",
        "scorer_version": "1",
        "exact_fraction": "2/3",
        "n": 3,
        "n_positive": 2,
        "counted": True,
    }
