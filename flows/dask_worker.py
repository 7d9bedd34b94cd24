"""What runs in a worker process of a Dask cluster: the stages of the chain, in the one lasting loop of the process.

A worker opens no history. It is told what the history holds of its batch, and hands back what is to be written: the
flow's process is the one that writes. Clients of the judge and the target are made here, once per run and process.
"""

from __future__ import annotations

import asyncio
import atexit
import copy
import sys
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ragscore import pipeline
from ragscore.assembly import assemble
from ragscore.datasets import Dataset
from ragscore.errors import RagscoreError
from ragscore.flows.shared_limits import shared_with_others
from ragscore.history import History, RunRow
from ragscore.items import Batch, ContextSet, Record, Response, Status
from ragscore.judges.allowance import share
from ragscore.runs import Redo, Run, suite_of
from ragscore.suite import JudgePart
from ragscore.suite_file import SuiteFile
from ragscore.targets import close

Responses = Mapping[str, tuple[Response, int]]
ContextSets = Mapping[str, Mapping[str, ContextSet]]
Scored = Mapping[str, Mapping[str, tuple[Status, int]]]


class HandedOver:
    """Stands in for the history in a worker (`runs.Kept`): what it holds of a batch, and what is to be written.

    No dataclass, so that Prefect does not look through it for futures.
    """

    def __init__(
        self,
        *,
        responses: Responses | None = None,
        context_sets: ContextSets | None = None,
        scored: Scored | None = None,
    ) -> None:
        self._responses = responses or {}
        self._context_sets = context_sets or {}
        self._scored = scored or {}
        self.answered: list[Record] = []
        self.extracted: list[Record] = []

    def again(self) -> HandedOver:
        """The same for another try: nothing is to be written yet."""
        return HandedOver(responses=self._responses, context_sets=self._context_sets, scored=self._scored)

    def responses(self, run_id: str, item_ids: Iterable[str]) -> dict[str, tuple[Response, int]]:
        """See `History.responses`."""
        return dict(self._responses)

    def context_sets(self, run_id: str, item_ids: Iterable[str]) -> dict[str, dict[str, ContextSet]]:
        """See `History.context_sets`."""
        return {item_id: dict(sets) for item_id, sets in self._context_sets.items()}

    def scored(self, run_id: str, item_ids: Iterable[str]) -> dict[str, dict[str, tuple[Status, int]]]:
        """See `History.scored`."""
        return {item_id: dict(scored) for item_id, scored in self._scored.items()}

    def store_responses(self, run_id: str, records: Sequence[Record]) -> int:
        """Have what the target answered written, each item once."""
        there = {record.item.id for record in self.answered}
        new = [record for record in records if record.item.id not in there]
        self.answered += new
        return len(new)

    def store_contexts(self, run_id: str, records: Sequence[Record]) -> int:
        """Have context sets written."""
        self.extracted += records
        return len(records)

    def store_scores(self, run_id: str, records: Sequence[Record]) -> int:
        """Scores are computed and written by the flow's process."""
        raise NotImplementedError


@dataclass(frozen=True)
class Assignment:
    """What a worker has to know of a run to make its parts.

    Attributes:
        row: The run's row in the history.
        workers: How many worker processes share what the suite allows.
        redo: See `Run.redo`.
        learnt: What the flow's process knows of the judge's models, so that no worker asks them for it again.
        target_given_up: Why the target is not asked any more.
    """

    row: RunRow
    workers: int
    learnt: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    redo: Redo = "all"
    target_given_up: str | None = None


class Errand:
    """One stage for one batch. No dataclass, for the same reason as `HandedOver`."""

    def __init__(self, assignment: Assignment, stage: str, batch: Batch, told: HandedOver) -> None:
        self.assignment = assignment
        self.stage = stage
        self.batch = batch
        self.told = told


class Done:
    """What came of an errand: the batch with one more field filled, what is to be written, how the target did."""

    def __init__(self, batch: Batch, told: HandedOver, answers: int) -> None:
        self.batch = batch
        self.to_write = told
        self.answers = answers


def carried_out(errand: Errand) -> Done:
    """Carry out one stage for one batch in the loop of this process; blocks until it is done.

    Raises:
        RagscoreError: the batch as a whole cannot go on.
    """
    _process.stop_profiler()
    return asyncio.run_coroutine_threadsafe(_carried_out(errand), _process.loop()).result()


async def _carried_out(errand: Errand) -> Done:
    opened = await _process.run_of(errand.assignment)
    opened.errands += 1
    try:
        run = copy.copy(opened.run)  # what the batch finds out is its own; slots, parts and clients are everybody's
        run.kept = told = errand.told.again()
        run.target_given_up = errand.assignment.target_given_up
        run.redo = errand.assignment.redo
        run.target_answers = 0
        batch = await getattr(pipeline, errand.stage)(run, errand.batch)
        return Done(batch, told, run.target_answers)
    finally:
        opened.errands -= 1


