"""The one method that makes a target."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ragscore.items import Item, Response

#: Gives the place of a field in the suite: file, line and field, for messages.
Where = Callable[..., str]


class TargetFailure(Exception):
    """The target failed on one item. `passing` says whether the fault may pass (connection, time-out)."""

    def __init__(self, what: str, *, passing: bool = False) -> None:
        super().__init__(what)
        self.passing = passing


class Target(Protocol):
    """Something that answers items. What holds processes or connections has an `aclose()` too."""

    async def invoke(self, item: Item) -> Response:
        """Answer one item.

        Raises:
            TargetFailure: it could not; becomes the item's `target_error`.
        """
        ...


async def close(target: Target) -> None:
    """Let go of what the target holds, where it holds something. It may be asked again afterwards."""
    aclose = getattr(target, "aclose", None)
    if aclose is not None:
        await aclose()
