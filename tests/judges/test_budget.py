from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragscore.judges.budget import Budget, BudgetSpent
from tests.judges.virtual_time import now, run

#: (tokens estimated, share of them taken, seconds in flight)
requests = st.lists(st.tuples(st.integers(1, 500), st.floats(0, 1), st.floats(0, 5)), min_size=1, max_size=40)


@settings(deadline=None, max_examples=80)
@given(requests, st.integers(1, 5000))
def test_tokens_pass_the_limit_by_one_estimate_at_most_and_nothing_is_left_unused(
    plan: list[tuple[int, float, float]], limit: int
) -> None:
    sent: list[int] = []
    budget = Budget(tokens=limit)

    async def one(estimate: int, share: float, seconds: float) -> None:
        async with budget.reserved(estimate) as reservation:
            sent.append(estimate)
            await asyncio.sleep(seconds)
            budget.settle(reservation, tokens=int(estimate * share))

    async def main() -> list[BaseException | None]:
        return await asyncio.gather(*(one(*request) for request in plan), return_exceptions=True)

    ends = run(main())
    assert all(end is None or isinstance(end, BudgetSpent) for end in ends)
    assert budget.spent_tokens <= limit + max(sent, default=0)
    assert len(sent) == len(plan) or budget.spent_tokens >= limit  # it stops only when it is used up


@settings(deadline=None, max_examples=80)
@given(requests, st.floats(0.001, 5))
def test_dollars_pass_the_limit_by_one_estimate_at_most_under_concurrency(
    plan: list[tuple[int, float, float]], limit: float
) -> None:
    estimates: list[float] = []
    budget = Budget(usd=limit)

    async def one(tokens: int, share: float, seconds: float) -> None:
        usd = tokens / 1000
        async with budget.reserved(tokens, usd=usd) as reservation:
            estimates.append(usd)
            await asyncio.sleep(seconds)
            budget.settle(reservation, tokens=tokens, usd=usd * share)

    async def main() -> list[BaseException | None]:
        return await asyncio.gather(*(one(*request) for request in plan), return_exceptions=True)

    ends = run(main())
    assert all(end is None or isinstance(end, BudgetSpent) for end in ends)
    assert budget.spent_usd <= limit + max(estimates, default=0.0) + 1e-9
    assert len(estimates) == len(plan) or budget.spent_usd >= limit - 1e-9


def test_without_a_price_the_first_request_goes_alone_and_the_next_are_estimated_from_it() -> None:
    starts: list[float] = []

    async def main() -> Budget:
        budget = Budget(usd=0.10)

        async def one() -> None:
            async with budget.reserved(1000) as reservation:
                starts.append(now())
                await asyncio.sleep(1)
                budget.settle(reservation, tokens=500, usd=0.02)

        ends = await asyncio.gather(*(one() for _ in range(20)), return_exceptions=True)
        assert sum(isinstance(end, BudgetSpent) for end in ends) == 15
        return budget

    budget = run(main())
    assert starts == pytest.approx([0, 1, 1, 1, 1])
    assert budget.spent_usd == pytest.approx(0.10)


def test_a_limit_says_which_it_is_and_how_much() -> None:
    async def main(budget: Budget) -> None:
        reservation = await budget.reserve(100, usd=0.5)
        budget.settle(reservation, tokens=100, usd=0.5)
        await budget.reserve(1, usd=0.1)

    with pytest.raises(BudgetSpent, match=r"0\.5 USD is used up"):
        run(main(Budget(usd=0.5)))
    with pytest.raises(BudgetSpent, match="100 tokens is used up"):
        run(main(Budget(tokens=100)))


def test_a_request_that_cost_nothing_gives_back_what_was_set_aside() -> None:
    async def main() -> None:
        budget = Budget(usd=1, tokens=100)
        for _ in range(10):
            reservation = await budget.reserve(90, usd=0.9)
            budget.release(reservation)
        assert (budget.spent_usd, budget.spent_tokens) == (0.0, 0)

    run(main())


def test_a_request_that_nobody_waited_for_is_charged_as_estimated() -> None:
    async def main() -> None:
        budget = Budget(usd=1, tokens=100)

        async def abandoned() -> None:
            async with budget.reserved(60, usd=0.4):
                await asyncio.sleep(100)

        with pytest.raises(TimeoutError):
            await asyncio.wait_for(abandoned(), 1)
        assert (budget.spent_usd, budget.spent_tokens) == (0.4, 60)

    run(main())


def test_settling_twice_books_once() -> None:
    async def main() -> None:
        budget = Budget(tokens=100)
        reservation = await budget.reserve(10)
        budget.settle(reservation, tokens=7)
        budget.settle(reservation, tokens=7)
        budget.release(reservation)
        assert budget.spent_tokens == 7

    run(main())


def test_unknown_tokens_and_costs_are_booked_as_estimated_never_as_nothing() -> None:
    async def main() -> None:
        budget = Budget(usd=1, tokens=1000)
        budget.settle(await budget.reserve(10, usd=0.25))
        assert (budget.spent_usd, budget.spent_tokens) == (0.25, 10)

    run(main())


def test_a_dollar_budget_stops_when_a_cost_that_could_not_be_estimated_does_not_come() -> None:
    async def main() -> None:
        budget = Budget(usd=1)
        budget.settle(await budget.reserve(10), tokens=10)
        with pytest.raises(BudgetSpent, match="without its cost"):
            await budget.reserve(10)

    run(main())


def test_whoever_is_cancelled_while_waiting_for_money_blocks_nobody() -> None:
    async def main() -> None:
        budget = Budget(tokens=10)

        async def one() -> None:
            async with budget.reserved(9) as reservation:
                await asyncio.sleep(5)
                budget.settle(reservation, tokens=2)

        running = [asyncio.ensure_future(one()) for _ in range(3)]
        await asyncio.sleep(1)
        running[1].cancel()
        ends = await asyncio.gather(*running, return_exceptions=True)
        assert isinstance(ends[1], asyncio.CancelledError)
        assert budget.spent_tokens == 4
        assert now() == pytest.approx(10)

    run(main())
