"""The synchronous twins: one event loop per call, never one inside another."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from ragscore.errors import UsageError

T = TypeVar("T")


def waited(call: Callable[[], Coroutine[Any, Any, T]], *, name: str, instead: str) -> T:
    """The result of `call()`, in a loop of its own.

    Args:
        call: Makes the coroutine.
        name: The twin, for messages.
        instead: What to await.

    Raises:
        UsageError: a loop is running in this thread already (Jupyter, an async function); nothing is patched.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(call())
    raise UsageError(
        f"{name} cannot wait inside a running event loop (as in Jupyter or an async function)",
        mend=f"write `await {instead}(…)` instead",
    )
