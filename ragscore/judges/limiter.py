"""How many requests a model gets at once and per minute: one limiter per model and address in a process.

Three limits hold together. *In flight*: at most `allowed`, which starts at `concurrency`, is halved when the provider
says 429 and grows again by one per `allowed` answered requests (additive increase, multiplicative decrease, Chiu &
Jain 1989). *rpm* and *tpm*: over any 60 seconds no more requests start, and no more tokens are asked for. *Holds*:
nothing new starts before the time that a provider asked us to wait for.

The minute is a sliding window, not a leaky bucket: a bucket lets through up to twice its rate in the minute after a
pause, and cannot be told afterwards that a request took other than its estimate.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from weakref import WeakValueDictionary

from ragscore.judges.allowance import Allowance, allowance_for

MINUTE_S = 60.0


class HeldTooLong(Exception):
    """The provider asked for a longer pause than whoever wants to send has time for; `wait_s` is what is left of it."""

    def __init__(self, wait_s: float) -> None:
        super().__init__(f"the provider asks to wait {wait_s:.0f} s more")
        self.wait_s = wait_s


@dataclass(slots=True)
class _Start:
    """A request in the sliding minute; `tokens` is the estimate until the true number is known.

    `cuts` is how often the number allowed had been halved by then.
    """

    at: float
    tokens: int
    cuts: int


@dataclass(slots=True, eq=False)
class _Ticket:
    """A place in the queue."""

    loop: asyncio.AbstractEventLoop
    woken: asyncio.Future[None]


@dataclass(slots=True)
class Slot:
    """The right to send one request, held while it is in flight.

    `queued_s` is how long it was waited for because of our own limits; time under a provider's hold is not in it.
    """

    queued_s: float
    _limiter: Limiter = field(repr=False)
    _start: _Start = field(repr=False)

    def answered(self, *, tokens: int | None = None) -> None:
        """The request was answered; `tokens` is what it took, prompt and completion, where known."""
        self._limiter._answered(self._start, tokens)

    def throttled(self, retry_after_s: float | None = None) -> None:
        """The provider said 429 to this request.

        Requests that were in flight together are told so together: only the first of them halves the number allowed.
        """
        self._limiter._throttled(retry_after_s, self._start)


class Limiter:
    """Lets requests to one model start when the limits allow it, first come, first served.

    Safe to use from several event loops, one after another or in several threads.

    Args:
        concurrency: Requests in flight at most, ≥ 1.
        rpm: Requests started in any 60 s at most; None for no limit.
        tpm: Tokens asked for in any 60 s at most; a request that alone exceeds it goes out alone.
        shared: Where others send to the same model: asked first, for each request. Waiting for it counts as waiting
            for our own limits.
        clock: Seconds that only grow, at the pace of the event loop's own.
    """

    def __init__(
        self,
        *,
        concurrency: int,
        rpm: int | None = None,
        tpm: int | None = None,
        shared: Allowance | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if concurrency < 1 or (rpm is not None and rpm < 1) or (tpm is not None and tpm < 1):
            raise ValueError("concurrency, rpm and tpm must be at least 1")
        self.concurrency = concurrency
        self.rpm = rpm
        self.tpm = tpm
        self.shared = shared
        self.allowed = concurrency
        self.in_flight = 0
        self._clock = clock
        self._lock = threading.Lock()
        self._queue: deque[_Ticket] = deque()
        self._minute: deque[_Start] = deque()
        self._minute_tokens = 0
        self._successes = 0
        self._cuts = 0
        self._hold_until = float("-inf")
        self._hold_total = 0.0

    @asynccontextmanager
    async def slot(self, *, tokens: int = 0, deadline: float | None = None) -> AsyncIterator[Slot]:
        """The right to send one request, once every limit allows it.

        Args:
            tokens: What the request is expected to take, prompt and completion.
            deadline: The time by `clock` until which a provider's hold is waited out. Waiting for our own limits
                does not count: it is added to the deadline.

        Raises:
            HeldTooLong: the hold ends after the deadline; raised at once.
            EvaluationError: whoever gives leave to all that send to this model does not answer.
        """
        waited = 0.0
        if self.shared is not None:
            came = self._clock()
            await self.shared.take(tokens)
            waited = self._clock() - came
        slot = await self._enter(tokens, None if deadline is None else deadline + waited)
        slot.queued_s += waited
        try:
            yield slot
        finally:
            with self._lock:
                self.in_flight -= 1
            self._wake_head()

    def throttled(self, retry_after_s: float | None = None) -> None:
        """Halve the number of requests allowed in flight (not below 1), and start none for `retry_after_s` seconds."""
        self._throttled(retry_after_s, None)

    def hold(self, seconds: float) -> None:
        """Start nothing new for `seconds`; a longer hold that is there already stands."""
        now = self._clock()
        with self._lock:
            until = max(self._hold_until, now + seconds)
            self._hold_total += until - max(now, self._hold_until) if until > now else 0.0
            self._hold_until = until

    def tighten(self, *, concurrency: int, rpm: int | None, tpm: int | None) -> None:
        """Take on the stricter of these limits and the present ones."""
        with self._lock:
            self.concurrency = min(self.concurrency, concurrency)
            self.allowed = min(self.allowed, self.concurrency)
            self.rpm = rpm if self.rpm is None else self.rpm if rpm is None else min(self.rpm, rpm)
            self.tpm = tpm if self.tpm is None else self.tpm if tpm is None else min(self.tpm, tpm)

    async def _enter(self, tokens: int, deadline: float | None) -> Slot:
        loop = asyncio.get_running_loop()
        ticket = _Ticket(loop, loop.create_future())
        came, held_before = self._clock(), self._held()
        with self._lock:
            self._queue.append(ticket)
        try:
            while True:
                wait: float | None = None
                with self._lock:
                    if self._queue[0] is ticket:
                        now = self._clock()
                        queued = now - came - (self._held_by(now) - held_before)
                        if deadline is not None and self._hold_until > max(now, deadline + queued):
                            raise HeldTooLong(self._hold_until - now)
                        wait = self._wait(tokens, now)
                        if wait == 0.0:
                            start = _Start(now, tokens, self._cuts)
                            self._minute.append(start)
                            self._minute_tokens += tokens
                            self.in_flight += 1
                            return Slot(max(0.0, queued), self, start)
                        ticket.woken = loop.create_future()
                # Woken early when a request ends: it may have taken fewer tokens than were set aside for it.
                with suppress(TimeoutError):
                    async with asyncio.timeout(wait):
                        await ticket.woken
        finally:
            with self._lock, suppress(ValueError):  # ValueError: the loop was found closed, and the ticket dropped
                self._queue.remove(ticket)
            self._wake_head()

    def _wait(self, tokens: int, now: float) -> float | None:
        """Seconds until the head of the queue may start; None when a request in flight must end first."""
        if self.in_flight >= self.allowed:
            return None
        while self._minute and self._minute[0].at + MINUTE_S <= now:
            self._minute_tokens -= self._minute.popleft().tokens
        until = self._hold_until
        if self.rpm is not None and len(self._minute) >= self.rpm:
            until = max(until, self._minute[len(self._minute) - self.rpm].at + MINUTE_S)
        if self.tpm is not None:
            over = self._minute_tokens + tokens - self.tpm
            for start in self._minute:
                if over <= 0:
                    break
                over -= start.tokens
                until = max(until, start.at + MINUTE_S)
        return max(0.0, until - now)

    def _wake_head(self) -> None:
        with self._lock:
            while self._queue and self._queue[0].loop.is_closed():
                self._queue.popleft()  # its loop ended without cancelling it: it will never send
            head = self._queue[0] if self._queue else None
            woken = head.woken if head is not None else None
        if head is None or woken is None:
            return
        if head.loop is _running_loop():
            head.loop.call_soon(_set, woken)  # waking a loop from outside takes two system calls
        else:
            head.loop.call_soon_threadsafe(_set, woken)

    def _answered(self, start: _Start, tokens: int | None) -> None:
        with self._lock:
            if tokens is not None:
                if self._minute and start.at >= self._minute[0].at:  # else it has left the minute
                    self._minute_tokens += tokens - start.tokens
                start.tokens = tokens
            self._successes += 1
            grown = self._successes >= self.allowed and self.allowed < self.concurrency
            if grown:
                self.allowed += 1
            if self._successes >= self.allowed or grown:
                self._successes = 0
        self._wake_head()

    def _throttled(self, retry_after_s: float | None, start: _Start | None) -> None:
        with self._lock:
            if start is None or start.cuts == self._cuts:
                self.allowed = max(1, self.allowed // 2)
                self._successes = 0
                self._cuts += 1
        if retry_after_s is not None and retry_after_s > 0:
            self.hold(retry_after_s)

    def _held(self) -> float:
        with self._lock:
            return self._held_by(self._clock())

    def _held_by(self, now: float) -> float:
        """Seconds that were under a hold, in all, until `now`."""
        return self._hold_total - max(0.0, self._hold_until - now)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


_limiters: WeakValueDictionary[tuple[str, str | None], Limiter] = WeakValueDictionary()
_registry = threading.Lock()


def limiter_for(
    model: str, base_url: str | None, *, concurrency: int, rpm: int | None = None, tpm: int | None = None
) -> Limiter:
    """The limiter of this process for `model` at `base_url`, shared by all who hold it.

    Where several judges of one model are alive at once, the strictest of their limits hold for all; when none is left,
    the next one starts afresh.
    """
    with _registry:
        limiter = _limiters.get((model, base_url))
        if limiter is None:
            shared = allowance_for(model, base_url, rpm=rpm, tpm=tpm)
            limiter = Limiter(concurrency=concurrency, rpm=rpm, tpm=tpm, shared=shared)
            _limiters[model, base_url] = limiter
        else:
            limiter.tighten(concurrency=concurrency, rpm=rpm, tpm=tpm)
    return limiter
