"""Writes what comes in one by one as soon as it comes, and what came during a write together in the next one.

A history opened for every single answer would be the slowest part of a fast run; an answer that waits for its whole
batch would be lost with the process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from types import TracebackType
from typing import Generic, TypeVar

T = TypeVar("T")


class Gathered(Generic[T]):
    """Hands everything that is added to `write`, one call at a time; leaving the context waits for the last one.

    An error of `write` is raised on leaving.
    """

    def __init__(self, write: Callable[[Sequence[T]], Awaitable[None]]) -> None:
        self._write = write
        self._waiting: list[T] = []
        self._writing: asyncio.Task[None] | None = None

    def add(self, item: T) -> None:
        """Have one more written."""
        self._waiting.append(item)
        if self._writing is None or (self._writing.done() and self._writing.exception() is None):
            self._writing = asyncio.ensure_future(self._write_all())

    async def __aenter__(self) -> Gathered[T]:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._writing is not None:
            await asyncio.shield(self._writing)

    async def _write_all(self) -> None:
        while self._waiting:
            items, self._waiting = self._waiting, []
            await self._write(items)
