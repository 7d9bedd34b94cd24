"""Runs blocking calls beside the event loop in daemon threads.

Executors join their threads when the interpreter ends, so that one hung target call would keep a finished run from
exiting; a daemon thread does not.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def in_thread(call: Callable[[], T]) -> T:
    """The result of `call()`, run in a thread of its own; cancelling abandons it."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]

    def work() -> None:
        result: T | None = None
        failure: BaseException | None = None
        try:
            result = call()
        except (StopIteration, SystemExit, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError) as error:
            # A future cannot carry the first, and the others would end the loop or look like a cancellation.
            failure = RuntimeError(f"{type(error).__name__}: {error}".removesuffix(": "))
        except BaseException as error:  # noqa: BLE001 - handed on to the awaiting side, whole
            failure = error
        with contextlib.suppress(RuntimeError):  # the loop is closed already when an abandoned call comes back
            loop.call_soon_threadsafe(settle, result, failure)

    threading.Thread(target=contextvars.copy_context().run, args=(work,), daemon=True, name="ragscore-target").start()
    return await future
