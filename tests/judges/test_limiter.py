from __future__ import annotations

import asyncio
import gc
import threading
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragscore.judges.limiter import MINUTE_S, HeldTooLong, Limiter, Slot, limiter_for
from tests.judges.virtual_time import now, run

#: (seconds until it comes, tokens estimated, tokens taken or None, seconds in flight, is it told 429, Retry-After)
Arrival = tuple[float, int, int | None, float, bool, float | None]
arrivals = st.lists(
    st.tuples(
        st.floats(0, 5),
        st.integers(0, 400),
        st.none() | st.integers(0, 400),
        st.floats(0, 20),
        st.booleans(),
        st.none() | st.floats(0, 30),
    ),
    min_size=1,
    max_size=40,
)


@settings(deadline=None, max_examples=60)
@given(arrivals, st.integers(1, 6), st.none() | st.integers(1, 10), st.none() | st.integers(1, 1000))
def test_no_limit_is_ever_passed_and_everybody_gets_through(
    plan: list[Arrival], concurrency: int, rpm: int | None, tpm: int | None
) -> None:
    starts: list[tuple[float, int]] = []
    held_until = [0.0]

    async def one(limiter: Limiter, arrival: Arrival) -> None:
        _, estimate, taken, seconds, throttled, retry_after = arrival
        async with limiter.slot(tokens=estimate) as slot:
            assert limiter.in_flight <= limiter.allowed <= limiter.concurrency
            assert now() >= held_until[0]
            starts.append((now(), max(estimate, taken or 0)))
            await asyncio.sleep(seconds)
            if throttled:
                slot.throttled(retry_after)
                held_until[0] = max(held_until[0], now() + (retry_after or 0.0))
                assert limiter.allowed >= 1
            else:
                slot.answered(tokens=estimate if taken is None else min(taken, estimate))

    async def all_of_them() -> None:
        limiter = Limiter(concurrency=concurrency, rpm=rpm, tpm=tpm, clock=asyncio.get_running_loop().time)
        running = []
        for arrival in plan:
            await asyncio.sleep(arrival[0])
            running.append(asyncio.ensure_future(one(limiter, arrival)))
        await asyncio.gather(*running)
        assert limiter.in_flight == 0

    run(all_of_them())
    assert len(starts) == len(plan)
    if rpm is not None:
        assert all(later >= earlier + MINUTE_S for (earlier, _), (later, _) in zip(starts, starts[rpm:], strict=False))


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(1, 300), min_size=1, max_size=40), st.integers(1, 300))
def test_tokens_of_any_minute_stay_within_the_limit_unless_one_request_alone_exceeds_it(
    sizes: list[int], tpm: int
) -> None:
    starts: list[tuple[float, int]] = []

    async def one(limiter: Limiter, tokens: int) -> None:
        async with limiter.slot(tokens=tokens) as slot:
            starts.append((now(), tokens))
            await asyncio.sleep(1)
            slot.answered()

    async def all_of_them() -> None:
        limiter = Limiter(concurrency=5, tpm=tpm, clock=asyncio.get_running_loop().time)
        await asyncio.gather(*(one(limiter, size) for size in sizes))

    run(all_of_them())
    assert [tokens for _, tokens in starts] == sizes  # first come, first served
    for at, _ in starts:
        window = [tokens for other, tokens in starts if at <= other < at + MINUTE_S]
        assert sum(window) <= tpm or len(window) == 1


def test_a_request_that_took_fewer_tokens_lets_the_next_one_start_at_once() -> None:
    async def main() -> None:
        limiter = Limiter(concurrency=5, tpm=1000, clock=asyncio.get_running_loop().time)

        async def greedy() -> None:
            async with limiter.slot(tokens=900) as slot:
                await asyncio.sleep(2)
                slot.answered(tokens=100)

        first = asyncio.ensure_future(greedy())
        await asyncio.sleep(1)
        async with limiter.slot(tokens=900):
            assert now() == pytest.approx(2)
        await first

    run(main())


def test_the_requests_allowed_are_halved_once_per_storm_and_recover_one_at_a_time() -> None:
    async def main() -> None:
        limiter = Limiter(concurrency=16, clock=asyncio.get_running_loop().time)

        async def told_429() -> None:
            async with limiter.slot() as slot:
                await asyncio.sleep(1)
                slot.throttled(None)

        await asyncio.gather(*(told_429() for _ in range(16)))
        assert limiter.allowed == 8
        await asyncio.gather(*(told_429() for _ in range(8)))
        assert limiter.allowed == 4
        grown = [limiter.allowed]
        answered = 0
        while limiter.allowed < 16:
            async with limiter.slot() as slot:
                slot.answered()
            answered += 1
            if limiter.allowed != grown[-1]:
                grown.append(limiter.allowed)
        assert grown == list(range(4, 17))
        assert answered == sum(range(4, 16))  # one more for every `allowed` answered
        for _ in range(40):
            async with limiter.slot() as slot:
                slot.answered()
        assert limiter.allowed == 16

    run(main())


