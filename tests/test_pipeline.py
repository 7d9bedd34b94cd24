"""The chain, driven whole with the offline judge and a real history, by the local engine."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import pytest

from ragscore.assembly import Parts, assemble
from ragscore.datasets import Streamed
from ragscore.engine import evaluate_locally
from ragscore.history import Audit, History
from ragscore.items import Batch, Item, Status
from ragscore.pipeline import MOST_BATCHES, batch_size, open_batches
from ragscore.runs import Pending, Run, Silent, begin, parts_of, take_up
from ragscore.suite_file import read_suite
from tests.workspace import Workspace, items, numbered_items


def opened(workspace: Workspace, **changes: Any) -> Run:
    workspace.write_suite(**changes)
    return begin(assemble(read_suite(workspace.suite)), History(workspace.history))


def carried_out(run: Run) -> Audit:
    asyncio.run(evaluate_locally(run))
    return run.history.finish_run(run.run_id, status="complete")


def statuses(workspace: Workspace) -> dict[tuple[str, str], str]:
    rows = workspace.sql("select item_id, scorer, status from latest_scores")
    return {(item_id, scorer): status for item_id, scorer, status in rows}


def test_every_item_is_scored_by_every_scorer(workspace: Workspace) -> None:
    audit = carried_out(opened(workspace))
    assert (audit.status, audit.expected, audit.written) == ("complete", 8, 8)
    assert workspace.sql("select distinct status, score from scores") == [("ok", 1.0)]


def test_what_fails_for_one_item_is_a_status_in_its_rows_and_the_others_are_scored(workspace: Workspace) -> None:
    workspace.write_items(
        [*items(), {"id": "noref", "input": "What about tea again?"}, {"id": "un", "input": "?", "answerable": False}]
    )
    workspace.order(**{"What_about_tea?": "raise", "What_about_cocoa?": "nothing"})
    assert carried_out(opened(workspace)).ok
    for scorer in ("context_recall", "context_precision"):
        found = {item: status for (item, name), status in statuses(workspace).items() if name == scorer}
        assert found == {
            "tea": "target_error",
            "coffee": "ok",
            "cocoa": "no_context",
            "mate": "ok",
            "noref": "no_reference",
            "un": "unanswerable",
        }
    zeros = workspace.sql("select distinct score from scores where status in ('no_context', 'no_reference')")
    nulls = workspace.sql("select distinct score from scores where status in ('target_error', 'unanswerable')")
    assert (zeros, nulls) == ([(0.0,)], [(None,)])


@pytest.mark.parametrize(("setting", "mean", "n"), [("zero", 0.8, 5), ("exclude", 1.0, 4)])
def test_items_without_reference_count_in_means_as_the_suite_says(
    workspace: Workspace, setting: str, mean: float, n: int
) -> None:
    workspace.write_items([*items(), {"id": "noref", "input": "What about tea again?"}])
    carried_out(opened(workspace, missing_reference=setting))
    assert workspace.sql("select distinct mean, n, coverage from score_history") == [(mean, n, 1.0)]


def test_an_async_target_and_contexts_by_path(workspace: Workspace) -> None:
    target = {"retriever": "r", "version": "v1", "python": "drinks:retrieve_async"}
    carried_out(opened(workspace, target=target, contexts={"path": "hits[*]"}))
    assert workspace.sql("select distinct status, score from scores") == [("ok", 1.0)]
    assert workspace.sql("select distinct context_set, context_id from contexts order by 2") == [
        ("path:hits[*]", "0"),
        ("path:hits[*]", "1"),
    ]


def test_contexts_of_the_dataset_row(workspace: Workspace) -> None:
    workspace.write_items([{**row, "contexts": ["fog", row["reference"]]} for row in items()])
    carried_out(opened(workspace, contexts={"item": True}))
    assert workspace.sql("select distinct scorer, score from scores order by 1") == [
        ("context_precision", 0.5),
        ("context_recall", 1.0),
    ]


def test_static_contexts_are_judged_whatever_the_target_says(workspace: Workspace) -> None:
    target = {"retriever": "r", "version": "v1", "python": "drinks:text_only"}
    carried_out(opened(workspace, target=target, contexts={"static": [items()[0]["reference"]]}))
    rows = workspace.sql("select item_id, score from scores where scorer = 'context_recall' order by 1")
    assert rows == [("cocoa", 0.0), ("coffee", 0.0), ("mate", 0.0), ("tea", 1.0)]


def test_a_target_without_contexts_says_where_they_could_come_from(workspace: Workspace) -> None:
    target = {"retriever": "r", "version": "v1", "python": "drinks:text_only"}
    carried_out(opened(workspace, target=target))
    ((status, reason),) = workspace.sql("select distinct status, reason from scores")
    assert status == "context_error"
    assert "contexts: {path:" in reason


def test_scale_name_and_against_of_a_scorer(workspace: Workspace) -> None:
    scorers = ["context_recall", {"context_precision": {"scale": 10, "name": "precision10", "against": "reference"}}]
    carried_out(opened(workspace, scorers=scorers))
    rows = workspace.sql(
        "select scorer, kind, score, exact, scale, against from scores where item_id = 'tea' order by 1"
    )
    assert rows == [
        ("context_recall", "context_recall", 1.0, 1.0, 1.0, "reference"),
        ("precision10", "context_precision", 10.0, 1.0, 10.0, "reference"),
    ]


def test_precision_against_the_output_when_there_is_no_reference(workspace: Workspace) -> None:
    (workspace.folder / "drinks.py").write_text(
        "def both(question):\n"
        "    return {'output': 'Tea is made from leaves.', 'contexts': ['Fog.', 'Tea is made from leaves.']}\n"
    )
    workspace.write_items([{"id": "a", "input": "Tea?"}])
    target = {"retriever": "r", "version": "v1", "python": "drinks:both"}
    carried_out(opened(workspace, target=target))
    rows = workspace.sql("select scorer, status, score, against from scores order by 1")
    assert rows == [("context_precision", "ok", 0.5, "output"), ("context_recall", "no_reference", 0.0, None)]


def test_claims_that_a_person_gave_are_the_denominator(workspace: Workspace) -> None:
    claims = ["Tea is made from leaves of Camellia sinensis.", "Kangaroos hop.", "Penguins swim."]
    workspace.write_items([{**items()[0], "claims": claims}])
    carried_out(opened(workspace))
    ((fraction, n, positive),) = workspace.sql(
        "select exact_fraction, n, n_positive from scores where scorer = 'context_recall'"
    )
    assert (Fraction(fraction), n, positive) == (Fraction(1, 3), 3, 1)
    texts = workspace.sql("select text, positive from verdicts where kind = 'claim' order by rank")
    assert texts == [(claims[0], True), (claims[1], False), (claims[2], False)]


def test_a_failing_scorer_concerns_its_own_rows_only(workspace: Workspace) -> None:
    run = opened(workspace)

    class Broken:
        name, kind, version, scale = "context_precision", "context_precision", "1", Fraction(1)

        async def judge(self, sample: Any, *, judge: Any, claims: Any) -> Any:
            raise ZeroDivisionError("by design")

        def score(self, sample: Any, judged: Any) -> Any:
            raise AssertionError

    recall = run.parts.scorers[0]
    run.parts = Parts(**{**vars(run.parts), "scorers": (recall, Broken())})
    assert carried_out(run).ok
    assert workspace.sql("select distinct scorer, status, error from scores order by 1") == [
        ("context_precision", "scorer_error", "ZeroDivisionError: by design"),
        ("context_recall", "ok", None),
    ]


def test_a_second_pass_over_the_same_run_asks_nothing_and_writes_nothing(workspace: Workspace) -> None:
    run = opened(workspace)
    carried_out(run)
    before = workspace.sql("select * from scores order by item_id, scorer")
    asyncio.run(evaluate_locally(run))
    assert len(workspace.calls()) == 4
    assert workspace.sql("select * from scores order by item_id, scorer") == before


def test_resume_tries_again_only_what_failed_and_the_views_show_the_latest(workspace: Workspace) -> None:
    workspace.order(**{"What_about_tea?": "raise"})
    run = opened(workspace)
    carried_out(run)
    workspace.order()
    row = run.history.run(run.run_id)
    again = take_up(run.history, row, parts_of(row))
    assert [record.item.id for record in again.pending] == ["tea"]
    assert carried_out(again).ok
    assert workspace.calls()[4:] == ["What about tea?"]
    assert set(statuses(workspace).values()) == {"ok"}
    attempts = "select attempt, status from scores where item_id = 'tea' and scorer = 'context_recall' order by 1"
    assert workspace.sql(attempts) == [(1, "target_error"), (2, "ok")]


def test_a_target_that_comes_up_late_is_tried_again_and_nothing_is_scored_twice(workspace: Workspace) -> None:
    workspace.order(all_="first-30-calls-fail")
    workspace.write_items(numbered_items(10))
    assert carried_out(opened(workspace, retries=5)).ok
    assert workspace.sql("select status, count(*), max(attempt) from scores group by 1") == [("ok", 20, 1)]
    assert len(workspace.calls()) == 40


def test_a_dead_target_is_given_up_after_the_retries_of_the_first_batches(workspace: Workspace) -> None:
    workspace.order(all_="refuse")
    workspace.write_items(numbered_items(40))
    run = opened(workspace, retries=1, batch_size=5, judge={"model": "offline", "concurrency": 1})
    assert carried_out(run).ok
    assert workspace.sql("select distinct status from scores") == [("target_error",)]
    assert len(workspace.calls()) <= 2 * 3 * 5  # two batches, each tried twice and asked a last time
    ((said,),) = workspace.sql("select reason from scores where item_id = 'q039' limit 1")
    assert "connection refused" in said


def test_one_item_that_times_out_does_not_give_up_the_target(workspace: Workspace) -> None:
    workspace.write_items(numbered_items(3))
    workspace.order(**{"What_about_tea,_time_0?": "refuse"})
    assert carried_out(opened(workspace, retries=0, batch_size=1)).ok
    counts = dict(workspace.sql("select status, count(*) from scores group by 1"))
    assert counts == {str(Status.TARGET_ERROR): 2, str(Status.OK): 4}


def test_a_run_has_at_most_200_batches(workspace: Workspace) -> None:
    workspace.write_items(numbered_items(2001))
    run = opened(workspace, batch_size=5)
    made = list(run.pending.batches(batch_size(run)))
    assert len(made) <= MOST_BATCHES
    assert [record.position for batch in made for record in batch] == list(range(2001))


def test_a_run_holds_only_the_batches_that_are_open(workspace: Workspace) -> None:
    workspace.write_items(numbered_items(100))
    run = opened(workspace, batch_size=5, judge={"model": "offline", "concurrency": 1})
    made, stored, most_open = 0, 0, 0

    def counted(items: Sequence[Item]) -> Iterator[Item]:
        nonlocal made
        for item in items:
            made += 1
            yield item

    class Watching(Silent):
        def stored(self, batch: Batch) -> None:
            nonlocal stored, most_open
            stored += len(batch)
            most_open = max(most_open, made - stored)

    run.pending = Pending(Streamed(100, lambda: counted(run.parts.dataset.items)), 1)
    run.observer = Watching()
    assert carried_out(run).ok
    assert stored == 100
    assert most_open <= (open_batches(run) + 1) * 5


def test_the_means_in_the_history_are_those_of_the_verdict_rows(workspace: Workspace) -> None:
    workspace.write_items([*numbered_items(12), {"id": "noref", "input": "What about tea again?"}])
    workspace.order(**{"What_about_cocoa,_time_2?": "nothing", "What_about_tea,_time_4?": "raise"})
    (workspace.folder / "topics.json").write_text('{"tea": "Tea is made from leaves of Camellia sinensis."}')
    carried_out(opened(workspace))
    recomputed = """
        with recall as (
            select item_id, avg(positive::int) as exact from verdicts
            where kind = 'claim' and scorer = 'context_recall' group by 1
        ), hits as (
            select item_id, rank, positive, sum(positive::int) over (partition by item_id order by rank) as found
            from verdicts where kind = 'context' and scorer = 'context_precision'
        ), precision as (
            select item_id, coalesce(sum(found / rank) filter (positive) / nullif(count(*) filter (positive), 0), 0)
                as exact
            from hits group by 1
        ), every as (
            select 'context_recall' as scorer, * from recall union all select 'context_precision', * from precision
        )
        select s.scorer, avg(case when s.status = 'ok' then every.exact else 0 end)
        from scores s left join every using (scorer, item_id)
        where s.status in ('ok', 'no_context', 'no_reference') group by 1 order by 1
    """
    shown = workspace.sql("select scorer, mean_exact from score_history order by 1")
    for (scorer, mean), (name, expected) in zip(shown, workspace.sql(recomputed), strict=True):
        assert (scorer, mean) == (name, pytest.approx(expected, abs=1e-12))
