"""The flow on a real Prefect server (one per test session), with the same stages as the local engine."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.workspace import Workspace, make_workspace, numbered_items

Evaluate = Callable[[], str]

# Prefect leaves sockets to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")

SCORES = "select item_id, scorer, status, score, exact_fraction, reason, attempt from scores order by 1, 2"


@pytest.fixture(scope="session")
def prefect_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A real server process with a database of its own."""
    from prefect.testing.utilities import prefect_test_harness

    with prefect_test_harness(server_startup_timeout=120):
        yield


@pytest.fixture
def evaluate(prefect_server: None, workspace: Workspace) -> Iterator[Evaluate]:
    def run() -> str:
        from ragscore.flows.evaluate import evaluate

        return str(asyncio.run(evaluate(str(workspace.suite), str(workspace.history))))

    yield run
    gc.collect()


def ended(workspace: Workspace, **parameters: Any) -> Any:
    """The final state of the flow."""
    from ragscore.flows.evaluate import evaluate

    async def asked() -> Any:
        return await evaluate(str(workspace.suite), str(workspace.history), **parameters, return_state=True)

    return asyncio.run(asked())


def api(call: Any) -> Any:
    from prefect.client.orchestration import get_client

    async def asked() -> Any:
        async with get_client() as client:
            return await call(client)

    return asyncio.run(asked())


def test_the_flow_stores_the_same_rows_as_the_local_engine(
    evaluate: Evaluate, workspace: Workspace, tmp_path: Path
) -> None:
    workspace.write_items(numbered_items(30))
    workspace.order(**{"What_about_tea,_time_4?": "raise", "What_about_cocoa,_time_2?": "nothing"})
    evaluate()
    by_flow = workspace.sql(SCORES)
    (tmp_path / "local").mkdir()
    local = make_workspace(tmp_path / "local")
    local.write_items(numbered_items(30))
    local.order(**{"What_about_tea,_time_4?": "raise", "What_about_cocoa,_time_2?": "nothing"})
    local.ragscore("run", "suite.yaml", "--engine", "local")
    assert len(by_flow) == 60
    assert by_flow == local.sql(SCORES)


def test_task_runs_are_named_by_their_stage_and_items_and_the_run_by_the_flow_run(
    evaluate: Evaluate, workspace: Workspace
) -> None:
    from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId

    workspace.write_items(numbered_items(30))
    run_id = evaluate()
    ((flow_run_id, engine, status),) = workspace.sql("select flow_run_id, engine, status from runs")
    assert (engine, status) == ("prefect", "complete")
    assert flow_run_id.endswith(run_id.split("-")[-1])
    only_this = FlowRunFilter(id=FlowRunFilterId(any_=[flow_run_id]))
    tasks = api(lambda client: client.read_task_runs(flow_run_filter=only_this))
    assert {task.name for task in tasks} == {
        "load dataset",
        *(
            f"{stage} items {items}"
            for stage in ("invoke target", "extract contexts", "judge", "score", "store")
            for items in ("1-25", "26-30")
        ),
    }


def test_a_target_that_comes_up_late_is_tried_again_by_its_task(evaluate: Evaluate, workspace: Workspace) -> None:
    workspace.order(all_="first-30-calls-fail")
    workspace.write_items(numbered_items(10))
    evaluate()
    assert workspace.sql("select status, count(*), max(attempt) from scores group by 1") == [("ok", 20, 1)]
    assert len(workspace.calls()) == 40


def test_a_fault_in_the_suite_fails_the_flow_with_the_sentence_and_writes_nothing(
    evaluate: Evaluate, workspace: Workspace
) -> None:
    from ragscore.errors import SuiteError

    workspace.write_suite(scorers=["context_recal"])
    with pytest.raises(SuiteError, match="did you mean `context_recall`"):
        evaluate()
    assert not workspace.history.exists()


def test_a_gate_that_fails_ends_the_flow_run_failed_with_the_reason_and_its_artifacts(
    prefect_server: None, workspace: Workspace
) -> None:
    from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterFlowRunId

    workspace.write_suite(gate={"context_precision": {"min": 0.9}})
    workspace.order(**{"What_about_tea?": "nothing", "What_about_mate?": "nothing"})
    state = ended(workspace, version="1.10")
    assert (state.type.value, state.name) == ("FAILED", "Failed")
    assert str(state.message).startswith("gate failed (exit 1): context_precision mean 0.50")
    ((flow_run_id, version, verdict),) = workspace.sql("select flow_run_id, version, gate_verdict from runs")
    assert (version, verdict) == ("1.10", "fail")
    of_run = ArtifactFilter(flow_run_id=ArtifactFilterFlowRunId(any_=[flow_run_id]))
    found = {each.key: each for each in api(lambda client: client.read_artifacts(artifact_filter=of_run))}
    assert set(found) == {f"ragscore-drinks-{each}" for each in ("progress", "summary", "worst")}
    assert found["ragscore-drinks-progress"].data == 100
    assert "gate FAILED" in str(found["ragscore-drinks-summary"].data)
    assert "tea" in str(found["ragscore-drinks-worst"].data)
    gc.collect()


def test_too_little_coverage_ends_the_flow_run_failed_as_not_evaluated(
    prefect_server: None, workspace: Workspace
) -> None:
    workspace.order(**{"What_about_tea?": "raise"})
    state = ended(workspace)
    assert state.type.value == "FAILED"
    assert str(state.message).startswith("could not be evaluated (exit 3): coverage of context_recall")
    gc.collect()
