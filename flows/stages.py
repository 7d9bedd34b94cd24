"""The stages of the chain as Prefect tasks: named by their items, tried again after passing faults only."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from prefect import task
from prefect.cache_policies import NO_CACHE
from prefect.tasks import exponential_backoff

from ragscore import pipeline
from ragscore.engine import is_transient
from ragscore.flows import dask_worker
from ragscore.flows.artifacts import Progress
from ragscore.items import Batch
from ragscore.pipeline import Stage, Stages
from ragscore.runs import Run

if TYPE_CHECKING:
    from ragscore.flows.dask import Cluster

#: Stages that ask somebody (the target, a user's function, the judge): with a cluster its workers carry them out.
ON_WORKERS = ("invoke_target", "ask_a_last_time", "extract_contexts", "judge")


async def carried_through(run: Run, *, watched: bool = True, dask: str | None = None) -> None:
    """Take the run through the chain, each stage of each batch as a task of the flow run that this is called in.

    Args:
        run: The run.
        watched: Show how far it is as an artifact.
        dask: The Dask cluster whose workers ask target and judge; see `dask.cluster_at`.

    Raises:
        RagscoreError: it cannot go on; what is stored stays.
    """
    progress = Progress(run) if watched else None
    if progress is not None:
        await progress.begin()
    if dask is None:
        await pipeline.evaluate(run, stages_as_tasks(run, progress))
    else:
        from ragscore.flows.dask import cluster_at

        async with cluster_at(dask, run) as cluster:
            await pipeline.evaluate(run, stages_as_tasks(run, progress, cluster), at_once=cluster.open_batches)
    if progress is not None:
        await progress.end()


class Carried:
    """A batch on its way through tasks. Not a collection, so that Prefect does not look for futures in it."""

    __slots__ = ("batch",)

    def __init__(self, batch: Batch) -> None:
        self.batch = batch


def stages_as_tasks(run: Run, progress: Progress | None = None, cluster: Cluster | None = None) -> Stages:
    """The stages of the chain, each as a Prefect task that is tried again after a passing fault."""
    names = ("invoke_target", "extract_contexts", "judge", "score", "store")
    stages = {name: _as_task(run, name, getattr(pipeline, name)) for name in names}
    if cluster is not None:
        stages |= {name: _on_cluster(run, name, cluster) for name in ON_WORKERS}
    if progress is not None:
        stages["store"] = _counted(stages["store"], progress)
    return Stages(**stages)


def _counted(store: Stage, progress: Progress) -> Stage:
    async def counted(run: Run, batch: Batch) -> Batch:
        stored = await store(run, batch)
        progress.stored(len(stored))
        return stored

    return counted


def _as_task(run: Run, name: str, stage: Stage) -> Stage:
    async def carried_out(carried: Carried) -> Carried:
        return Carried(await stage(run, carried.batch))

    as_task = _task(run, name, carried_out)

    async def through(run: Run, batch: Batch) -> Batch:
        named: Callable[[Carried], Awaitable[Carried]] = as_task.with_options(task_run_name=_named(name, batch))
        return (await named(Carried(batch))).batch

    return through


def _on_cluster(run: Run, name: str, cluster: Cluster) -> Stage:
    as_task = _task(run, name, dask_worker.carried_out)

    async def through(run: Run, batch: Batch) -> Batch:
        named = as_task.with_options(task_run_name=_named(name, batch))
        return await cluster.carried_out(named, run, name, batch)

    return through


def _task(run: Run, name: str, function: Callable[..., Any]) -> Any:
    suite = run.parts.suite
    return task(
        name=name,
        retries=suite.retries,
        retry_delay_seconds=exponential_backoff(suite.retry_delay_s) if suite.retry_delay_s else 0,
        retry_jitter_factor=0.5 if suite.retry_delay_s else None,
        retry_condition_fn=_worth_a_retry,
        cache_policy=NO_CACHE,
        persist_result=False,
    )(function)


def _named(name: str, batch: Batch) -> str:
    first, last = batch[0].position + 1, batch[-1].position + 1
    items = f"item {first}" if first == last else f"items {first}-{last}"
    return f"{name.replace('_', ' ')} {items}"


async def _worth_a_retry(task: Any, task_run: Any, state: Any) -> bool:
    error = await state.aresult(raise_on_failure=False)
    return isinstance(error, BaseException) and is_transient(error)
