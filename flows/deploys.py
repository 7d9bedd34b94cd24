"""The flow `on-retriever-deploy`: a retriever was deployed, so its suites are run and held against their gates."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

from prefect import State, flow, get_client, get_run_logger, tags
from prefect.artifacts import acreate_markdown_artifact
from prefect.client.schemas.filters import DeploymentFilter, DeploymentFilterId
from prefect.client.schemas.sorting import FlowRunSort
from prefect.runtime import flow_run
from prefect.states import Completed, Failed

from ragscore.counting import counted
from ragscore.errors import RagscoreError, UsageError
from ragscore.flows.artifacts import key_of
from ragscore.flows.codes import code_of
from ragscore.flows.ending import ERROR, Ending, ending_of, error_state, shortened, tell_failed
from ragscore.flows.evaluate import evaluate, run_of_deploy
from ragscore.flows.events import DEPLOYED
from ragscore.flows.suites import chosen, suites_of
from ragscore.flows.telling import as_text, table
from ragscore.gate import Check, GateResult, Verdict
from ragscore.history import History, RunRow
from ragscore.home import history_path
from ragscore.report.summary import summary_of

#: How many flow runs of the deployment are looked through for a newer deploy.
LOOKED_THROUGH = 200
#: Exit codes from the least to the gravest: of several suites, the gravest is the deploy's.
RANK = (0, 4, 1, 3, 2)


@flow(
    name="on-retriever-deploy",
    flow_run_name="deploy {retriever} {version}",
    validate_parameters=False,
    persist_result=False,
)
async def on_retriever_deploy(
    retriever: str,
    version: str,
    deploy_id: str | None = None,
    suites: Sequence[str] = ("suites",),
    history: str | None = None,
    payload: dict[str, Any] | None = None,
    only_newest: bool = True,
) -> State[Any]:
    """Run the suites of a retriever that was deployed, compare with the last passing version, and gate.

    A deploy is one `deploy_id`: announced twice it runs once, and the repeat reports the verdict. The same version
    with another id is a new deploy (a rollback, a new index).

    Args:
        retriever: Which one was deployed; suites name it as `target.retriever`.
        version: What was deployed; takes the place of each suite's `target.version`.
        deploy_id: The deploy; made from the flow run when left out.
        suites: Suite files and folders of them.
        history: Path of the history file; the default place when left out.
        payload: What else the event said; kept with the flow run.
        only_newest: Leave a deploy out when a newer one of the same retriever was announced while it waited.

    Returns:
        Failed with a one-line reason when a gate fails (exit 1) or a suite could not be evaluated (exit 3).
    """
    deploy_id = deploy_id or str(flow_run.id)
    try:
        if only_newest and (flow_run.run_count or 1) <= 1 and (newer := await _newer_deploy(retriever)):
            return Completed(name="Superseded", message=f"not run: {retriever} {newer} was announced while this waited")
        if missing := [name for name, value in (("retriever", retriever), ("version", version)) if not value]:
            said = f"the event {DEPLOYED} names no {' and no '.join(missing)}"
            raise UsageError(said, mend="its payload says retriever and version")
        store = History(history_path(Path(history) if history else None))
        found = suites_of(retriever, suites)
    except RagscoreError as error:
        return error_state(error)
    endings: dict[str, Ending] = {}
    for path, why in found.broken.items():
        endings[_file(path, endings)] = _broken(why)
    named: dict[str, Path] = {}
    for path in found.paths:
        try:
            suite = chosen(path, retriever=retriever, version=version).suite
            if suite.name in named:  # its run would be taken for the other's
                other = named[suite.name].name
                mend = "give one another `name`"
                raise UsageError(f"has the name of the suite in {other}, {suite.name!r}", where=str(path), mend=mend)
            named[suite.name] = path
            done = run_of_deploy(store, deploy_id, suite.name)
            if done is not None and done.status == "complete" and (done.gate is not None or not suite.gate.asks):
                endings[suite.name] = _reported(store, done)
            else:
                endings[suite.name] = await _evaluated(path, store, retriever, version, deploy_id)
        except RagscoreError as error:
            endings[_file(path, endings)] = _broken(error)
    await acreate_markdown_artifact(
        _markdown(retriever, version, deploy_id, endings, payload or {}),
        key=key_of("deploy", retriever),
        description=f"{retriever} {version}",
    )
    return _together(endings)


async def _evaluated(path: Path, store: History, retriever: str, version: str, deploy_id: str) -> Ending:
    with tags("ragscore"):  # so that it is found when its heartbeats stop
        state = await evaluate(
            str(path),
            str(store.path),
            trigger="deploy",
            version=version,
            retriever=retriever,
            deploy_id=deploy_id,
            return_state=True,
        )
    code = code_of(state.type.value, state.message)
    return Ending(code, _VERDICTS.get(code, "error"), state.message or state.name or "")


def _file(path: Path, taken: Collection[str]) -> str:
    """How a file is named among others, which may have the same name in other folders."""
    return path.name if path.name not in taken else str(path)


def _broken(error: RagscoreError) -> Ending:
    """A suite that cannot be run: told, and not passed over."""
    said = shortened(f"could not be evaluated (exit 3): {error}")
    tell_failed(said)
    return Ending(3, ERROR, said)


#: What of a payload is said elsewhere.
_KNOWN = ("retriever", "version", "deploy_id")
_VERDICTS = {0: "pass", 1: "fail", 4: "inconclusive"}


def _reported(store: History, done: RunRow) -> Ending:
    """How a run that is in the history ended, from what is kept with it."""
    get_run_logger().info("this deploy was evaluated before, as run %s: its verdict is reported", done.run_id)
    kept = done.gate or {}
    checks = [
        Check(each["what"], Verdict(each["verdict"]), each["said"], each.get("scorer"), each.get("slice"))
        for each in kept.get("checks", ())
    ]
    gate = GateResult(
        done.run_id,
        Verdict(done.gate_verdict) if done.gate_verdict else None,
        checks,
        kept.get("baseline"),
        on_inconclusive=kept.get("on_inconclusive", "warn"),
    )
    ended = ending_of(summary_of(store, done), gate)
    return Ending(ended.code, ended.verdict, shortened(f"{ended.said} (evaluated before, as run {done.run_id})"))


def _together(endings: dict[str, Ending]) -> State[Any]:
    """The gravest first, whose exit code counts; every suite that did not pass is named.

    Could not be evaluated is worse than a failed gate: nobody knows how it would have ended.
    """
    (first, worst), *others = sorted(endings.items(), key=lambda pair: RANK.index(pair[1].code), reverse=True)
    told = [f"{name}: {ended.said}" for name, ended in others if ended.code]
    if silent := len(others) - len(told):
        told.append(f"{counted(silent, 'other suite')} did not fail")
    message = shortened("; ".join([f"{first}: {worst.said}", *told]))
    return Failed(message=message) if worst.code in (1, 2, 3) else Completed(message=message)


def _markdown(retriever: str, version: str, deploy_id: str, endings: dict[str, Ending], payload: dict[str, Any]) -> str:
    lines = [f"- **{ended.verdict}** {as_text(name)}: {as_text(ended.said)}" for name, ended in endings.items()]
    said = [(str(key), str(value)) for key, value in payload.items() if key not in _KNOWN]
    blocks = [
        f"# {as_text(retriever)} {as_text(version)}",
        f"Deploy `{deploy_id.replace('`', '')}`.",
        "\n".join(lines),
        table(("announced with", "value"), said) if said else "",
    ]
    return "\n\n".join(filter(None, blocks)) + "\n"


async def _newer_deploy(retriever: str) -> str | None:
    """The version of the newest deploy of the retriever that was announced after this one; None when this is it."""
    async with get_client() as client:
        own = await client.read_flow_run(UUID(str(flow_run.id)))
        if own.deployment_id is None:
            return None
        runs = await client.read_flow_runs(
            deployment_filter=DeploymentFilter(id=DeploymentFilterId(any_=[own.deployment_id])),
            sort=FlowRunSort.EXPECTED_START_TIME_DESC,
            limit=LOOKED_THROUGH,
        )
    newer = [
        each
        for each in runs
        if each.id != own.id
        and each.created is not None
        and own.created is not None
        and each.created > own.created
        and each.parameters.get("retriever") == retriever
        and each.parameters.get("deploy_id") != own.parameters.get("deploy_id")
        and not (each.state is not None and each.state.is_cancelled())
    ]
    newest = max(newer, key=lambda each: each.created or own.created, default=None)  # type: ignore[arg-type,return-value]
    return None if newest is None else str(newest.parameters.get("version"))
