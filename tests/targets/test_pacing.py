"""How the calls of a target are spaced, in virtual time."""

from __future__ import annotations

import asyncio

import pytest

from ragscore.items import Item
from ragscore.targets import PythonTarget
from ragscore.targets.pacing import Pace
from tests.judges.virtual_time import now, run


def begun(rps: float | None, pauses: list[float]) -> list[float]:
    """When calls begin that come after these pauses."""

    async def ask() -> list[float]:
        pace, times = Pace(rps), []

        async def one(after: float) -> None:
            await asyncio.sleep(after)
            await pace.turn()
            times.append(round(now(), 9))

        await asyncio.gather(*(one(pause) for pause in pauses))
        return times

    return run(ask())


@pytest.mark.parametrize(
    ("rps", "asked", "times"),
    [
        (None, [0, 0, 0], [0, 0, 0]),
        (2, [0, 0, 0], [0, 0.5, 1]),
        (0.5, [0, 0], [0, 2]),
        (2, [0, 3, 3.1], [0, 3, 3.5]),
    ],
)
def test_calls_begin_at_least_one_gap_apart_and_idle_time_saves_up_nothing(
    rps: float | None, asked: list[float], times: list[float]
) -> None:
    assert begun(rps, asked) == times


def test_waiting_for_a_turn_is_no_latency_of_the_target_and_no_time_out() -> None:
    async def answer(text: str) -> str:
        await asyncio.sleep(1)
        return text

    async def ask() -> list[float | None]:
        target = PythonTarget(answer, pace=Pace(0.1), timeout_s=2)
        responses = await asyncio.gather(*(target.invoke(Item(str(n), "x")) for n in range(3)))
        return [response.latency_ms for response in responses]

    assert run(ask()) == [1000, 1000, 1000]


def test_another_loop_begins_anew() -> None:
    pace = Pace(1)

    async def turn() -> float:
        await asyncio.sleep(5)
        await pace.turn()
        return now()

    assert (run(turn()), run(turn())) == (5, 5)
