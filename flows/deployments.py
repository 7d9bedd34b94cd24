"""Deployments, their work pool and automations, made or brought up to date on a Prefect server.

What there is to deploy stands in `prefect.yaml` beside this file. Prefect ignores keys that it does not know in
silence; here they are an error.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Literal

import yaml
from prefect import Flow
from prefect.automations import AutomationCore
from prefect.client.orchestration import PrefectClient, get_client
from prefect.client.schemas.actions import WorkPoolCreate, WorkPoolUpdate
from prefect.client.schemas.filters import FlowFilter, FlowFilterName
from prefect.client.schemas.objects import ConcurrencyLimitConfig
from prefect.deployments.runner import RunnerDeployment
from prefect.events import DeploymentEventTrigger, ResourceSpecification
from prefect.events.actions import DoNothing
from prefect.exceptions import ObjectNotFound
from prefect.schedules import Cron
from prefect.types.entrypoint import EntrypointType
from prefect.workers.process import ProcessWorker
from pydantic import BaseModel, ConfigDict, ValidationError

from ragscore.errors import ConfigError, UsageError
from ragscore.flows.automations import automations, silence_of
from ragscore.suite_file import read_suites


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Schedule(_Part):
    cron: str
    timezone: str
    slug: str


class _Limit(_Part):
    limit: int
    collision_strategy: Literal["ENQUEUE", "CANCEL_NEW"]


class _Trigger(_Part):
    type: Literal["event"]
    enabled: bool
    expect: list[str]
    match: dict[str, str]
    parameters: dict[str, Any]


class _Pool(_Part):
    name: str
    job_variables: dict[str, Any]


class Declared(_Part):
    """One deployment, as `prefect.yaml` declares it."""

    name: str
    entrypoint: str
    description: str
    parameters: dict[str, Any] = {}
    schedules: list[_Schedule] = []
    triggers: list[_Trigger] = []
    concurrency_limit: _Limit | None = None
    tags: list[str]
    work_pool: _Pool


class _Declaration(_Part):
    name: str
    pull: list[Any]
    definitions: dict[str, Any]
    deployments: list[Declared]


@dataclass(frozen=True, slots=True)
class Settings:
    """What `ragscore deploy` decides about all deployments.

    Attributes:
        suites: Suite files; each becomes a deployment of `evaluate`.
        places: The files and folders as they were given; deploys of retrievers and the canary look there.
        history, home: Absolute paths that the worker uses.
        working_dir: Where the worker's processes start: `${VAR}`s aside, what a suite's relative modules see.
        pool: The work pool.
        at_once: The most flow runs of the pool at once; None leaves it open.
        cron, timezone: When every suite is evaluated; None takes those of `prefect.yaml`.
        notify: A notification block, `slack-webhook/my-team`; without one only the event feed shows what was found.
    """

    suites: Sequence[Path]
    places: Sequence[Path]
    history: Path
    home: Path
    working_dir: Path
    pool: str = "ragscore"
    at_once: int | None = None
    cron: str | None = None
    timezone: str | None = None
    notify: str | None = None


def declared() -> list[Declared]:
    """The deployments of `prefect.yaml`.

    Raises:
        ConfigError: the file has a key that nobody would read.
    """
    text = resources.files("ragscore.flows").joinpath("prefect.yaml").read_text(encoding="utf-8")
    try:
        return _Declaration.model_validate(yaml.safe_load(text)).deployments
    except ValidationError as error:
        raise ConfigError(f"prefect.yaml is not what it should be: {error}") from error


async def deploy(settings: Settings) -> list[str]:
    """Make or update pool, deployments and automations; doing it again changes nothing.

    Returns:
        One line for each, in the words of the user.

    Raises:
        ConfigError: a suite is wrong, or two have the same name.
        UsageError: the notification block is not there.
    """
    nightly = evaluations(settings.suites)
    said = []
    async with get_client() as client:
        notify = await _block(client, settings.notify) if settings.notify else None
        said.append(await _pool(client, settings))
        for each in declared():
            if each.entrypoint == "ragscore.flows.evaluate.evaluate":
                for evaluation in nightly:
                    said.append(await _apply(each, settings, evaluation))
            else:
                said.append(await _apply(each, settings))
        said += await _left_behind(client, nightly, settings.places)
        for automation in automations(list(dict.fromkeys(each.suite for each in nightly)), notify):
            said.append(await _automate(client, automation))
    return said


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One deployment of `evaluate`: a suite, or one target of it where it has several.

    Attributes:
        name: Of the deployment.
        suite: The suite's name.
        path: Its file.
        target: Parameters that choose the target; none where there is one only.
    """

    name: str
    suite: str
    path: Path
    target: Mapping[str, str]


#: What Prefect forbids in the name of a deployment.
_FORBIDDEN = re.compile("[/%&<>]")


def _named(suite: str, target: Mapping[str, Any]) -> str:
    return _FORBIDDEN.sub("-", " ".join([suite, *map(str, target.values())]))


def evaluations(paths: Sequence[Path]) -> list[Evaluation]:
    """What is evaluated by schedule: a flow run evaluates one target, so that each of several is a deployment.

    Raises:
        UsageError: two suites have the same name, or names that are the same to Prefect.
        SuiteError: a suite is wrong.
    """
    made: list[Evaluation] = []
    for path in paths:
        targets = [(each.suite.name, each.suite.target) for each in read_suites(path)]
        retrievers = [target.retriever for _, target in targets]
        of_file = []
        for name, target in targets:
            chosen = {}
            if len(targets) > 1:
                chosen["retriever"] = target.retriever
                if retrievers.count(target.retriever) > 1:
                    chosen["version"] = target.version
            named = _named(name, chosen)
            if any(named == each.name or name == each.suite for each in made):
                raise UsageError(f"two suites are named {name!r}", where=str(path), mend="give one another `name`")
            of_file.append(Evaluation(named, name, path.resolve(), chosen))
        made += of_file
    return made


