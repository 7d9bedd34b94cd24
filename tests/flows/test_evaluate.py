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


def test_a_report_is_linked_where_there_is_one(
    evaluate: Evaluate, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterFlowRunId

    def linked(run_id: str) -> dict[str, str]:
        ((flow_run_id,),) = workspace.sql(f"select flow_run_id from runs where run_id = '{run_id}'")
        of_run = ArtifactFilter(flow_run_id=ArtifactFilterFlowRunId(any_=[flow_run_id]))
        found = api(lambda client: client.read_artifacts(artifact_filter=of_run))
        return {each.type: each.data for each in found if each.key == "ragscore-drinks-report"}

    assert linked(evaluate()) == {}
    monkeypatch.setenv("RAGSCORE_REPORT_URL", "https://reports.example.com/{run_id}.html")
    served = evaluate()
    (link,) = linked(served).values()
    assert f"[Report of {served}](https://reports.example.com/{served}.html)" in link
    gc.collect()


def test_a_report_beside_the_history_is_linked_as_a_file(workspace: Workspace) -> None:
    from ragscore.flows.artifacts import report_link
    from ragscore.history import History

    workspace.ragscore("run", "suite.yaml", "--engine", "local")
    history = History(workspace.history)
    run = history.run("last")
    assert report_link(history, run) is None
    page = workspace.history.parent / "reports" / f"{run.run_id}.html"
    page.parent.mkdir()
    done = workspace.ragscore("report", "--output", str(page))
    assert done.returncode == 0, done.stderr
    assert report_link(history, run) == page.as_uri()


def test_an_error_that_nobody_expected_in_the_flow_reaches_who_waits_for_it(
    prefect_server: None, workspace: Workspace
) -> None:
    from ragscore.assembly import assemble
    from ragscore.flows.evaluate import evaluate_run
    from ragscore.history import History
    from ragscore.runs import Silent, begin
    from ragscore.suite_file import read_suite

    class Torn(Silent):
        def stored(self, batch: Any) -> None:
            raise RuntimeError("the terminal is gone")

    parts = assemble(read_suite(workspace.suite), run_id="torn")

    async def carried_out() -> None:
        await evaluate_run(begin(parts, History(workspace.history), run_id="torn", observer=Torn()))

    with pytest.raises(ExceptionGroup) as raised:
        asyncio.run(carried_out())
    assert "the terminal is gone" in str(raised.value.exceptions)
    gc.collect()


def test_a_gate_is_evaluated_once_and_its_result_handed_on(
    prefect_server: None, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    from prefect.settings import PREFECT_API_URL

    from ragscore.assembly import assemble
    from ragscore.cli.execution import execute
    from ragscore.flows.engine import Engine
    from ragscore.gate import evaluation
    from ragscore.history import History
    from ragscore.runs import begin
    from ragscore.suite_file import read_suite

    evaluated: list[str] = []
    real = evaluation._evaluated

    def counted(history: Any, run: Any, suite: Any) -> Any:
        evaluated.append(run.run_id)
        return real(history, run, suite)

    monkeypatch.setattr(evaluation, "_evaluated", counted)
    workspace.write_suite(gate={"context_precision": {"min": 0.9}})
    for engine in (Engine("prefect", f"Prefect ({PREFECT_API_URL.value()})"), Engine("local", "local")):
        workspace.order(all_="nothing")
        parts = assemble(read_suite(workspace.suite), run_id=f"by-{engine.name}")
        history = History(workspace.history)

        def opened(observer: Any, parts: Any = parts, history: Any = history, engine: Any = engine) -> Any:
            return begin(parts, history, run_id=f"by-{engine.name}", engine=engine.name, observer=observer)

        row = execute(parts, opened, engine)
        assert (row.status, row.gate_verdict) == ("complete", "fail")
        assert row.gate["checks"]
    assert evaluated == ["by-prefect", "by-local"]
    gc.collect()


def test_too_little_coverage_ends_the_flow_run_failed_as_not_evaluated(
    prefect_server: None, workspace: Workspace
) -> None:
    workspace.order(**{"What_about_tea?": "raise"})
    state = ended(workspace)
    assert state.type.value == "FAILED"
    assert str(state.message).startswith("could not be evaluated (exit 3): coverage of context_recall")
    gc.collect()
