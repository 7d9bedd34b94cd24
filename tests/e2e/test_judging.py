"""Runs that a model judges, as whole processes: killed, side by side, and what the server was asked in all."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.judges.judged_suites import JudgedSuite, port_items
from tests.llm_server.running import RunningServer, running
from tests.workspace import Workspace

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX"),
]

IN_FLIGHT = 8
Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def server() -> Iterator[RunningServer]:
    with running(latency_ms=30) as started:
        yield started


@pytest.fixture
def suite(workspace: Workspace, server: RunningServer) -> JudgedSuite:
    made = JudgedSuite(workspace, server, {"concurrency": IN_FLIGHT})
    made.write(port_items(40), batch_size=5)
    return made


@pytest.fixture
def started() -> Iterator[Start]:
    """Starts `ragscore run` in a suite's folder; what is left of it is ended."""
    processes: list[subprocess.Popen[str]] = []

    def start(suite: JudgedSuite, **environment: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            suite.workspace.command("run", "suite.yaml"),
            cwd=suite.folder,
            env=suite.workspace.environment(**environment),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            start_new_session=True,
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        with contextlib.suppress(ValueError):
            process.communicate(timeout=60)


def wait_until(holds: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    """A deadline for the machine, not a measure of time: ends as soon as it holds."""
    deadline = time.monotonic() + 60
    while not holds():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline, "it never came about"
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("then", "answered"), [(("resume",), 40), (("run", "suite.yaml"), 10)], ids=["resume", "run-again"]
)
def test_after_kill_9_no_call_that_was_answered_is_paid_twice(
    started: Start, suite: JudgedSuite, server: RunningServer, then: tuple[str, ...], answered: int
) -> None:
    process = started(suite)
    wait_until(lambda: server.stats()["answered"] >= answered, process)
    # From now on no answer is on its way when the process is killed: what was answered has arrived.
    server.control(latency_ms=3_600_000)
    quiet = {"answered": -1}

    def has_gone_quiet() -> bool:
        time.sleep(0.3)
        before, quiet["answered"] = quiet["answered"], server.stats()["answered"]
        return before == quiet["answered"] and 1 <= server.stats()["in_flight"] <= IN_FLIGHT

    wait_until(has_gone_quiet, process)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)
    server.control(latency_ms=0)
    done = suite.workspace.ragscore(*then)
    assert done.returncode == 0, done.stderr
    stats = server.stats()
    assert max(stats["honest"].values()) == 1
    # 120 questions and the probe; those in flight at the kill were asked twice and answered once.
    assert sum(stats["honest"].values()) == 121
    assert stats["requests"] <= 121 + IN_FLIGHT
    again = suite.workspace.ragscore("run", "suite.yaml")
    assert again.returncode == 0, again.stderr
    assert server.stats()["requests"] == stats["requests"]
    runs = [run for (run,) in suite.workspace.sql("select run_id from runs where status = 'complete' order by 1")]
    assert len(runs) == 2
    assert suite.scores(runs[0]) == suite.scores(runs[1])
    assert len(suite.frozen()) == 40


@pytest.mark.parametrize("moment", [30, 100])
def test_kill_9_at_any_moment_repeats_at_most_what_was_in_flight(
    started: Start, suite: JudgedSuite, server: RunningServer, moment: int
) -> None:
    process = started(suite)
    wait_until(lambda: server.stats()["answered"] >= moment, process)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)
    done = suite.workspace.ragscore("resume")
    assert done.returncode == 0, done.stderr
    honest = server.stats()["honest"]
    assert max(honest.values()) <= 2
    assert sum(count - 1 for count in honest.values()) <= IN_FLIGHT
    assert suite.workspace.sql("select count(*), count(distinct (item_id, scorer)) from latest_scores") == [(80, 80)]


@pytest.mark.parametrize("shared_memory", [True, False], ids=["one-memory", "a-memory-each"])
def test_two_processes_at_once_end_with_one_claim_set_per_reference_and_identical_scores(
    started: Start, suite: JudgedSuite, server: RunningServer, tmp_path: Path, shared_memory: bool
) -> None:
    # A model of moods: asked twice, it may say something else, about claims always and about verdicts where
    # the memory is shared (which is what makes two processes agree).
    server.control(share=0.5, faults=["fewer_claims", *(["yes_to_all"] if shared_memory else [])], in_a_row=9)
    homes = [str(tmp_path / name) for name in (("one", "one") if shared_memory else ("one", "two"))]
    first, second = (started(suite, RAGSCORE_HOME=home) for home in homes)
    for process in (first, second):
        _, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
    assert len(suite.frozen()) == len({line["hash"] for line in suite.frozen()}) == 40
    assert {len(line["claims"]) for line in suite.frozen()} == {1, 2}
    from ragscore.history import select

    rows: list[list[tuple[object, ...]]] = []
    for home in dict.fromkeys(homes):
        found = select(
            Path(home) / "history.duckdb",
            "select run_id, item_id, scorer, status, exact_fraction, n, claim_set from scores order by all",
        )
        by_run: dict[str, list[tuple[object, ...]]] = {}
        for run_id, *row in found.rows:
            by_run.setdefault(run_id, []).append(tuple(row))
        rows += by_run.values()
    assert len(rows) == 2
    assert rows[0] == rows[1]
