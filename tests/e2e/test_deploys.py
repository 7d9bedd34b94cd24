"""It runs by itself: a real Prefect server, a real worker, and retrievers that are deployed."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
import yaml

from tests.e2e.prefect_site import Site, free_port, wait_for
from tests.judges.judged_suites import port_items
from tests.llm_server.running import running

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
    if "silent_s" in orders:
        first = HERE / "first_call"
        if not first.exists():
            first.touch()
        if time.time() < first.stat().st_mtime + orders["silent_s"]:
            raise ConnectionResetError("starting up")
        with open(HERE / "answered.log", "a", encoding="utf-8") as log:
            log.write(question + "\\n")
    return (retrieve_v2 if orders["deployed"] == "v2" else retrieve_v1)(question)
"""


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


def test_nothing_is_left_of_a_suite_that_was_renamed_or_taken_away(site: Site) -> None:
    file = site.folder / "suites" / "second.yaml"
    first = yaml.safe_load((site.folder / "suites" / "docs.yaml").read_text(encoding="utf-8"))
    there = {"python-reference": "docs.yaml"}

    def left() -> tuple[dict[str, str], set[str]]:
        found = site.post("/deployments/filter", {"flows": {"name": {"any_": ["evaluate"]}}})
        paths = {each["name"]: Path(each["parameters"]["suite"]).name for each in found}
        return paths, {name for name in automations(site) if "no complete run" in name}

    def silence(*suites: str) -> set[str]:
        return {f"ragscore: no complete run of {name} for 26 h" for name in ("python-reference", *suites)}

    two = [{"version": "1"}, {"version": "2"}]
    for change, expected, suites in (
        ({"name": "old"}, {"old": "second.yaml"}, ["old"]),
        ({"name": "new"}, {"new": "second.yaml"}, ["new"]),
        (
            {"targets": two, "name": "new"},
            dict.fromkeys(("new docs-search 1", "new docs-search 2"), file.name),
            ["new"],
        ),
        ({"targets": two[:1], "name": "newer"}, {"newer": "second.yaml"}, ["newer"]),
    ):
        file.write_text(yaml.safe_dump({**first, **change}), encoding="utf-8")
        done = site.ragscore("deploy", "--timezone", "Europe/Berlin", "--cron", "30 1 * * *")
        assert done.returncode == 0, done.stderr
        assert left() == ({**there, **expected}, silence(*suites))
    # Somebody else's deployment of the same suite stays.
    newer = site.deployment("evaluate/newer")
    kept = {key: newer[key] for key in ("flow_id", "entrypoint", "parameters", "work_pool_name")}
    mine = site.post("/deployments/", {**kept, "name": "mine"})["id"]
    file.unlink()
    done = site.ragscore("deploy", "--timezone", "Europe/Berlin", "--cron", "30 1 * * *")
    assert "removed deployment evaluate/newer: its file is gone" in done.stdout
    assert left() == ({**there, "mine": "second.yaml"}, silence())
    httpx.delete(f"{site.api}/deployments/{mine}", timeout=30).raise_for_status()


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


def test_a_target_that_answers_nothing_at_first_is_tried_again_and_nothing_is_scored_twice(site: Site) -> None:
    before = len(site.calls())
    site.order(silent_s=6)  # from its first call on; the tasks are tried again after 1, 2, 4 and 8 s, more or less
    flow_run_id = site.run_deployment("evaluate/python-reference", version="starting")
    assert site.ended(flow_run_id)["state_type"] == "COMPLETED"
    site.order()
    ((run_id,),) = site.sql(f"select run_id from runs where flow_run_id = '{flow_run_id}'")
    assert site.sql(f"select count(*), count(distinct (item_id, scorer)), max(attempt),"
                    f" count(*) filter (status = 'target_error') from scores where run_id = '{run_id}'") == [
        (92, 92, 1, 0)
    ]  # fmt: skip
    answered = (site.folder / "suites" / "answered.log").read_text(encoding="utf-8").splitlines()
    assert len(answered) == len(set(answered)) == 46
    assert len(site.calls()) - before > 46
    tasks = site.post("/task_runs/filter", {"flow_runs": {"id": {"any_": [flow_run_id]}}, "limit": 200})
    tried = {each["name"]: each["run_count"] for each in tasks}
    assert tried["invoke target items 1-5"] > 1
    assert {count for name, count in tried.items() if not name.startswith("invoke")} == {1}


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


def told_beside(site: Site, name: str, text: str) -> str:
    """What is said of a deploy while a suite that cannot be evaluated lies beside the one that can, which passes."""
    suite = site.folder / "suites" / f"{name}.yaml"
    suite.write_text(text, encoding="utf-8")
    try:
        done = site.ragscore("notify", "docs-search", "v1", "--deploy-id", f"beside-{name}", "--wait")
    finally:
        suite.unlink()
    assert done.returncode == 3, done.stdout + done.stderr
    assert done.stdout.startswith(f"{name}.yaml: could not be evaluated (exit 3): ")
    assert "1 other suite did not fail" in done.stdout
    return done.stdout