async def _pool(client: PrefectClient, settings: Settings) -> str:
    try:
        found = await client.read_work_pool(settings.pool)
    except ObjectNotFound:
        await client.create_work_pool(
            WorkPoolCreate(
                name=settings.pool,
                type=ProcessWorker.type,
                base_job_template=ProcessWorker.get_default_base_job_template(),
                concurrency_limit=settings.at_once,
                description="Evaluations of retrieval (ragscore)",
            )
        )
    else:
        if found.concurrency_limit != settings.at_once:
            await client.update_work_pool(settings.pool, WorkPoolUpdate(concurrency_limit=settings.at_once))
    at_once = f", at most {settings.at_once} at once" if settings.at_once else ""
    return f"work pool {settings.pool}{at_once}"


async def _apply(each: Declared, settings: Settings, evaluation: Evaluation | None = None) -> str:
    name = each.name if evaluation is None else evaluation.name
    module, _, function = each.entrypoint.rpartition(".")
    flow = getattr(importlib.import_module(module), function)
    assert isinstance(flow, Flow)
    own = {
        "suite": None if evaluation is None else str(evaluation.path),
        "suites": [str(place.resolve()) for place in settings.places],
        "history": str(settings.history),
    }
    schedules = [
        Cron(
            settings.cron if evaluation and settings.cron else when.cron,
            timezone=settings.timezone or when.timezone,
            slug=when.slug,
        )
        for when in each.schedules
    ]
    deployment = RunnerDeployment.from_flow(
        flow,
        name=name,
        description=each.description,
        parameters={
            **{key: own.get(key, value) for key, value in each.parameters.items()},
            **(evaluation.target if evaluation is not None else {}),
        },
        schedules=schedules,
        triggers=[
            DeploymentEventTrigger(
                name=f"{flow.name}/{name}: {', '.join(trigger.expect)}",
                enabled=trigger.enabled,
                expect=set(trigger.expect),
                match=ResourceSpecification(trigger.match),
                parameters=trigger.parameters,
            )
            for trigger in each.triggers
        ],
        concurrency_limit=ConcurrencyLimitConfig.model_validate(each.concurrency_limit.model_dump())
        if each.concurrency_limit
        else None,
        tags=each.tags,
        work_pool_name=settings.pool,
        job_variables={
            **each.work_pool.job_variables,
            "env": {**each.work_pool.job_variables.get("env", {}), "RAGSCORE_HOME": str(settings.home)},
            "working_dir": str(settings.working_dir),
        },
        entrypoint_type=EntrypointType.MODULE_PATH,
    )
    await deployment.aapply()
    when = "; ".join(f"{schedule.cron} {schedule.timezone}" for schedule in schedules)
    on = ", ".join(event for trigger in each.triggers for event in trigger.expect)
    return f"deployment {deployment.full_name}" + (f", {when}" if when else "") + (f", on {on}" if on else "")


def _is_gone(path: Path, folders: Collection[Path]) -> bool:
    return path.parent in folders and not path.exists()


async def _left_behind(client: PrefectClient, nightly: Sequence[Evaluation], places: Sequence[Path]) -> list[str]:
    """Take away what an earlier `ragscore deploy` made for a suite or target that was renamed, or whose file is gone.

    Else the suite would run twice a night, and its old name would be missed for ever. What somebody else deployed
    stays: ours has the name of a suite that a dead man's automation watches.
    """
    current, files = {each.name for each in nightly}, {each.path for each in nightly}
    folders = {place.resolve() for place in places if place.is_dir()}
    suites = {_FORBIDDEN.sub("-", each.suite) for each in nightly}
    said, unwatched = [], {}
    for each in await client.read_deployments(flow_filter=FlowFilter(name=FlowFilterName(any_=["evaluate"]))):
        path = Path(str(each.parameters.get("suite")))
        is_gone = _is_gone(path, folders)
        if each.name in current or not (path in files or is_gone):
            continue
        target = {key: each.parameters[key] for key in ("retriever", "version") if each.parameters.get(key)}
        suite = each.name.removesuffix(_named("", target))
        found = await client.read_automations_by_name(silence_of(suite))
        if not found and suite not in suites:
            continue
        await client.delete_deployment(each.id)
        why = "its file is gone" if is_gone else f"{path.name} is evaluated under another name"
        said.append(f"removed deployment evaluate/{each.name}: {why}")
        if suite not in suites:
            unwatched.update({automation.id: automation.name for automation in found})
    for automation_id, name in unwatched.items():
        await client.delete_automation(automation_id)
        said.append(f"removed automation {name}")
    return said


async def _block(client: PrefectClient, named: str) -> Any:
    kind, _, name = named.partition("/")
    try:
        return (await client.read_block_document_by_name(name, kind)).id
    except ObjectNotFound:
        raise UsageError(
            f"there is no notification block {named}",
            where="--notify",
            mend="make it in the UI under Blocks, and write its kind and name, e.g. slack-webhook/my-team",
        ) from None


async def _automate(client: PrefectClient, automation: AutomationCore) -> str:
    found = await client.read_automations_by_name(automation.name)
    for surplus in found[1:]:
        await client.delete_automation(surplus.id)
    if found:
        if all(isinstance(action, DoNothing) for action in automation.actions):
            automation.actions = found[0].actions  # without --notify, who was to be told stays so
        await client.update_automation(found[0].id, automation)
    else:
        await client.create_automation(automation)
    return f"automation {automation.name}"
