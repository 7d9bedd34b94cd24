"""Batches on a Dask cluster through prefect-dask: stages are carried out by workers, and this process alone writes."""

from __future__ import annotations

import asyncio
import logging
import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from prefect import Task

from ragscore import __version__
from ragscore.errors import EngineError
from ragscore.flows import dask_worker
from ragscore.flows.clusters import LOCAL, checked
from ragscore.flows.dask_worker import Assignment, Done, Errand, HandedOver
from ragscore.history import RunRow
from ragscore.items import Batch
from ragscore.runs import Run

if TYPE_CHECKING:
    from prefect_dask.task_runners import DaskTaskRunner

#: Seconds that a cluster may take to show a worker.
PATIENCE_S = 60.0
MEND = "check the address and that workers run there"


class Cluster:
    """A Dask cluster that carries out stages, as long as the flow run that it was opened in lasts."""

    def __init__(self, runner: DaskTaskRunner, row: RunRow, workers: int) -> None:
        self._runner = runner
        self._row = row
        self._workers = workers

    @property
    def open_batches(self) -> int:
        """As many batches as keep every worker busy, and one more that waits."""
        return self._workers + 1

    async def carried_out(self, task: Task[..., Any], run: Run, stage: str, batch: Batch) -> Batch:
        """Have a worker carry out one stage for one batch, and write what it hands back.

        Raises:
            RagscoreError: the batch as a whole cannot go on.
        """
        run.observer.stage(stage, batch)
        assignment = Assignment(
            self._row,
            self._workers,
            learnt=run.parts.judging.learnt,
            redo=run.redo,
            target_given_up=run.target_given_up,
        )
        told = await asyncio.to_thread(_told, run, stage, batch)
        done = await self._submitted(task, Errand(assignment, stage, batch, told))
        run.target_answers += done.answers
        await asyncio.to_thread(_written, run, done)
        _observed(run, stage, done.batch)
        return done.batch

    async def _submitted(self, task: Task[..., Any], errand: Errand) -> Done:
        from distributed.scheduler import KilledWorker

        loop = asyncio.get_running_loop()
        finished: asyncio.Future[None] = loop.create_future()
        future: Any = self._runner.submit(task, {"errand": errand}).wrapped_future
        future.add_done_callback(lambda _: loop.call_soon_threadsafe(_set, finished))
        try:
            await finished
        except asyncio.CancelledError:
            with suppress(Exception):  # the cluster may be gone; whoever cancels does not wait for it
                await asyncio.to_thread(future.cancel)
            raise
        try:
            state = await asyncio.to_thread(future.result)
        except KilledWorker as error:
            what = f"workers of the Dask cluster died at this batch: {error}"
            raise EngineError(what, mend="see their logs (memory?), then resume") from error
        done: Done = await state.aresult()
        return done


@asynccontextmanager
async def cluster_at(dask: str, run: Run) -> AsyncIterator[Cluster]:
    """A connection to a cluster, or a cluster of processes of this machine; at the end workers forget the run.

    Args:
        dask: The address of a scheduler (`tcp://host:8786`), or `local` (one process per core), or `local:N`.
        run: The run whose batches are to be carried out.

    Raises:
        UsageError: it is neither, or the package prefect-dask is not installed.
        EngineError: there is no cluster, it has no workers, or they lack this very ragscore.
    """
    with _runner(dask) as runner:
        client = await asyncio.to_thread(_connected, runner, dask)
        # Those that join later have a part of the same size.
        workers = len(client.scheduler_info(n_workers=-1)["workers"])
        try:
            yield Cluster(runner, await asyncio.to_thread(run.history.run, run.run_id), workers)
        finally:
            with suppress(Exception):  # a worker that is gone holds nothing
                await asyncio.to_thread(partial(client.run, dask_worker.close_run, run.run_id))


def _runner(dask: str) -> DaskTaskRunner:
    checked(dask)
    from prefect_dask.task_runners import DaskTaskRunner

    # The terminal belongs to the progress; what goes wrong comes back as an error of the batch.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    found = LOCAL.fullmatch(dask)
    if found is None:
        return DaskTaskRunner(address=dask)
    # One thread each: all batches of a process share its loop, and stages block their thread only.
    return DaskTaskRunner(
        cluster_kwargs={
            "n_workers": _processes(found),
            "threads_per_worker": 1,
            "processes": True,
            "dashboard_address": None,
            "silence_logs": logging.CRITICAL,
        }
    )


def _processes(found: re.Match[str]) -> int:
    return int(found[1] or os.cpu_count() or 1)


def _connected(runner: DaskTaskRunner, dask: str) -> Any:
    try:
        client = runner.client
        found = LOCAL.fullmatch(dask)
        client.wait_for_workers(_processes(found) if found else 1, timeout=PATIENCE_S)
    except (OSError, TimeoutError) as error:  # distributed's time-outs are these
        raise EngineError(f"the Dask cluster does not answer: {error}", where=dask, mend=MEND) from error
    try:
        versions = set(client.run(dask_worker.version).values())
    except ImportError as error:
        raise EngineError(f"the workers of the Dask cluster lack ragscore: {error}", where=dask, mend=MEND) from error
    if versions - {__version__}:
        said = ", ".join(sorted(versions))
        mend = "install the same version in both places"
        raise EngineError(f"the workers have ragscore {said}, this process {__version__}", where=dask, mend=mend)
    return client


def _told(run: Run, stage: str, batch: Batch) -> HandedOver:
    """What the history holds of a batch, as far as the stage asks for it."""
    ids = [record.item.id for record in batch]
    match stage:
        case "invoke_target" | "ask_a_last_time":
            return HandedOver(responses=run.history.responses(run.run_id, ids))
        case "extract_contexts":
            return HandedOver(context_sets=run.history.context_sets(run.run_id, ids))
    return HandedOver(scored=run.history.scored(run.run_id, ids))


def _written(run: Run, done: Done) -> None:
    if done.to_write.answered:
        run.history.store_responses(run.run_id, done.to_write.answered)
    if done.to_write.extracted:
        run.history.store_contexts(run.run_id, done.to_write.extracted)


def _observed(run: Run, stage: str, batch: Batch) -> None:
    """Tell what happened elsewhere to whoever follows the run here."""
    match stage:
        case "invoke_target" | "ask_a_last_time":
            for record in batch:
                run.observer.asked(record.item)
                run.observer.answered(record.item)
        case "extract_contexts":
            run.note_extracted(batch)
        case "judge":
            for record in batch:
                run.observer.judged(record)


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