def test_throttled_never_goes_below_one() -> None:
    limiter = Limiter(concurrency=3)
    for _ in range(5):
        limiter.throttled(None)
    assert limiter.allowed == 1


def test_nothing_starts_before_the_time_the_provider_asked_for() -> None:
    async def main() -> None:
        limiter = Limiter(concurrency=2, clock=asyncio.get_running_loop().time)
        limiter.throttled(7.5)
        limiter.hold(3)  # shorter: the longer one stands
        async with limiter.slot() as slot:
            assert now() == pytest.approx(7.5)
            assert slot.queued_s == pytest.approx(0)  # it was the provider's time, not ours

    run(main())


def test_a_hold_beyond_the_deadline_is_said_at_once_to_everybody_who_waits() -> None:
    async def main() -> None:
        limiter = Limiter(concurrency=1, clock=asyncio.get_running_loop().time)
        limiter.throttled(3600)

        async def impatient() -> None:
            async with limiter.slot(deadline=now() + 300):
                raise AssertionError("sent during the hold")

        ends = await asyncio.gather(*(impatient() for _ in range(5)), return_exceptions=True)
        assert all(isinstance(end, HeldTooLong) and end.wait_s == pytest.approx(3600) for end in ends)
        assert now() == pytest.approx(0)
        async with limiter.slot(deadline=4000):
            assert now() == pytest.approx(3600)

    run(main())


def test_waiting_for_our_own_limits_is_counted_and_does_not_eat_the_deadline() -> None:
    async def main() -> None:
        limiter = Limiter(concurrency=8, rpm=1, clock=asyncio.get_running_loop().time)
        waits: list[Slot] = []

        async def one() -> None:
            async with limiter.slot(deadline=30) as slot:
                waits.append(slot)

        await asyncio.gather(*(one() for _ in range(4)))
        assert [slot.queued_s for slot in waits] == pytest.approx([0, 60, 120, 180])

    run(main())


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(st.floats(0, 10), st.floats(0, 10)), min_size=2, max_size=20))
def test_whoever_is_cancelled_blocks_nobody(plan: list[tuple[float, float]]) -> None:
    """(seconds in flight, seconds until it is cancelled): waiting or in flight, the rest go on."""

    async def main() -> None:
        limiter = Limiter(concurrency=2, clock=asyncio.get_running_loop().time)

        async def one(seconds: float) -> None:
            async with limiter.slot() as slot:
                await asyncio.sleep(seconds)
                slot.answered()

        running = [asyncio.ensure_future(one(seconds)) for seconds, _ in plan]
        for (_, until), task in list(zip(plan, running, strict=True))[::2]:
            asyncio.get_running_loop().call_later(until, task.cancel)
        ends = await asyncio.gather(*running, return_exceptions=True)
        assert all(end is None for end in ends[1::2])
        assert limiter.in_flight == 0
        async with limiter.slot():
            assert limiter.in_flight == 1

    run(main())


def test_one_limiter_serves_loops_one_after_another_and_in_threads() -> None:
    limiter = Limiter(concurrency=2)
    seen: list[int] = []

    async def one() -> None:
        async with limiter.slot() as slot:
            seen.append(limiter.in_flight)
            await asyncio.sleep(0)
            slot.answered()

    async def many() -> None:
        await asyncio.wait_for(asyncio.gather(*(one() for _ in range(50))), timeout=20)

    asyncio.run(many())
    threads = [threading.Thread(target=asyncio.run, args=(many(),)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert len(seen) == 200
    assert max(seen) <= 2
    assert limiter.in_flight == 0


def test_a_limiter_is_shared_per_model_and_address_and_the_strictest_limits_hold() -> None:
    one = limiter_for("m", "http://a", concurrency=8, rpm=100)
    assert limiter_for("m", "http://a", concurrency=4, tpm=9000) is one
    assert (one.concurrency, one.allowed, one.rpm, one.tpm) == (4, 4, 100, 9000)
    assert limiter_for("m", "http://b", concurrency=8) is not one
    assert limiter_for("n", "http://a", concurrency=8) is not one
    del one
    gc.collect()
    assert limiter_for("m", "http://a", concurrency=8).concurrency == 8


@pytest.mark.parametrize(("concurrency", "rpm", "tpm"), [(0, None, None), (1, 0, None), (1, None, 0)])
def test_limits_below_one_are_refused(concurrency: int, rpm: int | None, tpm: int | None) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        Limiter(concurrency=concurrency, rpm=rpm, tpm=tpm)


def test_starts_are_spread_by_rpm_as_a_sliding_minute() -> None:
    starts: list[float] = []

    async def main() -> None:
        limiter = Limiter(concurrency=8, rpm=3, clock=asyncio.get_running_loop().time)
        for pause in (0, 10, 10, 0, 0, 0):
            await asyncio.sleep(pause)
            async with limiter.slot():
                starts.append(now())

    run(main())
    assert starts == pytest.approx([0, 10, 20, 60, 70, 80])
    assert all(later >= earlier for earlier, later in pairwise(starts))
