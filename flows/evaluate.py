"""The flow `evaluate`: the chain of `ragscore.pipeline` with each stage of each batch as a retryable task."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from prefect import flow, task
from prefect.cache_policies import NO_CACHE
from prefect.runtime import flow_run
from prefect.tasks import exponential_backoff

from ragscore import pipeline
from ragscore.assembly import assemble
from ragscore.engine import is_transient
from ragscore.history import History
from ragscore.home import history_path
from ragscore.items import Batch
from ragscore.pipeline import Stage, Stages
from ragscore.runs import Run, begin, new_run_id
from ragscore.suite_file import read_suite

#: A run that the caller has opened already (the command line, which draws its progress).
opened: ContextVar[Run | None] = ContextVar("opened", default=None)


@flow(name="evaluate", flow_run_name="evaluate {suite}", validate_parameters=False, persist_result=False)
async def evaluate(suite: str, history: str | None = None, trigger: str = "flow") -> str:
    """Evaluate one suite and remember every verdict.

    Args:
        suite: Path of the suite file.
        history: Path of the history file; the default place when left out.
        trigger: What started the run, for the history.

    Returns:
        The run's id in the history.

    Raises:
        RagscoreError: it could not be evaluated; `ragscore resume` does the rest.
    """
    run = await load_dataset(suite, history, trigger)
    try:
        await pipeline.evaluate(run, stages_as_tasks(run))
    finally:
        if opened.get() is None:
            await run.parts.judging.aclose()
    if opened.get() is None:  # who opened the run ends it
        run.history.finish_run(run.run_id, status="complete")
    return run.run_id


@task(name="load_dataset", task_run_name="load dataset", cache_policy=NO_CACHE, persist_result=False)
async def load_dataset(suite: str, history: str | None, trigger: str) -> Run:
    """Read and check the suite and its dataset, and open the run; a retry of the flow finds the same run again."""
    if (run := opened.get()) is not None:
        return run
    run_id = new_run_id(at=flow_run.scheduled_start_time, tail=str(flow_run.id)[-6:])
    parts = assemble(read_suite(Path(suite)), run_id=run_id)
    await parts.judging.prepare()
    return begin(
        parts,
        History(history_path(Path(history) if history else None)),
        run_id=run_id,
        trigger=trigger,
        engine="prefect",
        flow_run_id=str(flow_run.id),
    )


class Carried:
    """A batch on its way through tasks. Not a collection, so that Prefect does not look for futures in it."""

    __slots__ = ("batch",)

    def __init__(self, batch: Batch) -> None:
        self.batch = batch


def stages_as_tasks(run: Run) -> Stages:
    """The stages of the chain, each as a Prefect task that is tried again after a passing fault."""
    names = ("invoke_target", "extract_contexts", "judge", "score", "store")
    return Stages(**{name: _as_task(run, name, getattr(pipeline, name)) for name in names})


def _as_task(run: Run, name: str, stage: Stage) -> Stage:
    suite = run.parts.suite

    async def carried_out(carried: Carried) -> Carried:
        return Carried(await stage(run, carried.batch))

    as_task: Any = task(
        name=name,
        retries=suite.retries,
        retry_delay_seconds=exponential_backoff(suite.retry_delay_s) if suite.retry_delay_s else 0,
        retry_jitter_factor=0.5 if suite.retry_delay_s else None,
        retry_condition_fn=_worth_a_retry,
        cache_policy=NO_CACHE,
        persist_result=False,
    )(carried_out)

    async def through(run: Run, batch: Batch) -> Batch:
        first, last = batch[0].position + 1, batch[-1].position + 1
        items = f"item {first}" if first == last else f"items {first}-{last}"
        named: Callable[[Carried], Awaitable[Carried]] = as_task.with_options(
            task_run_name=f"{name.replace('_', ' ')} {items}"
        )
        return (await named(Carried(batch))).batch

    return through


async def _worth_a_retry(task: Any, task_run: Any, state: Any) -> bool:
    error = await state.aresult(raise_on_failure=False)
    return isinstance(error, BaseException) and is_transient(error)


async def evaluate_run(run: Run) -> None:
    """Take an opened run through the flow, in this event loop."""
    token = opened.set(run)
    try:
        await evaluate(str(run.parts.file.path or run.parts.suite.name), str(run.history.path), "cli")
    finally:
        opened.reset(token)
