"""Where the claims of a reference come from: a person, or the judge, asked once per reference."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Protocol

from ragscore.items import Item, Judgement, Status, digest
from ragscore.judges.protocol import Judge
from ragscore.judges.tasks import ExtractClaims


@dataclass(frozen=True, slots=True)
class ClaimSet:
    """The claims of one reference, and who wrote them down: `item` (a person), `frozen`, or a judge's name."""

    claims: tuple[str, ...]
    origin: str

    @property
    def hash(self) -> str:
        """Equal for equal claims in equal order."""
        return digest(list(self.claims))


class ClaimSource(Protocol):
    """Where the claims of a reference come from."""

    def known(self, item: Item) -> ClaimSet | None:
        """The claims that need no judge call, or None."""
        ...

    async def of(self, item: Item) -> tuple[ClaimSet | None, Judgement | None]:
        """The claims, extracted if they must be; with the judgement that it took, if one was made.

        A None claim set means that the extraction failed; the judgement then says how.
        """
        ...


class AskedClaims:
    """Claims of the item when a person gave them, else asked of the judge, once per (question, reference).

    Items that share a reference and are judged at the same time share one call.
    """

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._asked: dict[str, asyncio.Task[Judgement]] = {}

    def known(self, item: Item) -> ClaimSet | None:
        """The claims that a person gave, or that this run has asked for already."""
        if item.claims is not None:
            return ClaimSet(item.claims, "item")
        asked = self._asked.get(reference_hash(item))
        if asked is not None and asked.done() and not asked.cancelled() and asked.exception() is None:
            return _claim_set(asked.result())
        return None

    async def of(self, item: Item) -> tuple[ClaimSet | None, Judgement | None]:
        """The claims; whoever asks first gets the bill, the others a judgement that cost nothing."""
        if (known := self.known(item)) is not None:
            return known, None
        key = reference_hash(item)
        first = key not in self._asked
        if first:
            task = ExtractClaims(item.input, item.reference or "")
            self._asked[key] = asyncio.ensure_future(self._judge.ask(task))
        asked = self._asked[key]
        try:
            judgement = await asyncio.shield(asked)
        finally:
            if asked.done() and (asked.cancelled() or asked.exception() or asked.result().status is not Status.OK):
                self._asked.pop(key, None)  # a failure is not remembered: the next one may ask again
        return _claim_set(judgement), judgement if first else judgement.unbilled()


def reference_hash(item: Item) -> str:
    """What a claim set belongs to: the reference, read as the answer to its question."""
    return digest(item.input, item.reference)


def _claim_set(judgement: Judgement) -> ClaimSet | None:
    return ClaimSet(judgement.claims, judgement.judge) if judgement.status is Status.OK else None
