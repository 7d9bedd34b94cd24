"""It runs by itself: a real Prefect server, a real worker, and retrievers that are deployed."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from ragscore.history import select

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")]

ROOT = Path(__file__).parent.parent.parent
#: The system under test: the demo's retriever in the version that is deployed; obeys orders like the other tests'.
APP = """
import json, pathlib, time
from ragscore.demo.assistant import retrieve_v1, retrieve_v2
HERE = pathlib.Path(__file__).parent

def ask(question):
    with open(HERE / "calls.log", "a", encoding="utf-8") as log:
        log.write(question + "\\n")
    orders = json.loads((HERE / "orders.json").read_text(encoding="utf-8"))
    time.sleep(orders.get("seconds", 0))
    if len((HERE / "calls.log").read_text(encoding="utf-8").splitlines()) <= orders.get("first_calls_fail", 0):
        raise ConnectionResetError("starting up")
    return (retrieve_v2 if orders["deployed"] == "v2" else retrieve_v1)(question)
"""


@dataclass
class Site:
    """A folder with suites, a Prefect server of its own, and a worker that can be killed."""

    folder: Path
    port: int
    server: subprocess.Popen[bytes] | None = None
    worker: subprocess.Popen[bytes] | None = None
    _logs: list[Any] = field(default_factory=list)

    @property
    def api(self) -> str:
        return f"http://127.0.0.1:{self.port}/api"

    @property
    def history(self) -> Path:
        return self.folder / ".ragscore" / "history.duckdb"

    def environment(self) -> dict[str, str]:
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("PREFECT_", "RAGSCORE_"))}
        return {
            **kept,
            "PREFECT_HOME": str(self.folder / "prefect"),
            "PREFECT_API_URL": self.api,
            "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
            "PREFECT_WORKER_QUERY_SECONDS": "1",
            "PREFECT_SERVER_SERVICES_SCHEDULER_LOOP_SECONDS": "5",
            "DO_NOT_TRACK": "1",
            "NO_COLOR": "1",
            "PYTHONUTF8": "1",
        }

    def start_server(self) -> None:
        self.server = self._begin("server", "server", "start", "--host", "127.0.0.1", "--port", str(self.port))
        wait_for(self.answers, "the server answers", 120)

    def answers(self) -> bool:
        with contextlib.suppress(httpx.HTTPError):
            return httpx.get(f"{self.api}/health", timeout=5).is_success
        return False

    def start_worker(self) -> None:
        self.worker = self._begin("worker", "worker", "start", "--pool", "ragscore", "--type", "process")

    def stop(self, process: subprocess.Popen[bytes] | None, how: int = signal.SIGKILL) -> None:
        """End a process; with kill -9 all of its children too."""
        if process is None or process.poll() is not None:
            return
        if how == signal.SIGKILL:
            for pid in descendants(process.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, how)
        process.send_signal(how)
        process.wait(timeout=60)

    def ragscore(self, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "ragscore", *arguments],
            cwd=self.folder,
            env={**self.environment(), **more},
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )

    def order(self, **orders: Any) -> None:
        new = self.folder / "suites" / "orders.new"
        new.write_text(json.dumps({"deployed": "v1", **orders}), encoding="utf-8")
        new.replace(new.with_name("orders.json"))

    def calls(self) -> list[str]:
        log = self.folder / "suites" / "calls.log"
        return log.read_text(encoding="utf-8").splitlines() if log.exists() else []

    def write_suite(self, **changes: Any) -> None:
        suite = {
            "name": "python-reference",
            "dataset": "questions.jsonl",
            "target": {"retriever": "docs-search", "version": "dev", "python": "app:ask", "concurrency": 2},
            "judge": "offline",
            "scorers": ["context_recall", "context_precision"],
            "gate": {"context_recall": {"min": 0.5, "max_drop": 0.05}},
            "batch_size": 5,
            "retry_delay_s": 1,
            **changes,
        }
        (self.folder / "suites" / "docs.yaml").write_text(yaml.safe_dump(suite), encoding="utf-8")

    def sql(self, query: str) -> list[tuple[Any, ...]]:
        return select(self.history, query).rows if self.history.exists() else []

    def post(self, path: str, body: Any) -> Any:
        answer = httpx.post(f"{self.api}{path}", json=body, timeout=30)
        for _ in range(5):
            if answer.status_code != 503:
                break
            time.sleep(1)  # its SQLite was locked
            answer = httpx.post(f"{self.api}{path}", json=body, timeout=30)
        answer.raise_for_status()
        return answer.json() if answer.content else None

    def get(self, path: str) -> Any:
        return httpx.get(f"{self.api}{path}", timeout=30).raise_for_status().json()

    def flow_runs(self, flow: str) -> list[dict[str, Any]]:
        """The flow runs of a flow that are not waiting for their schedule, oldest first."""
        found = self.post("/flow_runs/filter", {"flows": {"name": {"any_": [flow]}}, "limit": 200})
        begun = [run for run in found if run["state_name"] not in ("Scheduled", "Late") or not run["auto_scheduled"]]
        return sorted(begun, key=lambda run: str(run["created"]))

    def ended(self, flow_run_id: str, *, within: float = 120) -> dict[str, Any]:
        found: dict[str, Any] = {}

        def has_ended() -> bool:
            found.update(self.get(f"/flow_runs/{flow_run_id}"))
            return found["state_type"] in ("COMPLETED", "FAILED", "CANCELLED", "CRASHED")

        wait_for(has_ended, f"flow run {flow_run_id} ends", within)
        return found

    def events(self, name: str) -> list[dict[str, Any]]:
        body = {"filter": {"event": {"name": [name]}, "occurred": {"since": "2000-01-01T00:00:00Z"}}, "limit": 50}
        return list(self.post("/events/filter", body)["events"])

    def deployment(self, name: str) -> dict[str, Any]:
        return dict(self.get(f"/deployments/name/{name}"))

    def run_deployment(self, name: str, **parameters: Any) -> str:
        deployment_id = self.deployment(name)["id"]
        return str(self.post(f"/deployments/{deployment_id}/create_flow_run", {"parameters": parameters})["id"])

    def _begin(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        log = (self.folder / f"{name}.log").open("ab")
        self._logs.append(log)
        return subprocess.Popen(
            [sys.executable, "-m", "prefect", *arguments],
            cwd=self.folder,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def close(self) -> None:
        self.stop(self.worker)
        self.stop(self.server)
        for log in self._logs:
            log.close()


def descendants(pid: int) -> list[int]:
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in map(int, task.read_text().split()):
                found += [child, *descendants(child)]
    return found


def wait_for(holds: Callable[[], Any], what: str, within: float = 60) -> None:
    """A deadline for the machine, not a measure of time: ends as soon as it holds."""
    deadline = time.monotonic() + within
    while not holds():
        assert time.monotonic() < deadline, f"it never came about that {what}"
        time.sleep(0.25)


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Server, worker and deployments, once for all tests here; each test is about deploys and suites of its own."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "suites").mkdir()
    (folder / "suites" / "app.py").write_text(APP, encoding="utf-8")
    shutil.copy(ROOT / "ragscore" / "demo" / "questions.jsonl", folder / "suites" / "questions.jsonl")
    made = Site(folder, free_port())
    made.order()
    made.write_suite()
    try:
        made.start_server()
        done = made.ragscore("deploy", "--timezone", "Europe/Berlin", "--cron", "30 1 * * *")
        assert done.returncode == 0, done.stderr
        made.start_worker()
        yield made
    finally:
        made.close()


def announce_with_curl(site: Site, version: str, deploy_id: str) -> None:
    """The script of deployments/cd, as a CD pipeline runs it."""
    told = {"RETRIEVER": "docs-search", "VERSION": version, "DEPLOY_ID": deploy_id}
    script = str(ROOT / "deployments" / "cd" / "announce.sh")
    subprocess.run(["sh", script], env={**site.environment(), **told}, check=True, timeout=60)


def test_a_deploy_is_one_flow_run_and_a_worse_version_fails_it_with_the_reason(site: Site) -> None:
    announce_with_curl(site, "v1", "deploy-1")
    wait_for(lambda: site.flow_runs("on-retriever-deploy"), "the event triggers a flow run")
    (first,) = site.flow_runs("on-retriever-deploy")
    assert (first["parameters"]["retriever"], first["parameters"]["version"]) == ("docs-search", "v1")
    assert first["parameters"]["deploy_id"] == "deploy-1"
    announce_with_curl(site, "v1", "deploy-1")  # again, while it runs
    ended = site.ended(first["id"])
    assert ended["state_type"] == "COMPLETED", ended["state"]
    announce_with_curl(site, "v1", "deploy-1")  # and once more, after it
    rows = site.sql("select suite, version, trigger, status, gate_verdict, items from runs")
    assert rows == [("python-reference", "v1", "deploy", "complete", "pass", 46)]

    site.order(deployed="v2")
    worse = site.ragscore(
        "notify", "docs-search", "v2", "--deploy-id", "deploy-2", "--payload", "commit=1a2b", "--wait"
    )
    assert worse.returncode == 1, worse.stderr
    assert "gate failed (exit 1): context_recall" in worse.stdout
    runs = site.flow_runs("on-retriever-deploy")
    assert [run["parameters"]["version"] for run in runs] == ["v1", "v2"]  # the repeats triggered nothing
    assert runs[1]["state_type"] == "FAILED"
    assert "context_recall" in runs[1]["state"]["message"]
    assert runs[1]["parameters"]["payload"]["commit"] == "1a2b"
    assert site.sql("select version, trigger, gate_verdict from runs order by started_at") == [
        ("v1", "deploy", "pass"),
        ("v2", "deploy", "fail"),
    ]
    wait_for(lambda: site.events("ragscore.regression.detected"), "the regression event is there")
    (regression,) = site.events("ragscore.regression.detected")
    labels = regression["resource"]
    assert (labels["ragscore.retriever"], labels["ragscore.version"], labels["ragscore.gate"]) == (
        "docs-search",
        "v2",
        "fail",
    )
    assert regression["payload"]["worse"]
    assert len(site.events("ragscore.run.completed")) == 2

    again = site.ragscore("notify", "docs-search", "v2", "--deploy-id", "deploy-2", "--wait", "--json")
    assert again.returncode == 1
    assert json.loads(again.stdout)["announced_before"] is True
    assert len(site.flow_runs("on-retriever-deploy")) == 2
    site.order()


def test_a_deploy_announced_to_a_server_that_forgot_it_reports_the_verdict_and_asks_nothing(site: Site) -> None:
    asked = len(site.calls())
    runs = site.sql("select count(*) from runs")
    repeat = site.run_deployment(
        "on-retriever-deploy/deploys", retriever="docs-search", version="v2", deploy_id="deploy-2"
    )
    ended = site.ended(repeat)
    assert ended["state_type"] == "FAILED"
    assert "gate failed (exit 1)" in ended["state"]["message"]
    assert "evaluated before" in ended["state"]["message"]
    assert (len(site.calls()), site.sql("select count(*) from runs")) == (asked, runs)


def test_the_same_version_deployed_again_is_a_new_deploy(site: Site) -> None:
    done = site.ragscore("notify", "docs-search", "v1", "--deploy-id", "rollback-1", "--wait")
    assert done.returncode == 0, done.stderr + done.stdout
    assert site.sql("select count(*) from runs where version = 'v1' and trigger = 'deploy'") == [(2,)]


def test_of_several_deploys_that_wait_only_the_newest_runs(site: Site) -> None:
    site.order(seconds=1)
    for version in ("w1", "w2", "w3"):
        done = site.ragscore("notify", "docs-search", version, "--deploy-id", f"deploy-{version}")
        assert done.returncode == 0, done.stderr
        wait_for(lambda: site.sql("select 1 from runs where version = 'w1'"), "the first one runs")
    by_version = {run["parameters"]["version"]: run["id"] for run in site.flow_runs("on-retriever-deploy")}
    site.order()
    ended = {version: site.ended(by_version[version], within=180) for version in ("w1", "w2", "w3")}
    assert ended["w2"]["state_name"] == "Superseded", ended["w2"]["state"]
    assert "w3" in ended["w2"]["state"]["message"]
    assert {each["state_type"] for each in ended.values()} == {"COMPLETED"}
    assert site.sql("select version from runs where version like 'w_' order by version") == [("w1",), ("w3",)]


def test_a_deploy_of_a_retriever_without_suite_is_told_and_not_passed(site: Site) -> None:
    done = site.ragscore("notify", "chat-search", "v1", "--deploy-id", "chat-1", "--wait")
    assert done.returncode in (2, 3)
    assert "no suite is about the retriever 'chat-search'" in done.stdout


def test_what_the_server_holds_is_what_was_declared(site: Site) -> None:
    assert site.ragscore("deploy", "--timezone", "Europe/Berlin", "--cron", "30 1 * * *").returncode == 0  # again
    nightly = site.deployment("evaluate/python-reference")
    (schedule,) = nightly["schedules"]
    assert (schedule["schedule"]["cron"], schedule["schedule"]["timezone"]) == ("30 1 * * *", "Europe/Berlin")
    assert schedule["active"]
    deploys = site.deployment("on-retriever-deploy/deploys")
    for each in (nightly, deploys):
        assert ":" not in each["entrypoint"]
        assert not each["pull_steps"]
        assert each["work_pool_name"] == "ragscore"
        assert each["tags"] == ["ragscore"]
        assert each["global_concurrency_limit"]["limit"] == 1
        assert each["concurrency_options"]["collision_strategy"] == "ENQUEUE"
        assert each["job_variables"]["env"]["RAGSCORE_HOME"] == str(site.folder / ".ragscore")
    assert deploys["parameters"]["suites"] == [str(site.folder / "suites")]
    assert {
        name: [(s["schedule"]["cron"], s["schedule"]["timezone"]) for s in site.deployment(name)["schedules"]]
        for name in ("digest/weekly", "canary/weekly", "rescore/by-hand")
    } == {
        "digest/weekly": [("0 7 * * 1", "Europe/Berlin")],
        "canary/weekly": [("0 5 * * 1", "Europe/Berlin")],
        "rescore/by-hand": [],
    }
    automations = {each["name"]: each for each in site.post("/automations/filter", {"limit": 50})}
    assert len(automations) == len(site.post("/automations/filter", {"limit": 50})) == 3
    silence = automations["ragscore: no complete run of python-reference for 26 h"]
    assert silence["trigger"]["posture"] == "Proactive"
    assert silence["trigger"]["within"] == 26 * 3600
    assert silence["trigger"]["match"] == {"ragscore.suite": "python-reference"}
    trigger = automations["on-retriever-deploy/deploys: retriever.deployed"]
    assert trigger["enabled"]
    assert trigger["trigger"]["expect"] == ["retriever.deployed"]
    assert trigger["trigger"]["match"] == {"prefect.resource.id": "retriever.*"}
    assert set(trigger["actions"][0]["parameters"]) == {"retriever", "version", "deploy_id", "payload"}


def test_prefects_own_deploy_reads_the_file_in_the_same_way(site: Site) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "prefect", "--no-prompt", "deploy", "--prefect-file",
         str(ROOT / "deployments" / "prefect.yaml"), "--name", "nightly", "--name", "deploys"],
        cwd=site.folder, env=site.environment(), capture_output=True, text=True, timeout=180, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    nightly = site.deployment("evaluate/nightly")
    assert nightly["entrypoint"] == "ragscore.flows.evaluate.evaluate"
    assert not nightly["pull_steps"]
    assert nightly["schedules"][0]["schedule"]["cron"] == "0 2 * * *"
    assert nightly["schedules"][0]["slug"] == "nightly"
    assert nightly["global_concurrency_limit"]["limit"] == 1
    assert nightly["concurrency_options"]["collision_strategy"] == "ENQUEUE"
    assert nightly["job_variables"]["working_dir"] == "/srv/ragscore"
    site_deploys = site.deployment("on-retriever-deploy/deploys")
    assert site_deploys["parameters"]["suites"] == ["/srv/ragscore/suites"]
    httpx.delete(f"{site.api}/deployments/{nightly['id']}").raise_for_status()
    assert site.ragscore("deploy", "--timezone", "Europe/Berlin", "--cron", "30 1 * * *").returncode == 0  # ours again


def test_a_late_scheduled_run_is_picked_up_and_ends_completed_with_its_trigger(site: Site) -> None:
    nightly = site.deployment("evaluate/python-reference")
    found: list[dict[str, Any]] = []

    def is_scheduled() -> bool:
        ask = {"deployments": {"id": {"any_": [nightly["id"]]}}, "sort": "EXPECTED_START_TIME_ASC"}
        runs = site.post("/flow_runs/filter", ask)
        found[:] = [run for run in runs if run["auto_scheduled"] and run["state_type"] == "SCHEDULED"]
        return bool(found)

    wait_for(is_scheduled, "the server schedules runs", 90)
    due = found[0]
    an_hour_ago = (datetime.now(UTC) - timedelta(hours=1)).isoformat()
    late = {"type": "SCHEDULED", "name": "Late", "state_details": {"scheduled_time": an_hour_ago}}
    site.post(f"/flow_runs/{due['id']}/set_state", {"state": late, "force": True})
    ended = site.ended(due["id"])
    assert ended["state_type"] == "COMPLETED", ended["state"]
    (row,) = site.sql(f"select trigger, version, status from runs where flow_run_id = '{due['id']}'")
    assert row == ("schedule", "dev", "complete")


def test_a_worker_that_was_killed_loses_nothing_and_a_retry_finishes_the_same_run(site: Site) -> None:
    site.order(seconds=0.2)
    flow_run_id = site.run_deployment("evaluate/python-reference", version="killed")
    stored = f"select count(*) from items join runs using (run_id) where flow_run_id = '{flow_run_id}'"
    wait_for(lambda: site.sql(stored) and site.sql(stored)[0][0] >= 10, "ten items are stored")
    site.stop(site.worker)
    ((run_id, status),) = site.sql(f"select run_id, status from runs where flow_run_id = '{flow_run_id}'")
    assert status == "running"
    answered = {item for (item,) in site.sql(f"select item_id from items where run_id = '{run_id}'")}
    asked = len(site.calls())
    site.order()
    # What the automation does when the heartbeats stop, and then the button “Retry” of the UI.
    crashed = {"type": "CRASHED", "name": "Crashed", "message": "no heartbeat any more"}
    site.post(f"/flow_runs/{flow_run_id}/set_state", {"state": crashed, "force": True})
    now = datetime.now(UTC).isoformat()
    retry = {"type": "SCHEDULED", "name": "AwaitingRetry", "state_details": {"scheduled_time": now}}
    site.post(f"/flow_runs/{flow_run_id}/set_state", {"state": retry, "force": True})
    site.start_worker()
    assert site.ended(flow_run_id)["state_type"] == "COMPLETED"
    rows = site.sql(f"select run_id, status, attempt from runs where flow_run_id = '{flow_run_id}'")
    assert rows == [(run_id, "complete", 2)]
    assert len(site.calls()) - asked == 46 - len(answered)
    counts = f"select count(*), count(distinct (item_id, scorer)) from latest_scores where run_id = '{run_id}'"
    assert site.sql(counts) == [(92, 92)]


def test_cancelling_in_the_ui_leaves_a_run_that_resume_completes(site: Site) -> None:
    site.order(seconds=0.2)
    flow_run_id = site.run_deployment("evaluate/python-reference", version="cancelled")
    stored = f"select count(*) from items join runs using (run_id) where flow_run_id = '{flow_run_id}'"
    wait_for(lambda: site.sql(stored) and site.sql(stored)[0][0] >= 10, "ten items are stored")
    site.post(f"/flow_runs/{flow_run_id}/set_state", {"state": {"type": "CANCELLING", "name": "Cancelling"}})
    assert site.ended(flow_run_id)["state_type"] == "CANCELLED"
    site.order()
    of_run = f"select run_id, status from runs where flow_run_id = '{flow_run_id}'"
    wait_for(lambda: site.sql(of_run)[0][1] == "cancelled", "the run's row says so")
    ((run_id, _),) = site.sql(of_run)
    resumed = site.ragscore("resume", run_id, "--engine", "local")
    assert resumed.returncode == 0, resumed.stderr + resumed.stdout
    counts = f"select count(*), count(distinct (item_id, scorer)) from latest_scores where run_id = '{run_id}'"
    assert site.sql(counts) == [(92, 92)]


def test_a_target_that_fails_at_first_is_tried_again_and_nothing_is_scored_twice(site: Site) -> None:
    before = len(site.calls())
    site.order(first_calls_fail=before + 15)
    flow_run_id = site.run_deployment("evaluate/python-reference", version="starting")
    assert site.ended(flow_run_id)["state_type"] == "COMPLETED"
    site.order()
    ((run_id,),) = site.sql(f"select run_id from runs where flow_run_id = '{flow_run_id}'")
    assert site.sql(f"select count(*), max(attempt), count(*) filter (status = 'target_error') from scores"
                    f" where run_id = '{run_id}'") == [(92, 1, 0)]  # fmt: skip


def test_rescore_digest_and_canary_on_the_worker(site: Site) -> None:
    asked = len(site.calls())
    ((run_id,),) = site.sql("select run_id from runs where version = 'v1' order by started_at limit 1")
    again = site.run_deployment("rescore/by-hand", run=run_id, scorers=[{"context_recall": {"scale": 10}}])
    assert site.ended(again)["state_type"] == "COMPLETED"
    rows = site.sql(
        "select suite, trigger, version, (select mean from score_history h where h.run_id = r.run_id) from runs r"
        f" where flow_run_id = '{again}'"
    )
    ((before,),) = site.sql(f"select mean from score_history where run_id = '{run_id}' and scorer = 'context_recall'")
    ((suite, trigger, version, mean),) = rows
    assert (suite, trigger, version) == ("python-reference (rescored)", "rescore", "v1")
    assert mean == pytest.approx(10 * before, abs=0.001)
    steady = site.ended(site.run_deployment("canary/weekly", items=5))
    assert steady["state_type"] == "COMPLETED", steady["state"]
    assert "100.0%" in steady["state"]["message"]
    week = site.ended(site.run_deployment("digest/weekly"))
    assert week["state_type"] == "COMPLETED"
    assert len(site.calls()) == asked  # none of them asked the target
    keys = {each["key"] for each in site.post("/artifacts/latest/filter", {"limit": 50})}
    assert {
        "ragscore-digest",
        "ragscore-canary",
        "ragscore-deploy-docs-search",
        "ragscore-python-reference-summary",
        "ragscore-python-reference-worst",
        "ragscore-python-reference-progress",
    } <= keys


def test_a_server_that_dies_in_a_run_is_said_plainly_and_resume_repeats_nothing(site: Site) -> None:
    site.order(seconds=0.2)
    process = subprocess.Popen(
        [sys.executable, "-m", "ragscore", "run", "suites/docs.yaml", "--history", "alone.duckdb"],
        cwd=site.folder,
        env=site.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    alone = site.folder / "alone.duckdb"

    def stored() -> int:
        assert process.poll() is None, process.communicate()
        return int(select(alone, "select count(*) from items").rows[0][0]) if alone.exists() else 0

    wait_for(lambda: stored() >= 10, "ten items are stored")
    site.stop(site.server)
    site.order()
    out, err = process.communicate(timeout=240)
    assert "Traceback" not in out + err
    assert "Prefect API" in err
    assert process.returncode in (0, 3)
    asked = len(site.calls())
    answered = int(select(alone, "select count(*) from items").rows[0][0])
    resumed = site.ragscore("resume", "--engine", "local", "--history", "alone.duckdb")
    assert resumed.returncode == 0, resumed.stderr + resumed.stdout
    assert len(site.calls()) - asked == 46 - answered
    counts = "select count(*), count(distinct (item_id, scorer)) from latest_scores"
    assert select(alone, counts).rows == [(92, 92)]
