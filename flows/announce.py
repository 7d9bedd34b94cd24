"""Announces a deploy to a Prefect server and follows what it triggers; plain HTTP, without importing Prefect.

A server answers 204 to every event, whether or not anything listens to it. So whether a flow run was triggered is
looked up afterwards.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import httpx

from ragscore.addresses import without_secrets
from ragscore.errors import EngineError
from ragscore.flows.events import deployed_event
from ragscore.flows.settings import configured

#: The flow that deploys trigger.
FLOW = "on-retriever-deploy"
#: Seconds in which an event becomes a flow run; the server evaluates triggers within two.
TRIGGERED_WITHIN_S = 30.0
#: Environment variables that name the run of a CI system, and its attempt: together they tell one deploy from another.
CI_RUNS = (
    ("GITHUB_RUN_ID", "GITHUB_RUN_ATTEMPT"),
    ("CI_JOB_ID", ""),
    ("BUILD_TAG", ""),
    ("BUILD_BUILDID", "SYSTEM_JOBATTEMPT"),
    ("CIRCLE_WORKFLOW_JOB_ID", ""),
    ("BUILDKITE_JOB_ID", ""),
)
#: What a server answers when it is busy (its SQLite locked, a proxy waiting), and how often it is asked.
BUSY, TRIES = (429, 502, 503, 504), 5
_ENDED = ("COMPLETED", "FAILED", "CANCELLED", "CRASHED")


@dataclass(frozen=True, slots=True)
class Announced:
    """The flow run that evaluates a deploy.

    Attributes:
        flow_run_id: Its id.
        state, message: Of the flow run, when it was last looked at.
        was_there: The deploy had been announced before.
        superseded: It was left out because a newer deploy was announced while it waited.
    """

    flow_run_id: str
    name: str
    state: str
    message: str
    was_there: bool = False
    superseded: bool = False

    @property
    def has_ended(self) -> bool:
        """Whether nothing more will come."""
        return self.state in _ENDED


def deploy_id_of(retriever: str, version: str, environment: Mapping[str, str] | None = None) -> str:
    """One id for one deploy: retriever, version and the run of the CI system; outside of one, the time."""
    env = os.environ if environment is None else environment
    for run, attempt in CI_RUNS:
        if env.get(run):
            return "-".join(filter(None, (retriever, version, env[run], env.get(attempt, "") if attempt else "")))
    return f"{retriever}-{version}-{datetime.now(UTC):%Y%m%dT%H%M%S.%f}"


class Server:
    """A Prefect server's API.

    Args:
        url: Its address, with `/api`; who asks may stand in it.

    Attributes:
        shown: The address as it may stand in a log.
    """

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self.shown = without_secrets(self.url)
        headers, auth = {}, None
        if key := configured("key"):
            headers["Authorization"] = f"Bearer {key}"
        if both := configured("auth_string"):
            name, _, word = both.partition(":")
            auth = httpx.BasicAuth(name, word)
        self._client = httpx.Client(timeout=30, headers=headers, auth=auth)

    def close(self) -> None:
        """Let go of the connection."""
        self._client.close()

    def deployments(self) -> list[str]:
        """The ids of the deployments that a deploy event can trigger.

        Raises:
            EngineError: the API does not answer; so do all methods.
        """
        found = self._post("/deployments/filter", {"flows": {"name": {"any_": [FLOW]}}, "limit": 200})
        return [str(each["id"]) for each in found]

    def announce(self, retriever: str, version: str, deploy_id: str, payload: Mapping[str, Any]) -> str:
        """Post the event; the same deploy has the same event id.

        Returns:
            The event's id.
        """
        event = {**deployed_event(retriever, version, deploy_id, payload), "occurred": datetime.now(UTC).isoformat()}
        self._post("/events", [event])
        return str(event["id"])

    def flow_run_of(self, deploy_id: str, deployments: list[str]) -> Announced | None:
        """The flow run of a deploy: the last one that is not superseded; None when there is none."""
        found = self._post(
            "/flow_runs/filter",
            {
                "deployments": {"id": {"any_": deployments}},
                "sort": "EXPECTED_START_TIME_DESC",
                "limit": 200,
            },
        )
        runs = [each for each in found if (each.get("parameters") or {}).get("deploy_id") == deploy_id]
        return _announced(runs[0]) if runs else None

    def flow_run(self, flow_run_id: str) -> Announced:
        """A flow run as it is now."""
        return _announced(self._request("GET", f"/flow_runs/{flow_run_id}"))

    def retried(self, found: Announced) -> Announced:
        """Try a flow run again that was stopped, as Retry in the UI does: it goes on with the same run.

        Announcing its deploy again would do nothing: the server drops an event whose id it knows.

        Raises:
            EngineError: the server refuses, for example since the deployment was removed; or it does not answer.
        """
        again = {"type": "SCHEDULED", "name": "AwaitingRetry", "message": "announced again"}
        answer = self._post(f"/flow_runs/{found.flow_run_id}/set_state", {"state": again})
        if answer["status"] != "ACCEPT":
            why = (answer.get("details") or {}).get("reason") or answer["status"].lower()
            mend = "announce a new deploy with another --deploy-id"
            said = f"flow run {found.name} is {found.state.lower()} and cannot be tried again: {why}"
            raise EngineError(said, where=self.shown, mend=mend)
        return self.flow_run(found.flow_run_id)

    def _post(self, path: str, body: Any) -> Any:
        return self._request("POST", path, json=body)

    def _request(self, method: str, path: str, **more: Any) -> Any:
        mend = "start the server, or correct --url or PREFECT_API_URL"
        for tries_left in reversed(range(TRIES)):
            try:
                answer = self._client.request(method, f"{self.url}{path}", **more)
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                said = f"the Prefect API does not answer: {str(error) or type(error).__name__}"
                raise EngineError(said, where=self.shown, mend=mend) from error
            if answer.status_code not in BUSY or not tries_left:
                break
            time.sleep(1.0)  # every request here may be repeated: the same event has the same id
        if answer.is_error:
            raise EngineError(f"the Prefect API answers {path} with {answer.status_code}", where=self.shown, mend=mend)
        return answer.json() if answer.content else None


def _announced(flow_run: Mapping[str, Any]) -> Announced:
    state = flow_run.get("state") or {}
    return Announced(
        flow_run_id=str(flow_run["id"]),
        name=str(flow_run.get("name") or ""),
        state=str(state.get("type") or flow_run.get("state_type") or "SCHEDULED"),
        message=str(state.get("message") or ""),
        superseded=state.get("name") == "Superseded",
    )


def triggered(server: Server, deploy_id: str, deployments: list[str]) -> Announced | None:
    """Wait for the flow run of a deploy that was just announced; None when none came."""
    deadline = time.monotonic() + TRIGGERED_WITHIN_S
    while time.monotonic() < deadline:
        if (found := server.flow_run_of(deploy_id, deployments)) is not None:
            return found
        time.sleep(0.5)
    return None


def followed(server: Server, found: Announced, *, timeout_s: float, tell: Callable[[Announced], None]) -> Announced:
    """Wait until a flow run has ended.

    Args:
        server: Where it is.
        found: The flow run.
        timeout_s: How long to wait.
        tell: Is told each new state.

    Raises:
        EngineError: it has not ended in time, or the API does not answer for a minute.
    """
    deadline = time.monotonic() + timeout_s
    silent_since: float | None = None
    while not found.has_ended:
        if time.monotonic() > deadline:
            raise EngineError(
                f"flow run {found.name} has not ended within {timeout_s:g} s: it is {found.state.lower()}",
                where=server.shown,
                mend="is a worker running? `prefect worker start --pool ragscore`",
            )
        time.sleep(1.0)
        try:
            now = server.flow_run(found.flow_run_id)
        except EngineError:  # a server that is restarted while we wait is no verdict
            silent_since = silent_since or time.monotonic()
            if time.monotonic() - silent_since > 60:
                raise
            continue
        silent_since = None
        if now.state != found.state:
            tell(now)
        found = now
    return found
