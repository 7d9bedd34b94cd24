"""The local engine: the stages of the chain in this process, with retries, without Prefect."""

from __future__ import annotations

from functools import partial

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt, wait_exponential_jitter

from ragscore import pipeline
from ragscore.errors import RagscoreError
from ragscore.items import Batch
from ragscore.pipeline import Stage, Stages
from ragscore.runs import Run


async def evaluate_locally(run: Run) -> None:
    """Take the run through the chain.

    Raises:
        RagscoreError: it cannot go on; what is stored stays.
    """
    names = ("invoke_target", "extract_contexts", "judge", "score", "store")
    await pipeline.evaluate(run, Stages(**{name: _retrying(getattr(pipeline, name)) for name in names}))


def is_transient(error: BaseException) -> bool:
    """Whether the same stage may succeed a little later."""
    return isinstance(error, RagscoreError) and error.transient


def _retrying(stage: Stage) -> Stage:
    async def retried(run: Run, batch: Batch) -> Batch:
        suite = run.parts.suite
        retry = AsyncRetrying(
            retry=retry_if_exception(is_transient),
            stop=stop_after_attempt(suite.retries + 1),
            wait=wait_exponential_jitter(multiplier=suite.retry_delay_s, max=60, jitter=suite.retry_delay_s / 2),
            before_sleep=partial(_say, run),
            reraise=True,
        )
        return await retry(stage, run, batch)

    return retried


def _say(run: Run, state: RetryCallState) -> None:
    error = state.outcome.exception() if state.outcome is not None else None
    wait = state.next_action.sleep if state.next_action is not None else 0
    retries = run.parts.suite.retries
    run.observer.note(f"{error}; trying again in {wait:.0f} s ({state.attempt_number} of {retries})")
