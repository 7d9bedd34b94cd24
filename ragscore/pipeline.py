"""The chain, written once: load_dataset → [batch] → invoke_target → extract_contexts → judge → score → store.

A stage takes a batch of records and returns it with one more field filled. Every stage first asks the history what is
there already, so that a retry, a resume and a second worker repeat nothing. What fails for one item becomes a status
in its rows; a stage raises only when the batch as a whole cannot go on. The Prefect flow and the local engine run the
same stages.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from ragscore.errors import RagscoreError, TargetDown
from ragscore.gathered import Gathered
from ragscore.items import Batch, Item, Record, Response, Score, Status
from ragscore.runs import Run
from ragscore.scorers import Judged, Sample, Scorer, unscored
from ragscore.targets import TargetFailure, close

T = TypeVar("T")
Stage = Callable[[Run, Batch], Awaitable[Batch]]

#: A run has at most this many batches: a Prefect server suffers from thousands of task runs.
MOST_BATCHES = 200


async def invoke_target(run: Run, batch: Batch, *, last_try: bool = False) -> Batch:
    """Fill `response`: what the history holds, else what the target answers; stored as soon as it has answered.

    Raises:
        TargetDown: every item that was asked met a fault that may pass; no fault is stored, so that a retry asks
            again. With `last_try` the faults are stored as they are instead.
    """
    stored = await _beside(run.kept.responses, run.run_id, _ids(batch))
    run.observer.stage("invoke_target", batch)

    async def keep(records: Batch) -> None:
        await _beside(run.kept.store_responses, run.run_id, records)

    async def answered(record: Record) -> Record:
        response, attempt = stored.get(record.item.id, (None, 0))
        if response is not None and (response.error is None or attempt >= record.attempt):
            return record.having(response=response)
        async with run.target_slots:
            record = record.having(response=await _ask_target(run, record.item))
        if record.response is not None and record.response.error is None:
            answers.add(record)
        return record

    async with Gathered(keep) as answers:
        records = await asyncio.gather(*(answered(record) for record in batch))
    fresh = [record for record in records if _is_new(record, stored)]
    if fresh and not last_try and all(run.passing_fault(record.item.id) for record in fresh):
        error = fresh[0].response.error if fresh[0].response is not None else ""
        raise TargetDown(f"the target does not answer: {error}", where=run.parts.target_name)
    await _beside(run.kept.store_responses, run.run_id, fresh)
    return records


async def ask_a_last_time(run: Run, batch: Batch) -> Batch:
    """Fill `response` when the retries are used up: what is not answered now becomes a status."""
    return await invoke_target(run, batch, last_try=True)


async def extract_contexts(run: Run, batch: Batch) -> Batch:
    """Fill `context_sets`: each distinct source once per item, stored; an item without response has none."""
    stored = await _beside(run.kept.context_sets, run.run_id, _ids(batch))
    run.observer.stage("extract_contexts", batch)

    async def extracted(record: Record) -> Record:
        response = record.response
        if response is None or response.error is not None:
            return record.having(context_sets={})
        chosen = [each.for_item(record.item, response) for each in run.parts.resolvers.values()]
        known = {name: each for name, each in stored.get(record.item.id, {}).items() if each.error is None}
        fresh = {
            source: await each.resolve(record.item, response)
            for source, each in {each.source: each for each in chosen}.items()
            if source not in known
        }
        to_store.append(record.having(context_sets=fresh))
        return record.having(context_sets={**known, **fresh})

    to_store: list[Record] = []
    records = await asyncio.gather(*(extracted(record) for record in batch))
    await _beside(run.kept.store_contexts, run.run_id, to_store)
    run.note_extracted(records)
    return records


async def judge(run: Run, batch: Batch) -> Batch:
    """Fill `judged`: for each scorer whose score the history does not hold, what its judge part found."""
    stored = await _beside(run.kept.scored, run.run_id, _ids(batch))
    run.observer.stage("judge", batch)

    async def judged(record: Record) -> Record:
        done = run.finished(stored.get(record.item.id, {}))
        pending = [scorer for scorer in run.parts.scorers if scorer.name not in done]
        results = await asyncio.gather(*(_judge_one(run, record, scorer) for scorer in pending))
        run.observer.judged(record)
        return record.having(judged={scorer.name: result for scorer, result in zip(pending, results, strict=True)})

    return await asyncio.gather(*(judged(record) for record in batch))


async def score(run: Run, batch: Batch) -> Batch:
    """Fill `scores` from the judgements; pure arithmetic."""
    run.observer.stage("score", batch)
    scorers = {scorer.name: scorer for scorer in run.parts.scorers}
    return [
        record.having(
            scores=tuple(
                _score_one(run, record, scorers[name], judged) for name, judged in (record.judged or {}).items()
            )
        )
        for record in batch
    ]


async def store(run: Run, batch: Batch) -> Batch:
    """Write scores and verdicts, in one transaction for the batch."""
    await _beside(run.kept.store_scores, run.run_id, batch)
    run.observer.stored(batch)
    return batch


@dataclass(frozen=True)
class Stages:
    """The stages of the chain, plain or wrapped by an engine."""

    invoke_target: Stage = invoke_target
    ask_a_last_time: Stage = ask_a_last_time
    extract_contexts: Stage = extract_contexts
    judge: Stage = judge
    score: Stage = score
    store: Stage = store


async def evaluate(run: Run, stages: Stages, *, at_once: int | None = None) -> None:
    """Take every pending batch of the run through the chain, several at once, in this event loop.

    A batch is made when there is room for it, so that a run holds only the batches that are open.

    Args:
        run: The run.
        stages: The stages, plain or wrapped by an engine.
        at_once: How many batches are open at most; as many as keep the judge busy when left out.

    Raises:
        RagscoreError: the run cannot go on; what is stored stays, and `resume` does the rest.
    """
    slots = asyncio.Semaphore(at_once or open_batches(run))

    async def through(batch: Batch) -> None:
        try:
            if not run.stopping:
                await _through(run, batch, stages)
        finally:
            slots.release()

    try:
        async with asyncio.TaskGroup() as group:
            for batch in run.pending.batches(batch_size(run)):
                await slots.acquire()
                if run.stopping:
                    break
                group.create_task(through(batch))
    except* RagscoreError as errors:
        raise _first(errors) from None
    finally:
        await close(run.parts.target)


async def _through(run: Run, batch: Batch, stages: Stages) -> None:
    try:
        batch = await stages.invoke_target(run, batch)
    except TargetDown as down:
        run.note_target_down(str(down))
        batch = await stages.ask_a_last_time(run, batch)
    batch = await stages.extract_contexts(run, batch)
    batch = await stages.judge(run, batch)
    batch = await stages.score(run, batch)
    await stages.store(run, batch)


def batch_size(run: Run) -> int:
    """How many items a batch has: the suite's `batch_size`, more where there would be more than 200 batches."""
    return max(run.parts.suite.batch_size, math.ceil(len(run.pending) / MOST_BATCHES))


