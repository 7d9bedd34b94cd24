"""The one retry layer: a request is sent within the limits, the budget and the time it has, until it is answered."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type

from ragscore.addresses import without_secrets
from ragscore.errors import ConfigError, JudgeRefused
from ragscore.items import Call
from ragscore.judges.budget import Budget, Reservation
from ragscore.judges.limiter import HeldTooLong, Limiter
from ragscore.judges.llm.wire import (
    CallFault,
    Client,
    Completion,
    PassingFault,
    RefusedFault,
    Request,
    Throttled,
    TimedOut,
)

#: Waits before the second, third, … attempt are drawn from 0 to FIRST_WAIT_S · 2ⁿ, at most LONGEST_WAIT_S
#: ("full jitter": Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015).
FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 30.0
#: The client's own time-out goes first, so that it can close its connection; ours is for clients that do not keep it.
GRACE_S = 0.5
#: Characters of a reply that are kept with its call; a model that repeats itself fills the whole room that it has.
MOST_REPLY = 20_000


@dataclass(frozen=True, slots=True)
class Sent:
    """What became of a request: answered (`completion`), or not within its retries and time (`fault`).

    `calls` are the attempts, in order. `queued_s` is how long it waited for our own limits; that time is not the
    provider's fault, so whoever sends several requests under one deadline adds it to the deadline.
    """

    completion: Completion | None
    calls: tuple[Call, ...] = ()
    fault: CallFault | None = None
    queued_s: float = 0.0


class Sender:
    """Sends requests through one client.

    Args:
        client: Makes one attempt per call.
        limiter: Shared by all who send to this model.
        budget: What may be spent; None for no limit.
        timeout_s: Seconds for one attempt.
        deadline_s: Seconds for a request with its retries, for `send` without a deadline of its own.
        max_retries: Attempts after the first, for passing faults.
        price: USD for (prompt tokens, completion tokens), to estimate what a request will cost; None when unknown.
        mend: What the user can do when the judge refuses; part of the error.
        seed: For the jitter; None for a different one each time.
        clock: Seconds that only grow; the limiter must have the same one.
        sleep: Waits for a number of those seconds.

    Raises:
        ConfigError: the budget is in dollars and the cost of requests will not be known.
    """

    def __init__(
        self,
        client: Client,
        *,
        limiter: Limiter,
        budget: Budget | None = None,
        timeout_s: float = 60.0,
        deadline_s: float = 300.0,
        max_retries: int = 6,
        price: Callable[[int, int], float | None] | None = None,
        mend: str = "check the key, the model's name and the address",
        seed: int | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        if budget is not None and budget.usd is not None and not client.has_price():
            raise ConfigError(
                f"a budget in dollars needs the price of {client.model}, which is not known",
                where="judge.budget_usd",
                mend="give `judge.price`, or `judge.budget_tokens` instead",
            )
        self.client = client
        self.limiter = limiter
        self.budget = budget
        self._timeout_s = timeout_s
        self._deadline_s = deadline_s
        self._max_retries = max_retries
        self._price = price
        self._mend = mend
        self._random = random.Random(seed)
        self._clock = clock
        self._sleep = sleep

    @property
    def where(self) -> str:
        """The model and its address, for messages."""
        address = self.client.base_url
        return f"{self.client.model} at {without_secrets(address)}" if address else self.client.model

    async def send(
        self,
        request: Request,
        *,
        params: Mapping[str, Any],
        deadline: float | None = None,
        attempts: list[Call] | None = None,
    ) -> Sent:
        """Send a request until it is answered, its retries are used up, or its time is.

        Args:
            request: What to send.
            params: Effective model parameters.
            deadline: Time by `clock` at which to give up; None: `deadline_s` from now. A retry that could only start
                after it (a long Retry-After) is not waited for. Waiting for our own limits is added to it.
            attempts: Every attempt is appended to it, also when an exception is raised.

        Raises:
            JudgeRefused: no request will succeed.
            BadRequest: this request is not accepted as it is (`TooLong`: it does not fit).
            BudgetSpent: there is nothing left to send it for.
        """
        calls = attempts if attempts is not None else []
        first = len(calls)
        course = _Course(deadline if deadline is not None else self._clock() + self._deadline_s)
        retrying = AsyncRetrying(
            sleep=self._sleep,
            wait=self._wait,
            stop=lambda state: self._is_over(state, course),
            retry=retry_if_exception_type(PassingFault),
            reraise=True,
        )
        try:
            completion: Completion = await retrying(self._attempt, request, params, course, calls)
        except PassingFault as fault:
            return Sent(None, tuple(calls[first:]), fault, course.queued_s)
        except HeldTooLong as held:
            throttled = Throttled(f"{held}, longer than this task may take", retry_after_s=held.wait_s)
            return Sent(None, tuple(calls[first:]), throttled, course.queued_s)
        except RefusedFault as refused:
            raise JudgeRefused(
                f"the judge refuses: {refused.what}",
                where=self.where,
                mend=self._mend,
            ) from refused
        return Sent(completion, tuple(calls[first:]), None, course.queued_s)

    async def _attempt(
        self, request: Request, params: Mapping[str, Any], course: _Course, calls: list[Call]
    ) -> Completion:
        prompt_tokens, usd = self._estimate(request)
        if self.budget is None:
            return await self._within_limits(request, params, course, calls, prompt_tokens, None)
        came = self._clock()
        async with self.budget.reserved(prompt_tokens + request.max_tokens, usd=usd) as reservation:
            course.queue(self._clock() - came)
            return await self._within_limits(request, params, course, calls, prompt_tokens, reservation)

    async def _within_limits(
        self,
        request: Request,
        params: Mapping[str, Any],
        course: _Course,
        calls: list[Call],
        prompt_tokens: int,
        reservation: Reservation | None,
    ) -> Completion:
        unbilled = True
        try:
            async with self.limiter.slot(tokens=prompt_tokens + request.max_tokens, deadline=course.deadline) as slot:
                course.queue(slot.queued_s)
                if self._clock() >= course.deadline:
                    raise TimedOut("no time was left to send it")
                try:
                    unbilled = False  # from here on until it is known better
                    completion = await self._once(request, params, course, calls)
                except Throttled as fault:
                    unbilled = True
                    slot.throttled(fault.retry_after_s)
                    raise
                except CallFault as fault:
                    unbilled = not isinstance(fault, TimedOut)
                    if fault.retry_after_s is not None:
                        self.limiter.hold(fault.retry_after_s)
                    raise
                used = _sum(completion.prompt_tokens, completion.completion_tokens)
                slot.answered(tokens=used)
                if self.budget is not None and reservation is not None:
                    self.budget.settle(reservation, tokens=used, usd=completion.cost_usd)
                return completion
        finally:
            if unbilled and self.budget is not None and reservation is not None:
                self.budget.release(reservation)

    async def _once(
        self, request: Request, params: Mapping[str, Any], course: _Course, calls: list[Call]
    ) -> Completion:
        started, began = time.time(), self._clock()
        seconds = min(self._timeout_s, course.deadline - began)
        completion: Completion | None = None
        outcome, error = "cancelled", None
        try:
            async with asyncio.timeout(seconds + GRACE_S):
                completion = await self.client.complete(request, params=params, timeout_s=seconds)
            outcome = "ok"
            return completion
        except TimeoutError as late:
            outcome, error = TimedOut.outcome, f"no answer within {seconds:g} s"
            raise TimedOut(error) from late
        except CallFault as fault:
            outcome, error = fault.outcome, fault.what
            raise
        finally:
            latency_ms = (self._clock() - began) * 1000
            calls.append(
                Call(
                    task=request.task,
                    model=self.client.model,
                    mode=request.mode,
                    outcome=outcome,
                    prompt_tokens=completion.prompt_tokens if completion is not None else None,
                    completion_tokens=completion.completion_tokens if completion is not None else None,
                    cached_tokens=completion.cached_tokens if completion is not None else None,
                    cost_usd=completion.cost_usd if completion is not None else None,
                    latency_ms=latency_ms
                    if completion is None or completion.latency_ms is None
                    else completion.latency_ms,
                    error=error,
                    started_at=started,
                    reply=kept(completion.text) if completion is not None else None,
                )
            )

    def _estimate(self, request: Request) -> tuple[int, float | None]:
        """Prompt tokens and, where there is a price, the cost at most. Counting takes time: only when it matters."""
        if self.budget is None and self.limiter.tpm is None:
            return 0, None
        prompt_tokens = self.client.count_tokens("\n".join(message["content"] for message in request.messages))
        return prompt_tokens, self._price(prompt_tokens, request.max_tokens) if self._price is not None else None

    def _wait(self, state: RetryCallState) -> float:
        """Full jitter, and never less than the provider asked for."""
        jittered = self._random.uniform(0.0, min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0 ** (state.attempt_number - 1)))
        fault = state.outcome.exception() if state.outcome is not None else None
        asked = fault.retry_after_s if isinstance(fault, CallFault) else None
        return max(jittered, asked or 0.0)

    def _is_over(self, state: RetryCallState, course: _Course) -> bool:
        if state.attempt_number > self._max_retries:
            return True
        return self._clock() + state.upcoming_sleep >= course.deadline


@dataclass(slots=True)
class _Course:
    """The time that a request has, on its way through its attempts."""

    deadline: float
    queued_s: float = 0.0

    def queue(self, seconds: float) -> None:
        """Waiting for our own limits is no part of the time that a request has."""
        self.queued_s += seconds
        self.deadline += seconds


def kept(reply: str) -> str:
    """`reply` as it is kept with its call: word for word up to `MOST_REPLY` characters, then a word that it was cut."""
    if len(reply) <= MOST_REPLY:
        return reply
    return f"{reply[:MOST_REPLY]}\n[… cut here: {len(reply) - MOST_REPLY:,} more characters]"


def _sum(prompt: int | None, completion: int | None) -> int | None:
    return None if prompt is None or completion is None else prompt + completion