def test_a_broken_suite_takes_no_other_down_and_fails_the_deploy_by_name(site: Site) -> None:
    broken = "name: torn\ndataset: questions.jsonl\ntarget: {retriever: docs-search, pithon: app:ask}\n"
    assert "pithon" in told_beside(site, "torn", broken)
    assert site.flow_runs("on-retriever-deploy")[-1]["state_type"] == "FAILED"
    assert site.sql("select suite, status, gate_verdict from runs order by started_at desc limit 1") == [
        ("python-reference", "complete", "pass")
    ]


def test_an_event_triggers_whatever_its_payload_holds(site: Site) -> None:
    def post(**payload: Any) -> tuple[str, dict[str, Any]]:
        before = len(site.flow_runs("on-retriever-deploy"))
        event_id = str(uuid4())
        body = {
            "id": event_id,
            "occurred": datetime.now(UTC).isoformat(),
            "event": "retriever.deployed",
            "resource": {"prefect.resource.id": "retriever.docs-search"},
            "payload": payload,
        }
        site.post("/events", [body])
        wait_for(lambda: len(site.flow_runs("on-retriever-deploy")) > before, "the event triggers a flow run")
        return event_id, site.ended(site.flow_runs("on-retriever-deploy")[-1]["id"])

    event_id, without_id = post(retriever="docs-search", version="v1")
    assert without_id["state_type"] == "COMPLETED", without_id["state"]
    assert without_id["parameters"]["deploy_id"] == event_id
    _, number = post(retriever="docs-search", version=1.25, deploy_id=77, note='{{ flow_run.name }} "q"')
    assert number["state_type"] == "COMPLETED", number["state"]
    assert [number["parameters"][name] for name in ("version", "deploy_id")] == ["1.25", "77"]
    assert number["parameters"]["payload"]["note"] == '{{ flow_run.name }} "q"'
    assert site.sql("select version from runs order by started_at desc limit 1") == [("1.25",)]
    _, nameless = post(retriever="docs-search")
    assert nameless["state_type"] == "FAILED"
    assert "names no version" in nameless["state"]["message"]


def test_a_suite_with_the_name_of_another_is_named_and_not_taken_for_it(site: Site) -> None:
    text = (site.folder / "suites" / "docs.yaml").read_text(encoding="utf-8")
    said = told_beside(site, "later", text.replace("min: 0.5", "min: 1.0"))
    assert "has the name of the suite in docs.yaml, 'python-reference'" in said


@pytest.fixture(scope="module")
def heard(site: Site) -> Iterator[list[dict[str, str]]]:
    """What a webhook was told, once `ragscore deploy --notify` has named its block."""
    told: list[dict[str, str]] = []

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            told.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None: ...

    hook = ThreadingHTTPServer(("127.0.0.1", 0), Hook)
    threading.Thread(target=hook.serve_forever, daemon=True).start()
    block = (
        "from prefect.blocks.notifications import CustomWebhookNotificationBlock as Block\n"
        f"Block(name='ops', url='http://127.0.0.1:{hook.server_port}/',"
        " json_data={'subject': '{{subject}}', 'text': '{{body}}'}).save('ops')\n"
    )
    subprocess.run([sys.executable, "-c", block], env=site.environment(), check=True, timeout=120)
    done = site.ragscore("deploy", "--notify", "custom-webhook/ops")
    assert done.returncode == 0, done.stderr
    yield told
    hook.shutdown()
    hook.server_close()


def was_told(heard: list[dict[str, str]], subject: str) -> dict[str, str]:
    """The one notification with this subject."""
    wait_for(lambda: any(each["subject"] == subject for each in heard), f"{subject!r} arrives")
    (found,) = [each for each in heard if each["subject"] == subject]
    return found


def automations(site: Site) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in site.post("/automations/filter", {"limit": 50})}


def test_a_notification_block_that_is_not_there_is_one_line(site: Site) -> None:
    done = site.ragscore("deploy", "--notify", "slack-webhook/nobody")
    assert done.returncode == 2
    assert "there is no notification block slack-webhook/nobody" in done.stderr


def test_the_server_holds_who_is_told_of_what_and_a_deploy_without_notify_keeps_it(
    site: Site, heard: list[dict[str, str]]
) -> None:
    assert site.ragscore("deploy", "--timezone", "Europe/Berlin", "--cron", "30 1 * * *").returncode == 0
    found = automations(site)
    telling = {
        "ragscore: no complete run of python-reference for 26 h",
        "ragscore: tell about a regression",
        "ragscore: tell about a run that could not be evaluated",
        "ragscore: tell about a judge that has drifted",
        "ragscore: tell about a flow run that crashed",
    }
    assert telling <= set(found)
    (block,) = site.post("/block_documents/filter", {"block_documents": {"name": {"any_": ["ops"]}}})
    for name in telling:
        (action,) = found[name]["actions"]
        assert (action["type"], action["block_document_id"]) == ("send-notification", block["id"])
        assert found[name]["enabled"]


