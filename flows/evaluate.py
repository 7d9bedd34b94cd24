"""The flow `evaluate`: the chain of `ragscore.pipeline` with each stage of each batch as a retryable task."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from pathlib import Path
from typing import Any

import httpx
from prefect import State, flow, get_run_logger, task
from prefect.cache_policies import NO_CACHE
from prefect.context import FlowRunContext
from prefect.events.clients import PrefectEventsClient
from prefect.events.worker import EventsWorker
from prefect.exceptions import PrefectException
from prefect.runtime import flow_run
from prefect.settings import PREFECT_API_URL, PREFECT_CLIENT_MAX_RETRIES, temporary_settings

from ragscore.addresses import without_secrets
from ragscore.assembly import assemble
from ragscore.errors import EngineError, RagscoreError
from ragscore.flows import artifacts, contact, ending, events, opening
from ragscore.flows.stages import carried_through
from ragscore.flows.suites import chosen
from ragscore.flows.telling import MOST_WORST
from ragscore.gate import evaluate_gate
from ragscore.history import History, RunRow, select
from ragscore.home import history_path
from ragscore.report.summary import summary_of
from ragscore.runs import Run, begin, new_run_id, parts_of

#: How often a request of a run that somebody waits for at a terminal is repeated: about 14 s.
RETRIES_OF_REQUESTS = 3
#: How often such a run connects again to send an event: at once, without waiting.
RECONNECTIONS = 2


def _named() -> str:
    given = flow_run.parameters
    return " ".join(filter(None, ("evaluate", Path(str(given["suite"])).stem, given.get("version"))))


@flow(name="evaluate", flow_run_name=_named, validate_parameters=False, persist_result=False)
async def evaluate(
    suite: str,
    history: str | None = None,
    trigger: str | None = None,
    version: str | None = None,
    retriever: str | None = None,
    deploy_id: str | None = None,
    dask: str | None = None,
) -> str | State[Any]:
    """Evaluate one suite, hold it against its gate, and remember every verdict.

    Ends Failed with a one-line reason when the gate fails (exit 1) or the run could not be evaluated (exit 3), else
    Completed. A retry, and a second flow run of the same deploy, go on with the same run.

    Args:
        suite: Path of the suite file.
        history: Path of the history file; the default place when left out.
        trigger: What started the run, for the history; `schedule` or `flow` when left out.
        version: The version that is evaluated, in the place of the suite's own.
        retriever: Chooses among several targets of a suite.
        deploy_id: The deploy that is evaluated; makes the run's id, so that a deploy is one run.
        dask: The Dask cluster whose workers ask target and judge: the address of its scheduler, `local`, `local:N`.

    Returns:
        The run's id in the history; or the state that says how it ended.
    """
    try:
        async with contact.or_left():
            run = await load_dataset(suite, history, trigger or _trigger(), version, retriever, deploy_id)
            return await carried_out(run, dask=dask)
    except RagscoreError as error:
        return ending.error_state(error)


async def carried_out(run: Run, *, dask: str | None = None) -> str | State[Any]:
    """Take an open run to its end, and say how it ended; what it holds is closed.

    Raises:
        RagscoreError: it cannot go on, and its row says so.
    """
    try:
        await carried_through(run, watched=opening.is_watched.get(), dask=dask)
    except BaseException as error:
        _write_down(run, error)
        raise
    finally:
        if opening.opened.get() is None:
            await run.parts.judging.aclose()
    if not opening.is_watched.get():
        return ending.cancelled_state(run.run_id) if run.stopping else run.run_id
    if run.stopping:
        run.history.finish_run(run.run_id, status="cancelled")
        return ending.cancelled_state(run.run_id)
    run.history.finish_run(run.run_id, status="complete")
    if contact.is_lost():
        return run.run_id  # nobody to report to; `or_left` says so
    return (await report(run)).state(run.run_id)


def _write_down(run: Run, error: BaseException) -> None:
    # Cancelled in the UI, or the worker is stopping: what is stored stays, and a retry or `resume` does the rest.
    if opening.opened.get() is None:
        is_stop = isinstance(error, asyncio.CancelledError) or not isinstance(error, Exception)
        said = "the flow run was stopped" if is_stop else ending.shortened(str(error))
        run.history.finish_run(run.run_id, status="cancelled" if is_stop else "failed", error=said)


async def report(run: Run) -> ending.Ending:
    """Hold a run that ended against its gate, and tell the server: artifacts, events, and how it ended."""
    history, suite = run.history, run.parts.suite
    row = history.run(run.run_id)
    gate = await asyncio.to_thread(evaluate_gate, history, row, suite)
    row = history.run(run.run_id)
    summary = await asyncio.to_thread(summary_of, history, row, worst=MOST_WORST)
    ended = ending.ending_of(summary, gate)
    change = await artifacts.tell(history, summary, gate, suite, verdict=ended.verdict)
    if row.status == "complete":
        worse = sorted({item for (item, _), moved in change.by_item.items() if moved < 0})
        means = {each.scorer: each.mean for each in summary.scorers}
        events.emit_run(row, ended.verdict, ended.said, means, worse)
    if ended.verdict == ending.ERROR:
        ending.tell_failed(ended.said, row)
    get_run_logger().info("%s: %s", row.run_id, ended.said)
    return ended


@task(name="load_dataset", task_run_name="load dataset", cache_policy=NO_CACHE, persist_result=False)
async def load_dataset(
    suite: str,
    history: str | None,
    trigger: str,
    version: str | None = None,
    retriever: str | None = None,
    deploy_id: str | None = None,
) -> Run:
    """Read and check the suite and its dataset, and open the run; a retry of the flow finds the same run again."""
    if (run := opening.opened.get()) is not None:
        return run
    store = History(history_path(Path(history) if history else None))
    file = None
    begun = run_of_this_flow_run(store)
    if begun is None:
        file = chosen(Path(suite), retriever=retriever, version=version)
        tail = str(flow_run.id)[-6:]
        if deploy_id is not None:
            tail = deploy_tail(deploy_id, file.suite.name)
            begun = run_of_deploy(store, deploy_id, file.suite.name)
        run_id = new_run_id(at=flow_run.scheduled_start_time, tail=tail)
    if begun is not None:
        run_id, trigger = begun.run_id, begun.trigger or trigger
        parts = parts_of(begun)
    else:
        assert file is not None
        parts = assemble(file, run_id=run_id)
    await parts.judging.prepare()
    return begin(parts, store, run_id=run_id, trigger=trigger, engine="prefect", flow_run_id=str(flow_run.id))


def run_of_this_flow_run(history: History, *, suite: str | None = None) -> RunRow | None:
    """The run (of a suite) that an earlier try of this flow run has begun."""
    if not history.exists():
        return None
    query = "SELECT run_id FROM runs WHERE flow_run_id = $1 AND ($2::VARCHAR IS NULL OR suite = $2)"
    found = select(history.path, query, [str(flow_run.id), suite]).rows
    return history.run(str(found[0][0])) if found else None


def deploy_tail(deploy_id: str, suite: str) -> str:
    """The end of the run id of a deploy's run of a suite: 12 hex digits."""
    return hashlib.sha256(f"{deploy_id}\n{suite}".encode()).hexdigest()[:12]


