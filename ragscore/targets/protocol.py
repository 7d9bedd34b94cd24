"""The one method that makes a target."""

from __future__ import annotations

from typing import Protocol

from ragscore.items import Item, Response


class TargetFailure(Exception):
    """The target failed on one item. `passing` says whether the fault may pass (connection, time-out)."""

    def __init__(self, what: str, *, passing: bool = False) -> None:
        super().__init__(what)
        self.passing = passing


class Target(Protocol):
    """Something that answers items."""

    async def invoke(self, item: Item) -> Response:
        """Answer one item.

        Raises:
            TargetFailure: it could not; becomes the item's `target_error`.
        """
        ...
