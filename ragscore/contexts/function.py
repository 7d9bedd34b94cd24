"""Contexts by a function of the user's, `module:callable`, sync or async."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from ragscore.contexts.path import as_contexts
from ragscore.errors import ConfigError
from ragscore.items import Context, Item, Response
from ragscore.targets.threads import in_thread

#: Seconds that one call may take.
TIMEOUT_S = 60.0


def from_function(
    function: Callable[..., Any], *, name: str, where: str
) -> Callable[[Item, Response], Awaitable[tuple[Context, ...]]]:
    """The extractor that calls `function(input, output)`, and with the item where it has a parameter `item`.

    `input` is the question, or the messages where the dataset holds messages; `output` is what the target returned, as
    JSON. A blocking function runs in a thread of its own.

    Raises:
        ConfigError: it cannot be called so.
    """
    takes_item = _takes_item(function, name, where)
    is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)

    async def extract(item: Item, response: Response) -> tuple[Context, ...]:
        asked = item.metadata.get("messages") or item.input
        answered = response.raw if response.raw is not None else response.output
        more = {"item": item} if takes_item else {}
        try:
            async with asyncio.timeout(TIMEOUT_S):
                if is_async:
                    found = await function(asked, answered, **more)
                else:
                    found = await in_thread(lambda: function(asked, answered, **more))
                    found = await found if inspect.isawaitable(found) else found
        except TimeoutError:
            raise ValueError(f"{name} gave nothing within {TIMEOUT_S:g} s") from None
        return as_contexts(found, f"{name} gave")

    return extract


def _takes_item(function: Callable[..., Any], name: str, where: str) -> bool:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # built in, without a signature
        return False
    takes_item = "item" in signature.parameters
    try:
        signature.bind("input", "output", **({"item": None} if takes_item else {}))
    except TypeError as error:
        raise ConfigError(
            f"{name} cannot be called with input and output: {error}",
            where=where,
            mend="write def contexts(input, output), or def contexts(input, output, item)",
        ) from error
    return takes_item
