"""Old runs go, the ones that are needed stay, and what goes is told."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from ragscore.gate import LAST_PASSING, find_baseline
from ragscore.history import History, select
from ragscore.history.pruning import plan_pruning, prune

from .example import START, example
from .records import record, run_row, store


def test_the_last_runs_stay_with_the_last_that_passed_and_all_else_goes(tmp_path: Path) -> None:
    history = example(tmp_path / "history.duckdb")
    plan = plan_pruning(history, keep_runs=1)
    assert [row.run_id for row in plan.going] == ["run-3", "run-1"]
    assert plan.held == {"run-2": "the last run of docs that passed its gate"}
    assert (plan.kept, plan.rows["scores"], plan.rows["contexts"]) == (2, 17, 32)
    assert len(history.runs()) == 4
    gone = prune(history, plan)
    assert {table: count for table, count in plan.rows.items() if gone[table] != count} == {}
    assert [row.run_id for row in history.runs()] == ["run-4", "run-2"]
    for table in plan.rows:
        assert select(history.path, f"SELECT count(*) FROM {table} WHERE run_id IN ('run-1', 'run-3')").rows == [(0,)]
    assert select(history.path, "SELECT count(*) FROM claims").rows == [(12,)]
    assert plan_pruning(history, keep_runs=1).going == []


def test_by_age_and_by_suite(history: History) -> None:
    for day in range(4):
        for suite in ("docs", "other"):
            run_id = f"{suite}-{day}"
            history.start_run(run_row(run_id, suite=suite, items=1, started_at=START + timedelta(days=day)))
            store(history, run_id, [record(1)])
            history.finish_run(run_id, status="complete")
    plan = plan_pruning(history, keep_since=START + timedelta(days=2), suite="docs")
    assert [row.run_id for row in plan.going] == ["docs-1", "docs-0"]
    assert {row.run_id for row in plan_pruning(history, keep_since=START + timedelta(days=99)).going} == {
        f"{suite}-{day}" for suite in ("docs", "other") for day in range(3)
    }
    with pytest.raises(ValueError, match="nothing says what to keep"):
        plan_pruning(history)


def test_runs_in_progress_and_runs_that_a_gate_names_stay(history: History) -> None:
    document = {"gate": {"baseline": "run:old", "anchor": "version:v0"}}
    for day, (run_id, version) in enumerate([("old", "a"), ("anchor", "v0"), ("open", "b"), ("x", "b"), ("last", "b")]):
        row = run_row(run_id, version=version, suite_doc=document, started_at=START + timedelta(days=day))
        history.start_run(row)
        if run_id != "open":
            history.finish_run(run_id, status="failed")
    plan = plan_pruning(history, keep_runs=1)
    assert [row.run_id for row in plan.going] == ["x"]
    assert set(plan.held) == {"old", "anchor", "open"}


def test_what_the_next_run_of_a_retriever_is_measured_against_stays(history: History) -> None:
    nights = [("a", "pass"), ("a", "inconclusive"), ("a", "fail"), ("a", "fail"), ("b", "pass"), ("b", "pass")]
    for day, (retriever, verdict) in enumerate(nights):
        run_id = f"{retriever}-{day}"
        history.start_run(run_row(run_id, items=1, retriever=retriever, started_at=START + timedelta(days=day)))
        store(history, run_id, [record(1)])
        history.finish_run(run_id, status="complete")
        history.store_gate(run_id, verdict, {})

    def baselines() -> list[str | None]:
        found = [find_baseline(LAST_PASSING, history, suite="docs", retriever=each) for each in ("a", "b")]
        return [None if each is None else each.run.run_id for each in found]

    assert baselines() == ["a-1", "b-5"]
    plan = plan_pruning(history, keep_runs=1)
    assert [row.run_id for row in plan.going] == ["b-4", "a-2"]
    assert plan.held == {
        "a-3": "the last run of docs with a",
        "a-1": "the last run of docs with a that did not fail its gate",
        "a-0": "the last run of docs with a that passed its gate",
    }
    prune(history, plan)
    assert baselines() == ["a-1", "b-5"]


def test_a_claim_that_another_run_stands_on_stays(history: History) -> None:
    for day in range(2):
        history.start_run(run_row(f"run-{day}", items=1, started_at=START + timedelta(days=day)))
        store(history, f"run-{day}", [record(1)])
        history.finish_run(f"run-{day}", status="complete")
    gone = prune(history, plan_pruning(history, keep_runs=1))
    assert (gone["runs"], gone["claims"]) == (1, 0)
