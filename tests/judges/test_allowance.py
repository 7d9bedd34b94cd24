"""Several processes that share a judge's limits: leave is asked for each request before the process's own limiter."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from ragscore.errors import EngineError
from ragscore.judges.allowance import Allowance, share
from ragscore.judges.limiter import HeldTooLong, Limiter, limiter_for
from tests.judges.virtual_time import now, run


class Slow:
    """Gives leave after so many seconds, and remembers what for."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds
        self.taken: list[int] = []

    async def take(self, tokens: int) -> None:
        await asyncio.sleep(self.seconds)
        self.taken.append(tokens)


class Gone:
    async def take(self, tokens: int) -> None:
        raise EngineError("nobody gives leave")


@pytest.fixture
def sharing() -> Iterator[dict[tuple[str, str | None, int | None, int | None], Slow]]:
    """What is made for each model while this process is one of several."""
    made: dict[tuple[str, str | None, int | None, int | None], Slow] = {}

    def allowance(model: str, base_url: str | None, rpm: int | None, tpm: int | None) -> Allowance | None:
        return None if rpm is None else made.setdefault((model, base_url, rpm, tpm), Slow())

    share(allowance)
    yield made
    share(None)


def test_each_request_asks_for_leave_with_its_tokens_before_it_starts() -> None:
    async def ask() -> list[float]:
        shared = Slow(3)
        limiter = Limiter(concurrency=2, shared=shared, clock=asyncio.get_running_loop().time)
        starts = []
        for tokens in (10, 20):
            async with limiter.slot(tokens=tokens) as slot:
                starts.append(now())
                assert slot.queued_s == pytest.approx(3)
        assert shared.taken == [10, 20]
        return starts

    assert run(ask()) == pytest.approx([3, 6])


def test_waiting_for_leave_is_added_to_the_deadline() -> None:
    async def ask() -> None:
        limiter = Limiter(concurrency=1, shared=Slow(50), clock=asyncio.get_running_loop().time)
        limiter.hold(55)
        async with limiter.slot(deadline=10):  # 50 s of leave, and 5 s of the hold
            assert now() == pytest.approx(55)
        limiter.hold(100)
        with pytest.raises(HeldTooLong):
            async with limiter.slot(deadline=60):
                pass

    run(ask())


def test_without_leave_nothing_is_sent_and_nothing_stays_taken() -> None:
    async def ask() -> None:
        limiter = Limiter(concurrency=1, shared=Gone(), clock=asyncio.get_running_loop().time)
        with pytest.raises(EngineError, match="nobody gives leave"):
            async with limiter.slot():
                pass
        assert limiter.in_flight == 0

    run(ask())


def test_a_process_that_is_one_of_several_asks_for_each_limited_model(
    sharing: dict[tuple[str, str | None, int | None, int | None], Slow],
) -> None:
    limited = limiter_for("openai/shared", "http://one", concurrency=1, rpm=10, tpm=20)
    free = limiter_for("openai/free", "http://one", concurrency=1)
    assert limited.shared is sharing["openai/shared", "http://one", 10, 20]
    assert free.shared is None
    share(None)
    assert limiter_for("openai/alone", "http://one", concurrency=1, rpm=10).shared is None