def open_batches(run: Run) -> int:
    """As many batches as keep the judge's calls in flight, and one more that waits for its target."""
    suite = run.parts.suite
    return 1 + math.ceil(suite.judge.concurrency / (suite.batch_size * len(run.parts.scorers)))


async def _ask_target(run: Run, item: Item) -> Response:
    if run.target_given_up:
        return Response(error=f"not asked: {run.target_given_up}")
    run.observer.asked(item)
    try:
        response = await run.parts.target.invoke(item)
    except TargetFailure as failure:
        run.note_fault(item.id, passing=failure.passing)
        return Response(error=str(failure))
    finally:
        run.observer.answered(item)
    run.note_answer(item.id)
    return response


async def _judge_one(run: Run, record: Record, scorer: Scorer) -> Judged | Score:
    sample = _sample(run, record, scorer)
    if isinstance(sample, Score):
        return sample
    try:
        return await scorer.judge(sample, judge=run.parts.judge, claims=run.parts.claims)
    except RagscoreError:
        raise
    except Exception as error:  # noqa: BLE001 - the per-item, per-scorer boundary
        return _without_secrets(run, _scorer_error(scorer, error))


def _score_one(run: Run, record: Record, scorer: Scorer, judged: Judged | Score) -> Score:
    sample = _sample(run, record, scorer)
    if isinstance(judged, Score) or isinstance(sample, Score):
        return judged if isinstance(judged, Score) else sample  # type: ignore[return-value]
    try:
        result = scorer.score(sample, judged)
        if result.exact is not None and not 0 <= result.exact <= 1:
            raise ValueError(f"gave {result.exact}, outside of 0 to 1")
    except Exception as error:  # noqa: BLE001 - the per-item, per-scorer boundary
        result = _scorer_error(scorer, error)
    return result if result.status is Status.OK else _without_secrets(run, result)


def _without_secrets(run: Run, score: Score) -> Score:
    """What failed, as it may be kept: a judge or scorer that is not ours may tell with what it was made."""

    def hidden(text: str | None) -> str | None:
        return None if text is None else run.parts.file.secrets.hidden(text)

    calls = tuple(replace(call, error=hidden(call.error), reply=hidden(call.reply)) for call in score.calls)
    reason = run.parts.file.secrets.hidden(score.reason)
    return replace(score, reason=reason, error=hidden(score.error), raw=hidden(score.raw), calls=calls)


def _sample(run: Run, record: Record, scorer: Scorer) -> Sample | Score:
    """What the scorer looks at, or the score row that says why there is nothing to look at."""
    response = record.response
    if response is None or response.error is not None:
        error = response.error if response is not None else "no response"
        return unscored(scorer, Status.TARGET_ERROR, f"the target failed: {error}", error=error)
    contexts = (record.context_sets or {})[run.parts.resolvers[scorer.name].for_item(record.item, response).source]
    if contexts.error is not None:
        said = f"the contexts could not be extracted: {contexts.error}"
        return replace(unscored(scorer, Status.CONTEXT_ERROR, said, error=contexts.error), context_set=contexts.source)
    return Sample(record.item, response.output, contexts)


def _scorer_error(scorer: Scorer, error: Exception) -> Score:
    said = f"{type(error).__name__}: {error}"
    return unscored(scorer, Status.SCORER_ERROR, f"the scorer failed: {said}", error=said)


def _is_new(record: Record, stored: dict[str, tuple[Response, int]]) -> bool:
    return record.item.id not in stored or stored[record.item.id][0] is not record.response


def _ids(batch: Batch) -> list[str]:
    return [record.item.id for record in batch]


def _first(errors: BaseExceptionGroup[RagscoreError]) -> RagscoreError:
    found: BaseException = errors
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    assert isinstance(found, RagscoreError)
    return found


async def _beside(call: Callable[..., T], *arguments: object) -> T:
    """A blocking history call in a thread, so that waiting for a lock does not stop the others."""
    return await asyncio.to_thread(call, *arguments)
