"""Spaces the calls of a target evenly, so that a server with a limit is never met by a burst."""

from __future__ import annotations

import asyncio


class Pace:
    """At most `rps` calls begin per second, each at least 1/rps seconds after the one before; None is no limit."""

    def __init__(self, rps: float | None = None) -> None:
        self._gap = 0.0 if rps is None else 1 / rps
        self._next: float | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def turn(self) -> None:
        """Wait until the next call may begin. Turns are given in the order of asking."""
        if not self._gap:
            return
        loop = asyncio.get_running_loop()
        if loop is not self._loop:  # the clock of another loop is another clock
            self._loop, self._next = loop, None
        now = loop.time()
        at = now if self._next is None else max(now, self._next)
        self._next = at + self._gap
        if at > now:
            await asyncio.sleep(at - now)