def run_of_deploy(history: History, deploy_id: str, suite: str) -> RunRow | None:
    """The run that evaluates a deploy with a suite, in whatever state it is."""
    if not history.exists():
        return None
    tail = deploy_tail(deploy_id, suite)
    query = "SELECT run_id FROM runs WHERE suite = ? AND ends_with(run_id, ?)"
    found = select(history.path, query, [suite, f"-{tail}"]).rows
    return history.run(str(found[0][0])) if found else None


def _trigger() -> str:
    context = FlowRunContext.get()
    is_scheduled = context is not None and context.flow_run is not None and context.flow_run.auto_scheduled
    return "schedule" if is_scheduled else "flow"


async def evaluate_run(run: Run, *, watched: bool = True, dask: str | None = None) -> None:
    """Take an opened run through the flow, in this event loop.

    Args:
        run: The run; who opened it ends it.
        watched: Whether the server is one that somebody looks at.
        dask: See the flow `evaluate`.

    Raises:
        RagscoreError: it cannot go on, or the API stopped answering before the run was whole; what is stored stays.
    """
    run_token, watched_token = opening.opened.set(run), opening.is_watched.set(watched)
    given = str(run.parts.file.path or run.parts.suite.name), str(run.history.path), "cli"
    if watched:
        # Else each event that is left would wait long for a dead server.
        EventsWorker.set_client_override(PrefectEventsClient, reconnection_attempts=RECONNECTIONS)
    logging.raiseExceptions = False  # Prefect's log handlers write to the terminal, which belongs to the progress
    try:
        with temporary_settings({PREFECT_CLIENT_MAX_RETRIES: RETRIES_OF_REQUESTS}) as settings:
            async with contact.Contact(str(PREFECT_API_URL.value()), settings, run.observer.note):
                state = await evaluate(*given, dask=dask, return_state=True)
        if isinstance(raised := getattr(state.data, "result", state.data), BaseException):
            raise raised  # Prefect wraps what the flow did not expect itself
    except contact.Left as left:
        contact.forget_events()
        cause = left.__cause__
        if cause is not None and not isinstance(cause, contact.FAULTS):
            raise cause from None
        if watched or cause is not None:
            _not_told(run, "the Prefect API does not answer", cause)
        return
    except (httpx.HTTPError, PrefectException) as error:
        _not_told(run, f"the Prefect API stopped answering: {str(error) or type(error).__name__}", error)
        return
    finally:
        opening.opened.reset(run_token)
        opening.is_watched.reset(watched_token)


def _not_told(run: Run, said: str, error: BaseException | None) -> None:
    """Say that the server does not know how the run ended; an error when the run has not ended either."""
    ended = run.history.run(run.run_id).status
    if ended == "running":
        mend = f"`ragscore resume {run.run_id} --engine local` does the rest"
        raise EngineError(said, where=without_secrets(str(PREFECT_API_URL.value())), mend=mend) from error
    if ended == "complete":
        told = f"`ragscore resume {run.run_id}` tells it once it answers"
        run.observer.note(f"{said}: it was not told how the run ended, which is whole in the history; {told}")
