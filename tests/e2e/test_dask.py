"""Batches on a Dask cluster: worker processes ask target and judge, one process writes, and the limits hold for all."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from subprocess import Popen

import httpx
import pytest

from tests.e2e.prefect_site import Site, descendants, free_port, wait_for
from tests.judges.judged_suites import JudgedSuite, port_items
from tests.llm_server.running import RunningServer, running
from tests.workspace import make_workspace

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")]

pytest.importorskip("prefect_dask")

ITEMS = 40
ROWS = "select count(*) from {} where run_id = '{}'"
#: Writes down which process was asked, and finds nothing: the contexts are the items' own.
TARGET = """
import os, pathlib, time
HERE = pathlib.Path(__file__).parent

def retrieve(question):
    with open(HERE / "asked.log", "a", encoding="utf-8") as log:
        log.write(f"{os.getpid()} {question}\\n")
    time.sleep(0.02)
    return {"output": question}
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A Prefect server for all tests here."""
    made = Site(tmp_path_factory.mktemp("site"), free_port())
    try:
        made.start_server()
        yield made
    finally:
        made.close()


@pytest.fixture
def server() -> Iterator[RunningServer]:
    with running(latency_ms=20) as started:
        yield started


def judged(folder: Path, server: RunningServer, **judge: object) -> JudgedSuite:
    """A suite of 40 items that a model judges, with a home of its own: nothing is remembered from elsewhere."""
    folder.mkdir()
    made = JudgedSuite(make_workspace(folder), server, {"concurrency": 8, **judge})
    (folder / "pids.py").write_text(TARGET, encoding="utf-8")
    made.write(port_items(ITEMS), batch_size=5, target={"python": "pids:retrieve", "version": "v1"})
    return made


def asked(suite: JudgedSuite) -> list[tuple[int, str]]:
    """Process and question of every call of the target."""
    log = suite.folder / "asked.log"
    lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    return [(int(pid), question) for pid, _, question in (line.partition(" ") for line in lines)]


def last_run(suite: JudgedSuite) -> str:
    return str(suite.workspace.sql("select run_id from runs order by started_at desc limit 1")[0][0])


def begun(suite: JudgedSuite, site: Site, *arguments: str) -> Popen[str]:
    return Popen(
        suite.workspace.command("run", "suite.yaml", *arguments),
        cwd=suite.folder,
        env=suite.workspace.environment(PREFECT_API_URL=site.api),
        text=True,
        encoding="utf-8",
        start_new_session=True,
        stdout=-1,
        stderr=-1,
    )


def test_two_worker_processes_give_the_scores_and_rows_of_the_local_engine(
    site: Site, server: RunningServer, tmp_path: Path
) -> None:
    here, there = judged(tmp_path / "here", server), judged(tmp_path / "there", server)
    assert here.workspace.ragscore("run", "suite.yaml", "--engine", "local").returncode == 0
    paid = server.stats()["honest"]
    server.control(reset=True)
    done = there.workspace.ragscore("run", "suite.yaml", "--dask", "local:2", PREFECT_API_URL=site.api)
    assert done.returncode == 0, done.stderr
    assert "Dask (local:2)" in done.stderr
    one, other = last_run(here), last_run(there)
    assert here.scores(one) == there.scores(other) != []
    assert here.verdicts(one) == there.verdicts(other) != []
    for table in ("items", "context_sets", "contexts", "scores", "verdicts"):
        assert there.workspace.sql(ROWS.format(table, other)) == here.workspace.sql(ROWS.format(table, one)), table
    assert len({pid for pid, _ in asked(there)}) == 2
    assert Counter(question for _, question in asked(there)).most_common(1)[0][1] == 1
    # Nothing was paid twice, and the same was asked as by one process.
    assert server.stats()["honest"] == paid
    assert set(paid.values()) == {1}


def test_a_worker_that_is_killed_loses_nothing(site: Site, server: RunningServer, tmp_path: Path) -> None:
    suite = judged(tmp_path / "suite", server)
    process = begun(suite, site, "--dask", "local:2")
    try:
        wait_for(lambda: len(asked(suite)) > ITEMS // 3, "both workers are at work", 120)
        victim = asked(suite)[-1][0]
        assert victim in descendants(process.pid)
        os.kill(victim, signal.SIGKILL)
        out, err = process.communicate(timeout=180)
    finally:
        process.kill()
    assert process.returncode == 0, out + err
    run = last_run(suite)
    statuses = suite.workspace.sql(f"select status, count(*) from scores where run_id = '{run}' group by 1")
    assert statuses == [("ok", 2 * ITEMS)]
    assert suite.workspace.sql(f"select status, written_scores from runs where run_id = '{run}'") == [
        ("complete", 2 * ITEMS)
    ]
    # What was decided is remembered on this machine: only calls in flight in that process may be repeated.
    repeated = sum(times - 1 for times in server.stats()["honest"].values())
    assert repeated <= 8


def test_requests_per_minute_hold_for_all_workers_together(site: Site, server: RunningServer, tmp_path: Path) -> None:
    rpm = 600
    suite = judged(tmp_path / "suite", server, rpm=rpm)
    done = suite.workspace.ragscore("run", "suite.yaml", "--dask", "local:2", PREFECT_API_URL=site.api)
    assert done.returncode == 0, done.stderr
    limits = httpx.post(f"{site.api}/v2/concurrency_limits/filter", json={}, timeout=30).json()
    (limit,) = [each for each in limits if each["name"].startswith("ragscore-judge-openai-lexical")]
    assert limit["name"].endswith("-rpm")
    assert limit["limit"] + 60 * limit["slot_decay_per_second"] == pytest.approx(rpm)
    started = [
        float(at)
        for (at,) in suite.workspace.sql("select epoch(started_at) from judge_calls where item_id <> '' order by 1")
    ]
    assert len(started) >= 2 * ITEMS
    seconds = 3.0
    most = max(sum(first <= at < first + seconds for at in started) for first in started)
    # The bucket, what comes back meanwhile, and what each of the two had taken before (10 at a time).
    assert most <= limit["limit"] + seconds * limit["slot_decay_per_second"] + 2 * 10 < len(started)


async def test_two_processes_that_make_a_limit_at_once_both_get_leave(site: Site) -> None:
    from prefect.settings import PREFECT_API_URL, temporary_settings

    from ragscore.flows.shared_limits import GlobalAllowance

    with temporary_settings({PREFECT_API_URL: site.api}):
        for attempt in range(5):
            pair = [GlobalAllowance(f"ragscore-judge-made-{attempt}", rpm=100, tpm=1000) for _ in range(2)]
            await asyncio.gather(*(each.take(10) for each in pair))


def test_a_cluster_that_is_not_there_or_is_none_is_said_in_one_line(site: Site, tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    workspace.write_suite()
    nobody = f"tcp://127.0.0.1:{free_port()}"
    away = workspace.ragscore("run", "suite.yaml", "--dask", nobody, "--json", PREFECT_API_URL=site.api)
    assert away.returncode == 3
    assert f"{nobody}: the Dask cluster does not answer" in away.stderr
    for given in (["--dask", "loca"], ["--dask", "local", "--engine", "local"]):
        refused = workspace.ragscore("run", "suite.yaml", *given, PREFECT_API_URL=site.api)
        assert refused.returncode == 2
        assert refused.stderr.startswith("ragscore: --dask: ") or "--dask: " in refused.stderr
    assert json.loads(workspace.ragscore("runs", "--json").stdout)
