"""The events that ragscore tells a Prefect server, and the one it listens to.

`retriever.deployed` comes from outside (`ragscore notify`, or plain curl); the others are emitted by the flows.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from ragscore.history import RunRow

DEPLOYED = "retriever.deployed"
COMPLETED = "ragscore.run.completed"
REGRESSION = "ragscore.regression.detected"
FAILED = "ragscore.run.failed"
DRIFTED = "ragscore.judge.drifted"

_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_DNS, "events.ragscore")


def event_id(event: str, about: str) -> uuid.UUID:
    """The same id for the same thing announced again, so that a server that still remembers it drops the repeat."""
    return uuid.uuid5(_NAMESPACE, f"{event}/{about}")


def resource_of(run: RunRow, verdict: str) -> dict[str, str]:
    """The resource of a run's events."""
    return {
        "prefect.resource.id": f"ragscore.run.{run.run_id}",
        "prefect.resource.name": f"{run.suite} {run.version or ''}".strip(),
        **labels_of(run, verdict),
    }


def labels_of(run: RunRow, verdict: str) -> dict[str, str]:
    """The labels of a run's events, which automations match on."""
    return {
        "ragscore.suite": run.suite,
        "ragscore.retriever": run.retriever or "",
        "ragscore.version": run.version or "",
        "ragscore.gate": verdict,
        "ragscore.trigger": run.trigger or "",
    }


def deployed_event(retriever: str, version: str, deploy_id: str, payload: Mapping[str, Any]) -> dict[str, Any]:
    """The body of `retriever.deployed`, without its time: one entry of what is posted to `/api/events`."""
    return {
        "id": str(event_id(DEPLOYED, deploy_id)),
        "event": DEPLOYED,
        "resource": {"prefect.resource.id": f"retriever.{retriever}", "prefect.resource.name": retriever},
        "payload": {**payload, "retriever": retriever, "version": version, "deploy_id": deploy_id},
    }


def emit_run(run: RunRow, verdict: str, said: str, means: Mapping[str, Any], worse: Sequence[str]) -> None:
    """Tell that a run is complete, and, where its gate failed, that a regression was found. Once per attempt."""
    from prefect.events import emit_event

    payload = {
        "run_id": run.run_id,
        "items": run.items,
        "judge": run.judge,
        "gate": verdict,
        "said": said,
        "means": dict(means),
        "worse": list(worse),
    }
    names = [COMPLETED, *([REGRESSION] if verdict == "fail" else [])]
    for name in names:
        emit_event(
            name,
            resource=resource_of(run, verdict),
            related=[
                {
                    "prefect.resource.id": f"retriever.{run.retriever}",
                    "prefect.resource.role": "retriever",
                    "prefect.resource.name": run.retriever or "",
                }
            ],
            payload=payload,
            id=event_id(name, f"{run.run_id}/{run.attempt}"),
        )


def emit_failed(said: str, *, name: str, flow_run_id: str, count: int, labels: Mapping[str, str] | None = None) -> None:
    """Tell that a flow run could not evaluate what it was to evaluate; the same reason once per try of the flow run.

    Args:
        said: Why, in one line.
        name: Of the flow run.
        flow_run_id: Its id.
        count: How often it was tried.
        labels: More of its resource, such as the suite.
    """
    from prefect.events import emit_event

    emit_event(
        FAILED,
        resource={
            "prefect.resource.id": f"ragscore.flow-run.{flow_run_id}",
            "prefect.resource.name": name,
            **(labels or {}),
        },
        payload={"said": said},
        id=event_id(FAILED, f"{flow_run_id}/{count}/{said}"),
    )
