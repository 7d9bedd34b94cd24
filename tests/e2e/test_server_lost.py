"""A Prefect server that dies under `ragscore run`, whose judge is a model that is paid by the call."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.prefect_site import Site, free_port, wait_for
from tests.judges.judged_suites import JudgedSuite, port_items
from tests.llm_server.running import running
from tests.workspace import make_workspace

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")]

#: Claims, attribution and relevance of 40 items, and the probe.
PAID = 121
IN_FLIGHT = 4


@dataclass
class Run:
    """A suite whose judge counts its calls, a server, and `ragscore run` in the middle."""

    suite: JudgedSuite
    site: Site
    process: subprocess.Popen[str] | None = None
    others: frozenset[str] = frozenset()

    @property
    def said(self) -> str:
        return (self.suite.folder / "said").read_text(encoding="utf-8")

    def begin(self) -> None:
        self.others = frozenset(each["id"] for each in self.site.flow_runs("evaluate"))
        with (self.suite.folder / "said").open("w", encoding="utf-8") as said:
            self.process = subprocess.Popen(
                self.suite.workspace.command("run", "suite.yaml"),
                cwd=self.suite.folder,
                env=self.site.environment(),
                stdout=subprocess.PIPE,
                stderr=said,
                text=True,
                start_new_session=True,
            )
        wait_for(lambda: self.suite.server.stats()["answered"] >= 20 or self.exit_code is not None, "a sixth is judged")

    @property
    def exit_code(self) -> int | None:
        return self.process.poll() if self.process is not None else None

    def end(self) -> tuple[int, str]:
        assert self.process is not None
        out, _ = self.process.communicate(timeout=120)
        return self.process.returncode, out

    def slow_down(self) -> None:
        """So slow that the run cannot end before the test says so."""
        self.suite.server.control(latency_ms=10_000)

    def go_on(self) -> None:
        self.suite.server.control(latency_ms=0)

    def sql(self, query: str) -> list[tuple[Any, ...]]:
        return self.suite.workspace.sql(query)

    def resume(self) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.suite.workspace.command("resume"),
            cwd=self.suite.folder,
            env=self.site.environment(),
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )

    def flow_runs(self) -> list[dict[str, Any]]:
        return [each for each in self.site.flow_runs("evaluate") if each["id"] not in self.others]

    def tasks(self) -> list[dict[str, Any]]:
        ids = [each["id"] for each in self.flow_runs()]
        return list(self.site.post("/task_runs/filter", {"flow_runs": {"id": {"any_": ids}}, "limit": 200}))

    def is_told(self) -> bool:
        ((run_id,),) = self.sql("select run_id from runs")
        return any(each["payload"]["run_id"] == run_id for each in self.site.events("ragscore.run.completed"))

    def holds_each_score_once(self) -> bool:
        query = "select count(*), count(distinct (item_id, scorer)), count(*) filter (status = 'ok') from scores"
        return self.sql(query) == [(80, 80, 80)]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A server that tests kill and start again."""
    made = Site(tmp_path_factory.mktemp("site"), free_port())
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def run(site: Site, tmp_path: Path) -> Iterator[Run]:
    if not site.answers():
        site.start_server()
    with running(latency_ms=20) as llm:
        suite = JudgedSuite(make_workspace(tmp_path), llm, {"concurrency": IN_FLIGHT, "timeout_s": 300})
        suite.write(port_items(40), batch_size=5, gate={"context_recall": {"min": 0.5}})
        made = Run(suite, site)
        try:
            made.begin()
            yield made
        finally:
            if made.process is not None:
                made.process.kill()
                made.process.communicate()


def is_quiet(said: str) -> bool:
    """Nothing of Prefect's own is on the terminal."""
    return not any(word in said for word in ("Traceback", "Error logging", "prefect.", "httpx", "items remaining"))


def test_a_run_goes_on_without_a_dead_server_and_resume_tells_it_without_a_paid_call(run: Run) -> None:
    run.slow_down()
    run.site.stop(run.site.server)
    wait_for(lambda: "does not answer any more" in run.said, "the loss is said")
    run.go_on()
    code, out = run.end()
    ((run_id, status),) = run.sql("select run_id, status from runs")
    assert (code, status) == (0, "complete"), run.said
    assert is_quiet(run.said), run.said
    assert run.said.count("does not answer any more; the run goes on") == 1
    assert f"`ragscore resume {run_id}` tells it" in run.said
    assert "gate: PASS" in out
    assert run.holds_each_score_once()
    assert run.suite.requests() == PAID
    refused = run.resume()
    assert refused.returncode == 3
    assert "the Prefect API does not answer" in refused.stderr

    run.site.start_server()
    assert not run.is_told()
    resumed = run.resume()
    assert resumed.returncode == 0, resumed.stderr
    assert run.suite.requests() == PAID
    assert run.holds_each_score_once()
    assert [each["state_type"] for each in run.flow_runs()] == ["RUNNING", "COMPLETED"]
    wait_for(run.is_told, "the server is told of the run")
    assert run.sql("select run_id, status, gate_verdict from runs") == [(run_id, "complete", "pass")]


def test_a_server_that_comes_back_is_told_everything(run: Run) -> None:
    run.slow_down()
    run.site.stop(run.site.server)
    wait_for(lambda: "does not answer any more" in run.said, "the loss is said")
    run.site.start_server()
    wait_for(lambda: "answers again" in run.said, "the return is said")
    run.go_on()
    code, _ = run.end()
    assert code == 0, run.said
    assert is_quiet(run.said), run.said
    assert "was not told" not in run.said
    assert run.suite.requests() == PAID
    assert run.holds_each_score_once()
    (flow_run,) = run.flow_runs()
    assert (flow_run["state_type"], flow_run["state"]["message"]) == ("COMPLETED", "gate passed")
    wait_for(run.is_told, "the server is told of the run")
    # Also of the tasks that began and ended while it was away.
    wait_for(lambda: {each["state_type"] for each in run.tasks()} == {"COMPLETED"}, "the tasks are told")
    assert len(run.tasks()) == 1 + 5 * 8


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_run_that_is_stopped_without_its_server_is_finished_by_resume_without_a_second_bill(
    run: Run, how: signal.Signals
) -> None:
    run.slow_down()
    run.site.stop(run.site.server)
    wait_for(lambda: "does not answer any more" in run.said, "the loss is said")
    assert run.process is not None
    run.process.send_signal(how)
    if how == signal.SIGINT:
        run.go_on()
    code, out = run.end()
    assert is_quiet(run.said), run.said
    ((run_id, status),) = run.sql("select run_id, status from runs")
    if how == signal.SIGINT:
        assert (code, status) == (3, "cancelled")
        assert f"ragscore resume {run_id}" in out
    run.go_on()
    ((before,),) = run.sql("select count(*) from scores")
    assert 0 <= before < 80
    run.site.start_server()
    resumed = run.resume()
    assert resumed.returncode == 0, resumed.stderr
    assert run.holds_each_score_once()
    stats = run.suite.server.stats()
    # Answered once each; only what was in flight at a kill -9 is asked again.
    assert max(stats["honest"].values()) == 1
    assert sum(stats["honest"].values()) == PAID
    assert stats["requests"] <= PAID + (IN_FLIGHT if how == signal.SIGKILL else 0)
    assert run.sql("select run_id, status, gate_verdict from runs") == [(run_id, "complete", "pass")]
    assert run.flow_runs()[-1]["state_type"] == "COMPLETED"
