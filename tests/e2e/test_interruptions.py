"""Real processes that are killed or interrupted in the middle of a run, and what `resume` makes of it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from tests.workspace import Workspace, numbered_items

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")]

SCORES = "select item_id, scorer, status, score, exact_fraction, reason from latest_scores order by 1, 2"


Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def started() -> Iterator[Start]:
    """Starts commands in a user's folder; what is left of them is ended."""
    processes: list[subprocess.Popen[str]] = []

    def start(workspace: Workspace, *arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            workspace.command(*arguments),
            cwd=workspace.folder,
            env=workspace.environment(),
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
        kill(process)
        with contextlib.suppress(ValueError):  # its pipes were read to the end
            process.communicate(timeout=60)


def kill(process: subprocess.Popen[str]) -> None:
    """kill -9 of the process and of a throwaway server that it may have started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def press_ctrl_c(process: subprocess.Popen[str]) -> None:
    """As a terminal does it: the whole foreground group gets the signal, a throwaway server too."""
    os.killpg(process.pid, signal.SIGINT)


def wait_until(holds: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    """A deadline for the machine, not a measure of time: ends as soon as it holds."""
    deadline = time.monotonic() + 60
    while not holds():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline, "it never came about"
        time.sleep(0.02)


def stored(workspace: Workspace) -> int:
    if not workspace.history.exists():
        return 0
    ((count,),) = workspace.sql("select count(*) from scores")
    return int(count)


@pytest.fixture
def slow(workspace: Workspace) -> Workspace:
    """40 items in batches of 5, each taking a twentieth of a second."""
    workspace.write_items(numbered_items(40))
    workspace.write_suite(
        batch_size=5,
        judge={"model": "offline", "concurrency": 1},
        target={"retriever": "r", "version": "v1", "python": "drinks:retrieve", "concurrency": 2},
    )
    workspace.order(all_=0.05)
    return workspace


def undisturbed(slow: Workspace) -> list[tuple[object, ...]]:
    slow.order()
    other = slow.folder / "undisturbed.duckdb"
    assert slow.ragscore("run", "suite.yaml", "--history", str(other)).returncode == 0
    from ragscore.history import select

    return select(other, SCORES).rows


@pytest.mark.parametrize("engine", ["local", "prefect"])
def test_kill_9_leaves_a_history_that_resume_completes_without_repeating(
    started: Start, slow: Workspace, engine: str
) -> None:
    process = started(slow, "run", "suite.yaml", "--engine", engine)
    wait_until(lambda: stored(slow) >= 10, process)
    kill(process)
    process.communicate(timeout=60)
    ((run_id, status),) = slow.sql("select run_id, status from runs")
    assert status == "running"
    answered = {item for (item,) in slow.sql("select item_id from items")}
    asked_before = len(slow.calls())
    slow.order()
    resumed = slow.ragscore("resume", run_id)
    assert resumed.returncode == 0, resumed.stderr
    asked_again = slow.calls()[asked_before:]
    inputs = {row["id"]: row["input"] for row in numbered_items(40)}
    assert sorted(asked_again) == sorted(question for item, question in inputs.items() if item not in answered)
    assert slow.sql("select count(*), count(distinct (item_id, scorer)) from latest_scores") == [(80, 80)]
    assert slow.sql("select status, attempt from runs") == [("complete", 2)]
    rows = slow.sql(SCORES)
    assert rows == undisturbed(slow)


def test_kill_9_in_the_middle_of_a_batch_keeps_what_was_answered(started: Start, slow: Workspace) -> None:
    slow.write_suite(target={"retriever": "r", "version": "v1", "python": "drinks:retrieve", "concurrency": 1})
    inputs = {row["id"]: row["input"] for row in numbered_items(40)}
    # The twelfth question of the batch of 25 has no answer while the process lives.
    slow.order(**{list(inputs.values())[11].replace(" ", "_"): 600})

    def answered() -> set[str]:
        rows = slow.sql("select item_id from items") if slow.history.exists() else []
        return {item_id for (item_id,) in rows}

    process = started(slow, "run", "suite.yaml")
    wait_until(lambda: len(answered()) == 11 and len(slow.calls()) == 12, process)
    kill(process)
    process.communicate(timeout=60)
    kept = answered()
    assert (len(kept), stored(slow)) == (11, 0)
    slow.order()
    assert slow.ragscore("resume").returncode == 0
    assert sorted(slow.calls()[12:]) == sorted(text for item, text in inputs.items() if item not in kept)


@pytest.mark.parametrize("engine", ["local", "prefect"])
def test_ctrl_c_once_finishes_what_is_in_flight_and_says_how_to_resume(
    started: Start, slow: Workspace, engine: str
) -> None:
    process = started(slow, "run", "suite.yaml", "--engine", engine)
    wait_until(lambda: stored(slow) >= 10, process)
    press_ctrl_c(process)
    out, err = process.communicate(timeout=60)
    ((run_id, status),) = slow.sql("select run_id, status from runs")
    assert (process.returncode, status) == (3, "cancelled")
    assert "finishing what is in flight" in err
    assert f"ragscore resume {run_id}" in out
    assert "Traceback" not in err
    # What was asked was also scored: nothing in flight was thrown away.
    ((scored,),) = slow.sql("select count(*) from scores")
    assert scored == 2 * len(slow.calls()) < 80
    slow.order()
    assert slow.ragscore("resume").returncode == 0
    assert len(slow.calls()) == 40


def test_ctrl_c_twice_stops_now_and_leaves_the_history_consistent(started: Start, slow: Workspace) -> None:
    slow.order(all_=1.0)
    process = started(slow, "run", "suite.yaml")
    wait_until(lambda: len(slow.calls()) >= 2, process)
    press_ctrl_c(process)
    assert process.stderr is not None
    assert any("finishing" in line for line in process.stderr)
    press_ctrl_c(process)
    process.communicate(timeout=60)
    assert slow.sql("select status from runs") == [("cancelled",)]
    slow.order()
    assert slow.ragscore("resume").returncode == 0
    assert slow.sql("select count(*), count(distinct (item_id, scorer)) from latest_scores") == [(80, 80)]


def test_a_run_that_a_living_process_writes_is_not_taken_up(started: Start, slow: Workspace) -> None:
    process = started(slow, "run", "suite.yaml")
    wait_until(lambda: stored(slow) >= 2, process)
    refused = slow.ragscore("resume")
    press_ctrl_c(process)
    process.communicate(timeout=60)
    assert refused.returncode == 2
    assert f"still being written by process {process.pid}" in refused.stderr


def test_two_runs_at_once_into_one_history_lose_nothing(started: Start, slow: Workspace) -> None:
    slow.order(all_=0.01)
    first, second = (started(slow, "run", "suite.yaml") for _ in range(2))
    for process in (first, second):
        _, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
    assert slow.sql("select status, written_scores from runs") == [("complete", 80), ("complete", 80)]
    assert slow.sql("select count(*), count(distinct (run_id, item_id, scorer)) from scores") == [(160, 160)]


def test_a_hung_target_call_does_not_keep_a_finished_run_from_ending(workspace: Workspace) -> None:
    workspace.order(**{"What_about_tea?": 600})
    workspace.write_suite(
        retries=0, target={"retriever": "r", "version": "v1", "python": "drinks:retrieve", "timeout_s": 0.5}
    )
    done = workspace.ragscore("run", "suite.yaml")
    assert done.returncode == 3
    assert "no answer within 0.5 s" in done.stdout
    assert os.path.exists(workspace.history)
