"""The history under real load: many processes at one file, and fifty kills at moments that nobody chose."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ragscore.history import select
from tests.workspace import Workspace, numbered_items

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")]

SCORES = (
    "select item_id, scorer, status, score, exact_fraction, reason from latest_scores where run_id = ? order by 1, 2"
)
KILLS = 50


def start(workspace: Workspace, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        workspace.command(*arguments),
        cwd=workspace.folder,
        env=workspace.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        start_new_session=True,
    )


def test_four_runs_at_once_and_a_reader_in_a_loop_lose_nothing_and_see_no_error(workspace: Workspace) -> None:
    workspace.write_items(numbered_items(60))
    workspace.write_suite(batch_size=3)
    workspace.order(all_=0.01)
    assert workspace.ragscore("run", "suite.yaml").returncode == 0
    writers = [start(workspace, "run", "suite.yaml") for _ in range(4)]
    readings = []
    while any(writer.poll() is None for writer in writers):
        read = workspace.ragscore("trend", "drinks", "--json")
        assert (read.returncode, read.stderr) == (0, "")
        readings.append(len(json.loads(read.stdout)[0]["points"]))
    for writer in writers:
        _, err = writer.communicate(timeout=120)
        assert writer.returncode == 0, err
        assert "error" not in err
    assert readings == sorted(readings)
    assert len(readings) > 1
    assert workspace.sql("select status, expected_scores, written_scores, count(*) from runs group by all") == [
        ("complete", 120, 120, 5)
    ]
    assert workspace.sql("select count(*), count(distinct (run_id, item_id, scorer, attempt)) from scores") == [
        (600, 600)
    ]
    assert not workspace.history.with_name(workspace.history.name + ".inbox").exists()


def test_fifty_kills_at_random_moments_leave_what_an_undisturbed_run_leaves(workspace: Workspace) -> None:
    workspace.write_items(numbered_items(40))
    workspace.write_suite(batch_size=4, judge={"model": "offline", "concurrency": 1})
    plain = workspace.folder / "plain.duckdb"
    assert workspace.ragscore("run", "suite.yaml", "--history", str(plain)).returncode == 0
    ((plain_run,),) = select(plain, "select run_id from runs").rows
    workspace.order(all_=0.03)
    moments = random.Random(20261130)
    kills = 0
    while kills < KILLS:
        unfinished = open_run(workspace)
        process = start(workspace, *(["resume", unfinished] if unfinished else ["run", "suite.yaml"]))
        wait_until_it_writes(workspace, process)
        time.sleep(moments.uniform(0, 0.8))
        if process.poll() is None:
            kills += 1
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=60)
    workspace.order()
    if unfinished := open_run(workspace):
        done = workspace.ragscore("resume", unfinished)
        assert done.returncode == 0, done.stderr
    runs = workspace.sql("select run_id, status, expected_scores, written_scores from runs")
    assert runs
    for run_id, *ended in runs:
        assert ended == ["complete", 80, 80]
        assert select(workspace.history, SCORES, [run_id]).rows == select(plain, SCORES, [plain_run]).rows
    for table, cell in (
        ("scores", "(run_id, item_id, scorer, attempt)"),
        ("items", "(run_id, item_id, attempt)"),
        ("contexts", "(run_id, item_id, context_set, attempt, rank)"),
        ("context_sets", "(run_id, item_id, context_set, attempt)"),
        ("verdicts", "(run_id, item_id, scorer, attempt, kind, verdict_id)"),
    ):
        assert workspace.sql(f"select count(*) - count(distinct {cell}) from {table}") == [(0,)]
    counts = "select (select count(*) from latest_verdicts) / (select count(*) from runs)"
    assert workspace.sql(counts) == select(plain, counts).rows


def open_run(workspace: Workspace) -> str | None:
    if not workspace.history.exists():
        return None
    found = workspace.sql("select run_id from runs where status <> 'complete'")
    assert len(found) <= 1
    return str(found[0][0]) if found else None


def wait_until_it_writes(workspace: Workspace, process: subprocess.Popen[str]) -> None:
    """Until the target is asked: before that, most of the time goes into starting Python."""
    log: Path = workspace.folder / "calls.log"
    asked = log.stat().st_size
    deadline = time.monotonic() + 60
    while log.stat().st_size == asked and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
