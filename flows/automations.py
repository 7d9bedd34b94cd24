"""The automations of a Prefect server: for a suite that falls silent, a worker that died, and who is told of what."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from prefect.automations import AutomationCore
from prefect.client.schemas.objects import StateType
from prefect.events import EventTrigger, Posture, ResourceSpecification
from prefect.events.actions import ChangeFlowRunState, DoNothing, SendNotification

from ragscore.flows import events

#: Hours without a complete run after which the dead man's automation speaks: a day and two hours.
SILENCE_H = 26
#: Seconds without heartbeat after which a flow run is taken for crashed: three beats of 30 s.
HEARTBEATS_STOPPED_S = 90
#: The final states of a flow run, by the names of their events.
_ENDED = ("Completed", "Failed", "Cancelled", "Crashed")


def silence_of(suite: str) -> str:
    """The name of the dead man's automation of a suite."""
    return f"ragscore: no complete run of {suite} for {SILENCE_H} h"


def automations(suites: Sequence[str], notify: Any = None) -> list[AutomationCore]:
    """The automations: a suite that falls silent, a worker that died, and what somebody is to be told of.

    Args:
        suites: Names of suites.
        notify: The id of a notification block.
    """
    ours = ResourceSpecification({"prefect.resource.id": "prefect.tag.ragscore", "prefect.resource.role": "tag"})
    made = [
        AutomationCore(
            name=silence_of(name),
            description="The dead man's switch: schedules, workers or runs have stopped.",
            trigger=EventTrigger(
                posture=Posture.Proactive,
                expect={events.COMPLETED},
                match=ResourceSpecification({"ragscore.suite": name}),
                threshold=1,
                within=timedelta(hours=SILENCE_H),
            ),
            actions=[_told(notify, f"No complete run of {name}", f"For {SILENCE_H} h no run of {name} was complete.")],
        )
        for name in suites
    ]
    made.append(
        AutomationCore(
            name="ragscore: a flow run whose heartbeats stopped has crashed",
            description="Its worker was killed. Retry the flow run: it goes on with the same run.",
            trigger=EventTrigger(
                posture=Posture.Proactive,
                after={"prefect.flow-run.heartbeat"},
                expect={"prefect.flow-run.heartbeat", *(f"prefect.flow-run.{state}" for state in _ENDED)},
                match=ResourceSpecification({"prefect.resource.id": "prefect.flow-run.*"}),
                match_related=ours,
                for_each={"prefect.resource.id"},
                threshold=1,
                within=timedelta(seconds=HEARTBEATS_STOPPED_S),
            ),
            actions=[
                ChangeFlowRunState(
                    state=StateType.CRASHED, message="no heartbeat any more; a retry goes on with the same run"
                )
            ],
        )
    )
    if notify is not None:
        made += _notifications(notify, ours)
    return made


def _notifications(notify: Any, ours: ResourceSpecification) -> list[AutomationCore]:
    """What somebody is told of, once each: the flow's own events, and the state of one that could not tell any more."""
    words = {
        events.REGRESSION: ("a regression", "retrieval got worse"),
        events.FAILED: ("a run that could not be evaluated", "could not be evaluated"),
        events.DRIFTED: ("a judge that has drifted", "the judge decides otherwise than before"),
    }
    made = [
        AutomationCore(
            name=f"ragscore: tell about {what}",
            trigger=_each(event, {"prefect.resource.id": "ragscore.*"}),
            actions=[
                _told(
                    notify,
                    f"{{{{ event.resource.name }}}}: {headline}",
                    "{{ event.payload.said }}"
                    "{% if event.payload.run_id %}\nragscore show {{ event.payload.run_id }}{% endif %}",
                )
            ],
        )
        for event, (what, headline) in words.items()
    ]
    deployed = ResourceSpecification({"prefect.resource.role": "deployment"})  # its subflows have none
    made.append(
        AutomationCore(
            name="ragscore: tell about a flow run that crashed",
            trigger=_each("prefect.flow-run.Crashed", {"prefect.resource.id": "prefect.flow-run.*"}, [ours, deployed]),
            actions=[
                _told(
                    notify,
                    "{{ flow_run.name }} crashed",
                    "{{ flow_run.state.message }}\nRetry the flow run: it goes on with the same run.",
                )
            ],
        )
    )
    return made


def _each(event: str, match: dict[str, Any], related: list[ResourceSpecification] | None = None) -> EventTrigger:
    """A trigger that fires each time the event comes, for each thing it is about."""
    return EventTrigger(
        posture=Posture.Reactive,
        expect={event},
        match=ResourceSpecification(match),
        match_related=related or ResourceSpecification({}),
        for_each={"prefect.resource.id"},
        threshold=1,
    )


def _told(notify: Any, subject: str, body: str) -> DoNothing | SendNotification:
    return SendNotification(block_document_id=notify, subject=subject, body=body) if notify else DoNothing()