def test_a_gate_that_fails_is_told_to_the_block_that_the_user_named(site: Site, heard: list[dict[str, str]]) -> None:
    site.order(deployed="v2")
    done = site.ragscore("notify", "docs-search", "v2", "--deploy-id", "told-of", "--wait")
    site.order()
    assert done.returncode == 1, done.stderr
    ((run_id,),) = site.sql("select run_id from runs where version = 'v2' order by started_at desc limit 1")
    told = was_told(heard, "python-reference v2: retrieval got worse")
    assert told["text"].startswith("gate failed (exit 1): context_recall")
    assert told["text"].endswith(f"ragscore show {run_id}")


def test_what_could_not_be_evaluated_what_crashed_and_silence_are_told(site: Site, heard: list[dict[str, str]]) -> None:
    wrong = site.run_deployment("evaluate/python-reference", version="v1", retriever="nobody")
    failed = site.ended(wrong)
    assert failed["state_type"] == "FAILED"
    told = was_told(heard, f"{failed['name']}: could not be evaluated")
    assert "0 of its targets fit nobody v1" in told["text"]
    # As the automation does it for a flow run whose heartbeats stopped; this one waits for tomorrow.
    later = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    scheduled = {"type": "SCHEDULED", "state_details": {"scheduled_time": later}}
    deployment = site.deployment("evaluate/python-reference")["id"]
    waiting = site.post(f"/deployments/{deployment}/create_flow_run", {"name": "silent-owl", "state": scheduled})
    crashed = {"type": "CRASHED", "name": "Crashed", "message": "no heartbeat any more"}
    site.post(f"/flow_runs/{waiting['id']}/set_state", {"state": crashed, "force": True})
    assert was_told(heard, "silent-owl crashed")["text"].startswith("no heartbeat any more")
    # 26 h are 10 s here, the least that Prefect knows.
    silence = automations(site)["ragscore: no complete run of python-reference for 26 h"]
    held = {key: value for key, value in silence.items() if key not in ("id", "created", "updated")}
    soon = {**held, "trigger": {**held["trigger"], "within": 10}}
    httpx.put(f"{site.api}/automations/{silence['id']}", json=soon, timeout=30).raise_for_status()
    said = "For 26 h no run of python-reference was complete."
    wait_for(lambda: {"subject": "No complete run of python-reference", "text": said} in heard, "silence is told")
    assert site.ragscore("deploy").returncode == 0
    assert automations(site)[silence["name"]]["trigger"]["within"] == 26 * 3600


def test_a_judge_that_changes_its_mind_fails_the_canary_and_is_told(site: Site, heard: list[dict[str, str]]) -> None:
    suites = site.folder / "suites"
    with running() as llm:
        suite = {
            "name": "ports",
            "dataset": "ports.jsonl",
            "target": "none",
            "contexts": {"item": True},
            "judge": {"model": "openai/lexical", "base_url": llm.url},
            "scorers": ["context_recall", "context_precision"],
        }
        (suites / "ports.yaml").write_text(yaml.safe_dump(suite), encoding="utf-8")
        rows = "".join(json.dumps(row) + "\n" for row in port_items(6))
        (suites / "ports.jsonl").write_text(rows, encoding="utf-8")
        try:
            first = site.ragscore("run", "suites/ports.yaml", "--engine", "local")
            assert first.returncode == 0, first.stdout + first.stderr
            steady = site.ended(site.run_deployment("canary/weekly", items=6))
            assert steady["state_type"] == "COMPLETED", steady["state"]
            assert "ports: 42 of 42 decisions" in steady["state"]["message"]
            assert not site.events("ragscore.judge.drifted")
            llm.control(always=["yes_to_all"])
            drifted = site.ended(site.run_deployment("canary/weekly", items=6))
        finally:
            (suites / "ports.yaml").unlink()
    assert drifted["state_type"] == "FAILED"
    message = drifted["state"]["message"]
    assert message.startswith("the judge has drifted (exit 1): ports: ")
    assert "of 42 decisions of openai/lexical are as in run" in message
    assert "python-reference" not in message  # its judge decides as before
    wait_for(lambda: site.events("ragscore.judge.drifted"), "the event is there")
    (event,) = site.events("ragscore.judge.drifted")
    assert event["resource"]["ragscore.suite"] == "ports"
    assert 0 < event["payload"]["same"] < 0.95 * event["payload"]["decisions"] == 0.95 * 42
    told = was_told(heard, "openai/lexical: the judge decides otherwise than before")
    assert f"{event['payload']['same']} of 42 decisions" in told["text"]
    page = site.post("/artifacts/latest/filter", {"artifacts": {"key": {"any_": ["ragscore-canary"]}}, "limit": 1})
    assert "| ports | drifted |" in page[0]["data"]
