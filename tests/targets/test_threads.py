"""Blocking calls in daemon threads: results, failures, and no call that keeps anybody waiting."""

from __future__ import annotations

import asyncio
import contextvars
import subprocess
import sys
import threading
from collections.abc import Callable

import pytest

from ragscore.targets.threads import in_thread


async def test_the_result_comes_back_and_the_loop_goes_on_meanwhile() -> None:
    started, go_on = threading.Event(), threading.Event()

    def call() -> str:
        started.set()
        assert go_on.wait(10)
        return threading.current_thread().name

    waiting = asyncio.ensure_future(in_thread(call))
    assert await asyncio.to_thread(started.wait, 10)
    assert not waiting.done()
    go_on.set()
    assert await waiting == "ragscore-target"


@pytest.mark.parametrize("error", [ValueError("odd"), KeyError("k"), ConnectionError("gone"), TimeoutError("late")])
async def test_a_failure_comes_back_as_it_was(error: Exception) -> None:
    with pytest.raises(type(error)) as caught:
        await in_thread(raising(error))
    assert caught.value is error


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (SystemExit(3), "SystemExit: 3"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
        (GeneratorExit(), "GeneratorExit"),
        (StopIteration("end"), "StopIteration: end"),
        (asyncio.CancelledError(), "CancelledError"),
    ],
)
async def test_what_would_end_the_loop_comes_back_as_an_ordinary_failure(error: BaseException, said: str) -> None:
    with pytest.raises(RuntimeError) as caught:
        await in_thread(raising(error))
    assert str(caught.value) == said


def raising(error: BaseException) -> Callable[[], None]:
    def call() -> None:
        raise error

    return call


async def test_the_call_sees_the_context_variables_of_its_caller() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")
    variable.set("set")
    assert await in_thread(variable.get) == "set"


async def test_cancelling_abandons_the_call_and_its_late_result_is_of_no_concern() -> None:
    go_on, ended = threading.Event(), threading.Event()

    def call() -> None:
        go_on.wait(10)
        ended.set()

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await in_thread(call)
    go_on.set()
    assert await asyncio.to_thread(ended.wait, 10)
    await asyncio.sleep(0)  # the late result is delivered, and dropped


def test_a_result_that_comes_after_the_loop_is_closed_is_dropped() -> None:
    go_on = threading.Event()

    async def abandoned() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await in_thread(lambda: go_on.wait(10))

    asyncio.run(abandoned())
    threads = [thread for thread in threading.enumerate() if thread.name == "ragscore-target"]
    go_on.set()
    for thread in threads:
        thread.join(10)  # an exception in it would fail this test: warnings are errors
        assert not thread.is_alive()


STUCK = """
import asyncio, threading
from ragscore.items import Item
from ragscore.targets import PythonTarget, TargetFailure

async def ask():
    target = PythonTarget(lambda text: threading.Event().wait(), timeout_s=0.05)
    try:
        await target.invoke(Item("q", "why?"))
    except TargetFailure as failure:
        print(failure, failure.passing)

asyncio.run(ask())
"""


def test_a_stuck_call_does_not_keep_the_interpreter_from_ending() -> None:
    done = subprocess.run(
        [sys.executable, "-c", STUCK], capture_output=True, text=True, timeout=60, check=False, encoding="utf-8"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "no answer within 0.05 s True\n", "")
