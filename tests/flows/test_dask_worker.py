"""What a Dask worker does, without Dask: it opens no history; what it hands back gives the rows of any other run."""

from __future__ import annotations

import asyncio
import pickle
from pathlib import Path

import pytest

from ragscore import pipeline
from ragscore.assembly import assemble
from ragscore.engine import evaluate_locally
from ragscore.errors import TargetDown, UsageError
from ragscore.flows import dask_worker
from ragscore.flows.clusters import checked
from ragscore.flows.dask_worker import Assignment, Done, Errand, HandedOver, suite_share
from ragscore.flows.shared_limits import GlobalAllowance, _Bucket
from ragscore.history import History
from ragscore.items import Batch
from ragscore.pipeline import Stages
from ragscore.runs import Run, begin
from ragscore.suite_file import check_suite, read_suite
from tests.workspace import Workspace, numbered_items

SCORES = "select item_id, scorer, status, exact_fraction, reason from latest_scores where run_id = '{}' order by all"


def opened(workspace: Workspace) -> Run:
    return begin(assemble(read_suite(workspace.suite)), History(workspace.history))


def sent(errand: Errand) -> Done:
    """The errand as it goes over to another process, and what comes back."""
    there = pickle.loads(pickle.dumps(errand))
    done: Done = pickle.loads(pickle.dumps(dask_worker.carried_out(there)))
    return done


def elsewhere(run: Run) -> Stages:
    assignment = Assignment(run.history.run(run.run_id), 2)

    async def stage(name: str, batch: Batch, told: HandedOver) -> Done:
        return await asyncio.to_thread(sent, Errand(assignment, name, batch, told))

    async def invoke_target(run: Run, batch: Batch) -> Batch:
        done = await stage("invoke_target", batch, HandedOver())
        run.history.store_responses(run.run_id, done.to_write.answered)
        return done.batch

    async def extract_contexts(run: Run, batch: Batch) -> Batch:
        done = await stage("extract_contexts", batch, HandedOver())
        run.history.store_contexts(run.run_id, done.to_write.extracted)
        return done.batch

    async def judge(run: Run, batch: Batch) -> Batch:
        return (await stage("judge", batch, HandedOver())).batch

    return Stages(invoke_target=invoke_target, extract_contexts=extract_contexts, judge=judge)


def test_what_workers_hand_back_gives_the_rows_of_a_run_in_one_process(workspace: Workspace) -> None:
    workspace.write_items(numbered_items(12))
    workspace.order(**{"What_about_tea,_time_4?": "raise", "What_about_cocoa,_time_2?": "nothing"})
    workspace.write_suite(batch_size=5)
    here, there = opened(workspace), opened(workspace)
    asyncio.run(evaluate_locally(here))
    asyncio.run(pipeline.evaluate(there, elsewhere(there)))
    for run in (here, there):
        assert run.history.finish_run(run.run_id, status="complete").ok
    assert workspace.sql(SCORES.format(there.run_id)) == workspace.sql(SCORES.format(here.run_id)) != []
    dask_worker.close_run(there.run_id)


def test_a_worker_asks_nothing_of_what_it_is_told_is_there(workspace: Workspace) -> None:
    run = opened(workspace)
    batch = next(run.pending.batches(25))
    assignment = Assignment(run.history.run(run.run_id), 1)
    first = sent(Errand(assignment, "invoke_target", batch, HandedOver()))
    assert (first.answers, len(first.to_write.answered)) == (len(batch), len(batch))
    asked = len(workspace.calls())
    known = {record.item.id: (record.response, 1) for record in first.batch if record.response is not None}
    again = sent(Errand(assignment, "invoke_target", batch, HandedOver(responses=known)))
    assert (len(workspace.calls()), again.to_write.answered, again.batch) == (asked, [], first.batch)
    dask_worker.close_run(run.run_id)


def test_a_batch_that_cannot_go_on_raises_the_same_error_over_there(workspace: Workspace) -> None:
    workspace.order(all_="refuse")
    run = opened(workspace)
    errand = Errand(Assignment(run.history.run(run.run_id), 1), "invoke_target", list(run.pending), HandedOver())
    with pytest.raises(TargetDown, match="connection refused") as caught:
        dask_worker.carried_out(errand)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    dask_worker.close_run(run.run_id)


def test_what_a_worker_is_not_answered_the_last_time_comes_back_to_be_written(workspace: Workspace) -> None:
    workspace.order(all_="refuse")
    run = opened(workspace)
    batch = list(run.pending)
    errand = Errand(Assignment(run.history.run(run.run_id), 1), "ask_a_last_time", batch, HandedOver())
    done = sent(errand)
    run.history.store_responses(run.run_id, done.to_write.answered)
    kept = run.history.responses(run.run_id, [record.item.id for record in batch])
    assert len(kept) == len(batch)
    assert all("connection refused" in str(response.error) for response, _ in kept.values())
    assert [record.response for record in done.batch] == [kept[record.item.id][0] for record in batch]
    dask_worker.close_run(run.run_id)


def test_workers_have_parts_of_what_a_suite_allows(tmp_path: Path) -> None:
    suite = check_suite(
        {
            "name": "shared",
            "dataset": "questions.jsonl",
            "target": {"python": "a:b", "concurrency": 8, "rps": 3},
            "judge": {
                "jury": ["openai/a", {"model": "openai/b", "concurrency": 2}],
                "concurrency": 10,
                "rpm": 90,
                "budget_usd": 6,
                "budget_tokens": 100,
            },
            "scorers": ["context_recall"],
        },
        base_dir=tmp_path,
    )
    part = suite_share(suite, 3).suite
    assert (part.target.concurrency, part.target.rps) == (2, 1.0)
    seats = [judge for judge, _ in part.judge.seats()]
    assert [(judge.model, judge.concurrency) for judge in seats] == [("openai/a", 3), ("openai/b", 1)]
    # What holds per minute is shared through the server, and stays as it is here.
    assert {(judge.rpm, judge.budget_usd, judge.budget_tokens) for judge in seats} == {(90, 2.0, 33)}
    assert suite_share(suite, 1) is suite


@pytest.mark.parametrize("given", ["tcp://scheduler:8786", "scheduler:8786", "tls://10.0.0.1:8786", "local", "local:4"])
def test_clusters_are_named_by_address_or_as_local(given: str) -> None:
    pytest.importorskip("prefect_dask")
    assert checked(given) == given


@pytest.mark.parametrize("given", ["", "loca", "local:0", "local:many", "scheduler", "http://scheduler"])
def test_what_names_no_cluster_is_refused_with_the_ways_to_write_it(given: str) -> None:
    with pytest.raises(UsageError, match="write local, local:4, or the address of a scheduler"):
        checked(given)


@pytest.mark.parametrize(("tokens", "taken"), [(50, 50), (5_000, 5_000), (99_000, 10_000)])
async def test_a_request_takes_leave_for_all_of_its_tokens_in_pieces_of_the_bucket(
    tokens: int, taken: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    occupied: list[int] = []

    async def counted(name: str, *, occupy: int, strict: bool) -> None:
        assert strict
        occupied.append(occupy)

    monkeypatch.setattr("prefect.concurrency.asyncio.rate_limit", counted)
    allowance = GlobalAllowance("limit", tpm=10_000)
    allowance._buckets = {"tokens": _Bucket("limit-tpm", 10_000, 1)}  # as the server has it
    await allowance.take(tokens)
    assert sum(occupied) == taken
    assert max(occupied) <= 1_000
