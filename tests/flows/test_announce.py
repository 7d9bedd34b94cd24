"""Announcing a deploy: its id, its event, and what the exit codes come from; a real small HTTP server for the rest."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

from ragscore.flows.announce import deploy_id_of
from ragscore.flows.codes import code_of
from ragscore.flows.events import DEPLOYED, deployed_event, event_id
from tests.workspace import Workspace


def test_a_deploy_is_known_by_retriever_version_and_the_run_of_the_ci_system() -> None:
    github = {"GITHUB_RUN_ID": "17", "GITHUB_RUN_ATTEMPT": "2"}
    assert deploy_id_of("docs", "v1", github) == "docs-v1-17-2"
    assert deploy_id_of("docs", "v1", {"CI_JOB_ID": "9"}) == "docs-v1-9"
    assert deploy_id_of("docs", "v1", {}) != deploy_id_of("docs", "v1", {})


def test_the_same_deploy_is_the_same_event_and_payload_cannot_take_its_place() -> None:
    event = deployed_event("docs", "v1", "d1", {"version": "v9", "commit": "c"})
    assert event["id"] == str(event_id(DEPLOYED, "d1")) == deployed_event("docs", "v1", "d1", {})["id"]
    assert event["id"] != deployed_event("docs", "v1", "d2", {})["id"]
    assert event["payload"] == {"commit": "c", "retriever": "docs", "version": "v1", "deploy_id": "d1"}


def test_the_documented_event_is_the_one_that_is_sent() -> None:
    text = (Path(__file__).parent.parent.parent / "docs" / "deploys.md").read_text(encoding="utf-8")
    ((event,),) = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", text, re.DOTALL)]
    sent = {**deployed_event("docs-search", "v42", "docs-search-v42-1", {}), "id": event["id"]}
    assert {**sent, "occurred": event["occurred"]} == event


@pytest.mark.parametrize(
    ("state", "message", "code"),
    [
        ("COMPLETED", "gate passed", 0),
        ("COMPLETED", "gate inconclusive (exit 4): too few items", 4),
        ("FAILED", "docs: gate failed (exit 1): context_recall", 1),
        ("FAILED", "could not be evaluated (exit 3): coverage", 3),
        ("FAILED", "Flow run encountered an exception", 3),
        ("CRASHED", None, 3),
        ("CANCELLED", "", 3),
    ],
)
def test_a_state_stands_for_an_exit_code(state: str, message: str | None, code: int) -> None:
    assert code_of(state, message) == code


class Api:
    """A server that takes events, as a Prefect server does, and has the deployments and flow runs that it is told."""

    def __init__(self) -> None:
        self.deployments: list[dict[str, Any]] = []
        self.flow_runs: list[dict[str, Any]] = []
        self.taken: list[Any] = []
        self.told: list[dict[str, Any]] = []
        self.accepts = True
        self.asked_by: set[str | None] = set()
        api = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                api.asked_by.add(self.headers["authorization"])
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                if self.path == "/api/events":
                    api.taken += body
                    self.send_response(204)
                    self.end_headers()
                    return
                if self.path.endswith("/set_state"):
                    api.told.append(body["state"])
                    if api.accepts:
                        api.flow_runs[0]["state"] = body["state"]
                    self._answer({"status": "ACCEPT"} if api.accepts else {"status": "ABORT", "details": {}})
                    return
                self._answer(api.deployments if "deployments" in self.path else api.flow_runs)

            def do_GET(self) -> None:
                self._answer(api.flow_runs[0])

            def _answer(self, found: Any) -> None:
                answer = json.dumps(found).encode()
                self.send_response(200)
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: Any) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/api"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def api() -> Iterator[Api]:
    made = Api()
    yield made
    made.close()


def flow_run(deploy_id: str, state: str, message: str) -> dict[str, Any]:
    return {
        "id": "f",
        "name": "n",
        "parameters": {"deploy_id": deploy_id},
        "state": {"type": state, "name": state.title(), "message": message},
    }


def test_nothing_that_would_listen_is_exit_3_and_nothing_is_announced(workspace: Workspace, api: Api) -> None:
    done = workspace.ragscore("notify", "docs", "v1", "--url", api.url)
    assert done.returncode == 3
    assert "no deployment of on-retriever-deploy is there" in done.stderr
    assert not api.taken


def test_a_deploy_that_was_announced_before_is_reported_and_not_announced_again(workspace: Workspace, api: Api) -> None:
    api.deployments = [{"id": "d"}]
    api.flow_runs = [flow_run("d1", "FAILED", "docs: gate failed (exit 1): worse")]
    done = workspace.ragscore("notify", "docs", "v1", "--url", api.url, "--deploy-id", "d1", "--wait", "--json")
    assert done.returncode == 1
    shown = json.loads(done.stdout)
    assert (shown["announced_before"], shown["exit_code"], shown["state"]) == (True, 1, "failed")
    assert not api.taken


@pytest.mark.parametrize("state", ["CRASHED", "CANCELLED"])
def test_a_deploy_whose_flow_run_was_stopped_is_tried_again(workspace: Workspace, api: Api, state: str) -> None:
    api.deployments = [{"id": "d"}]
    api.flow_runs = [flow_run("d1", state, "its worker was killed")]
    done = workspace.ragscore("notify", "docs", "v1", "--url", api.url, "--deploy-id", "d1", "--json")
    assert done.returncode == 0, done.stderr
    assert [each["type"] for each in api.told] == ["SCHEDULED"]
    assert not api.taken  # the server would drop the event, whose id it knows
    shown = json.loads(done.stdout)
    assert (shown["announced_before"], shown["state"]) == (True, "scheduled")
    assert f"its flow run is {state.lower()} and is tried again" in done.stderr

    api.accepts = False
    api.flow_runs = [flow_run("d1", state, "its worker was killed")]
    done = workspace.ragscore("notify", "docs", "v1", "--url", api.url, "--deploy-id", "d1")
    assert done.returncode == 3
    assert "cannot be tried again: abort" in done.stderr


def test_who_asks_is_configured_where_the_address_is(workspace: Workspace, api: Api) -> None:
    profiles = workspace.folder / "prefect" / "profiles.toml"
    profiles.parent.mkdir()
    profiles.write_text(
        f'active = "mine"\n[profiles.mine]\nPREFECT_API_URL = "{api.url}"\nPREFECT_API_AUTH_STRING = "admin:pass"\n'
    )
    api.deployments = [{"id": "d"}]
    api.flow_runs = [flow_run("d1", "COMPLETED", "gate passed")]
    done = workspace.ragscore("notify", "docs", "v1", "--deploy-id", "d1")
    assert done.returncode == 0, done.stderr
    assert api.asked_by == {httpx.BasicAuth("admin", "pass")._auth_header}


def test_the_link_to_a_flow_run_is_without_the_password_of_the_address(workspace: Workspace, api: Api) -> None:
    api.deployments = [{"id": "d"}]
    api.flow_runs = [flow_run("d1", "COMPLETED", "gate passed")]
    url = api.url.replace("//", "//bob:s3cret@") + "/"
    done = workspace.ragscore("notify", "docs", "v1", "--url", url, "--deploy-id", "d1")
    assert done.returncode == 0
    assert done.stderr.endswith(f": {api.url.removesuffix('/api')}/runs/flow-run/f\n")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["docs", "v1"], 2, "no Prefect API is configured"),
        (["docs", "v1", "--url", "http://127.0.0.1:9/api"], 3, "does not answer"),
        (["docs", "v1", "--url", "http://127.0.0.1:9/api", "--payload", "commit"], 2, "is not KEY=VALUE"),
    ],
)
def test_what_cannot_be_announced_is_one_line(workspace: Workspace, arguments: list[str], code: int, said: str) -> None:
    done = workspace.ragscore("notify", *arguments)
    assert done.returncode == code
    (line,) = done.stderr.splitlines()
    assert said in line


def test_deploy_without_a_server_is_one_line(workspace: Workspace) -> None:
    done = workspace.ragscore("deploy", "suite.yaml")
    assert done.returncode == 2
    assert "no Prefect API is configured" in done.stderr