def version() -> str:
    """The version of ragscore that this worker has."""
    from ragscore import __version__

    return __version__


def close_run(run_id: str) -> None:
    """Close what this process holds of a run."""
    asyncio.run_coroutine_threadsafe(_process.close(run_id), _process.loop()).result()


@dataclass
class _Opened:
    run: Run
    errands: int = 0


@dataclass
class _Process:
    """The loop of this process and the runs that are open in it."""

    _loop: asyncio.AbstractEventLoop | None = None
    _runs: dict[str, _Opened] = field(default_factory=dict)
    _is_profiled: bool = True
    _guard: threading.Lock = field(default_factory=threading.Lock)
    _opening: asyncio.Lock = field(default_factory=asyncio.Lock)

    def loop(self) -> asyncio.AbstractEventLoop:
        """The event loop of this process, which runs in a thread of its own until the process ends."""
        with self._guard:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, name="ragscore", daemon=True).start()
                atexit.register(self._end)
            return self._loop

    def stop_profiler(self) -> None:
        """Stop Dask's statistical profiler in this worker.

        It asks for the frames of all threads all the time, and with threads that come and go, as those of blocking
        targets do, that deadlocks the interpreter (CPython gh-106883, Python 3.11.7 and 3.12.0 among others).
        """
        with self._guard:
            was, self._is_profiled = self._is_profiled, False
        if not was or "distributed" not in sys.modules:
            return
        from distributed import get_worker

        try:
            worker = get_worker()
        except ValueError:  # this process is no worker
            return
        for name in ("profile", "profile-cycle"):
            if (callback := worker.periodic_callbacks.get(name)) is not None:
                worker.loop.add_callback(callback.stop)

    async def run_of(self, assignment: Assignment) -> _Opened:
        """The run, opened here at its first errand; a new attempt takes the place of an earlier one."""
        async with self._opening:
            row = assignment.row
            known = self._runs.get(row.run_id)
            if known is not None and known.run.attempt == row.attempt:
                return known
            await self.close(row.run_id)
            share(shared_with_others)  # even if it is alone now: others may join
            parts = assemble(
                suite_share(suite_of(row), assignment.workers),
                run_id=row.run_id,
                dataset=Dataset(row.dataset, (), row.dataset_hash),
                begun=True,
            )
            parts.judging.tell(assignment.learnt)
            try:
                await parts.judging.prepare()
            except RagscoreError:
                await parts.judging.aclose()
                raise
            # The history is only named: nothing that a worker does opens it.
            run = Run(row.run_id, parts, History(parts.file.base_dir / "history"), attempt=row.attempt)
            self._runs[row.run_id] = _Opened(run)
            return self._runs[row.run_id]

    async def close(self, run_id: str) -> None:
        """Close what is held of a run, unless errands of it are still being carried out."""
        opened = self._runs.get(run_id)
        if opened is not None and not opened.errands:
            del self._runs[run_id]
            await close(opened.run.parts.target)
            await opened.run.parts.judging.aclose()

    def _end(self) -> None:
        async def close_all() -> None:
            for run_id in list(self._runs):
                await self.close(run_id)

        if self._loop is not None and self._loop.is_running():
            asyncio.run_coroutine_threadsafe(close_all(), self._loop).result(timeout=10)


_process = _Process()


def suite_share(file: SuiteFile, workers: int) -> SuiteFile:
    """What one of several worker processes may take of what a suite allows: calls at once, calls a second, budgets.

    Requests and tokens per minute are shared exactly, through the server. At least one call at once remains for each:
    with more workers than calls at once, that many more are in flight.
    """
    if workers == 1:
        return file

    def calls(at_once: int) -> int:
        return max(1, at_once // workers)

    suite = file.suite
    target = suite.target.model_copy(
        update={
            "concurrency": calls(suite.target.concurrency),
            "rps": None if suite.target.rps is None else suite.target.rps / workers,
        }
    )

    def judging(part: JudgePart, *, is_member: bool = False) -> JudgePart:
        shares = {
            "concurrency": calls(part.concurrency),
            "budget_usd": None if part.budget_usd is None else part.budget_usd / workers,
            "budget_tokens": None if part.budget_tokens is None else max(1, part.budget_tokens // workers),
            "jury": None if part.jury is None else [judging(member, is_member=True) for member in part.jury],
        }
        # What a member of a jury does not say itself holds for it as the jury says it.
        said = part.model_fields_set if is_member else set(shares)
        return part.model_copy(update={name: value for name, value in shares.items() if name in said})

    return replace(file, suite=suite.model_copy(update={"target": target, "judge": judging(suite.judge)}))
