"""Frozen claims: the denominators of recall, extracted once and then kept in the claims file (`claims_file`)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from ragscore.errors import DatasetError
from ragscore.items import Item, Judgement, Status
from ragscore.judges.claims import AskedClaims, ClaimSet, reference_hash
from ragscore.judges.claims_file import ClaimsDiff, ClaimsFile, FrozenEntry, beside, place
from ragscore.judges.protocol import Judge
from ragscore.judges.tasks import ExtractClaims, Task

__all__ = ["ClaimsDiff", "ClaimsFile", "FrozenClaims", "FrozenEntry", "beside", "place"]

#: Items that an error names.
NAMED = 5


class FrozenClaims:
    """Claims of the item when a person gave them, else the frozen ones, else asked of the judge once and frozen.

    Args:
        judge: Who extracts claims that are not there yet.
        path: Where claims are frozen (`place`).
        committed: Another file that is read first and never written: the one beside the dataset where `path` is not.
        frozen: Extract nothing (CI): what is missing is an error, told before the run by `require`.
        freeze: Whether what is extracted is written; a judge that is deterministic and free has no need of it.

    Raises:
        DatasetError: a file cannot be read, or a line of it cannot be understood.
    """

    def __init__(
        self,
        judge: Judge,
        path: Path,
        *,
        committed: Path | None = None,
        frozen: bool = False,
        freeze: bool = True,
    ) -> None:
        self.file = ClaimsFile(path)
        self._files = [self.file]
        if committed is not None and committed != path:
            self._files.insert(0, ClaimsFile(committed))
        self._asked = AskedClaims(_Freezing(judge, self.file) if freeze else judge)
        self._frozen = frozen
        self._freeze = freeze

    def known(self, item: Item) -> ClaimSet | None:
        """The claims that a person gave, or the frozen ones."""
        if item.claims is not None:
            return ClaimSet(item.claims, "item")
        if (entry := self.entry(item)) is not None:
            return entry.claim_set
        # Not yet frozen: another process may be first, and then its claims are the ones.
        return None if self._freeze else self._asked.known(item)

    def entry(self, item: Item) -> FrozenEntry | None:
        """The line that holds the claims of the item's reference."""
        hash = reference_hash(item)
        return next((entry for file in self._files if (entry := file.get(hash)) is not None), None)

    def is_writable(self, item: Item) -> bool:
        """Whether `file` is where the claims of the item's reference stand, or would."""
        first = next((file for file in self._files if file.get(reference_hash(item)) is not None), self.file)
        return first is self.file

    async def of(self, item: Item) -> tuple[ClaimSet | None, Judgement | None]:
        """The claims; extracted and frozen if they must be, and then with the judgement that it took.

        Raises:
            DatasetError: only frozen claims are allowed and there are none, or they cannot be written.
        """
        if (known := self.known(item)) is not None:
            return known, None
        if self._frozen:
            self.require([item])
        if not self._freeze:
            return await self._asked.of(item)
        if self.file.is_behind():
            await asyncio.to_thread(self.file.read)
        if (known := self.known(item)) is not None:
            return known, None
        asked, judgement = await self._asked.of(item)
        return self.known(item) or asked, judgement

    def missing(self, items: Iterable[Item]) -> list[Item]:
        """The items whose claims would have to be extracted, were they judged."""
        return [i for i in items if i.answerable and i.reference and i.reference.strip() and self.known(i) is None]

    def require(self, items: Iterable[Item]) -> None:
        """Make sure that nothing has to be extracted.

        Raises:
            DatasetError: items have no frozen claims; the first ones are named.
        """
        if missing := self.missing(items):
            names = ", ".join(repr(item.id) for item in missing[:NAMED])
            more = f" and {len(missing) - NAMED} more" if len(missing) > NAMED else ""
            raise DatasetError(
                f"no frozen claims for {names}{more}",
                where=str(self.file.path),
                mend="run once without --frozen, review the file and commit it",
            )


class _Freezing:
    """A judge whose extracted claims are frozen before anybody sees them, and who then says what stands."""

    def __init__(self, judge: Judge, file: ClaimsFile) -> None:
        self._judge = judge
        self._file = file

    @property
    def name(self) -> str:
        return self._judge.name

    async def ask(self, task: Task) -> Judgement:
        judgement = await self._judge.ask(task)
        if not isinstance(task, ExtractClaims) or judgement.status is not Status.OK:
            return judgement
        entry = FrozenEntry.of(
            Item(id="", input=task.question, reference=task.reference),
            judgement.claims,
            judge=judgement.judge,
            prompt=judgement.prompt_version,
        )
        # A write takes less time than going to a thread and back; only waiting for another process is done there.
        standing = self._file.append_now(entry)
        if standing is None:
            standing = await asyncio.to_thread(self._file.append, entry)
        return replace(judgement, claims=standing.claims)
