"""The claims of a dataset as a person reviews them: what is known, what would be extracted now, and freezing that."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ragscore.errors import DatasetError, UsageError
from ragscore.items import Item, Judgement, Status, Usage
from ragscore.judges.claims import reference_hash
from ragscore.judges.claims_file import ClaimsDiff, FrozenEntry
from ragscore.judges.frozen_claims import FrozenClaims
from ragscore.judges.protocol import Judge
from ragscore.judges.tasks import ExtractClaims


@dataclass(frozen=True, slots=True)
class Reference:
    """One reference of a dataset with the claims that are known of it.

    Attributes:
        item: The first item that has it.
        item_ids: All of them.
        claims: None where none are frozen.
        origin: `item` (written in the dataset), `frozen`, `edited` (frozen, and a person changed them) or `missing`.
        entry: Its line in the claims file.
    """

    item: Item
    item_ids: tuple[str, ...]
    claims: tuple[str, ...] | None
    origin: str
    entry: FrozenEntry | None

    @property
    def hash(self) -> str:
        """What its claims are kept under."""
        return reference_hash(self.item)


@dataclass(frozen=True, slots=True)
class Extracted:
    """What a judge extracted from references just now.

    Attributes:
        judgements: By hash of the reference; failed ones too.
        usage: What it cost.
    """

    judgements: dict[str, Judgement]

    @property
    def usage(self) -> Usage:
        """What it cost."""
        return sum((judgement.usage for judgement in self.judgements.values()), Usage())

    @property
    def claims(self) -> dict[str, tuple[str, ...]]:
        """The claims by hash of the reference, where the extraction worked."""
        return {hash: told.claims for hash, told in self.judgements.items() if told.status is Status.OK}

    @property
    def failed(self) -> dict[str, str]:
        """Why the others did not, by hash of the reference."""
        return {
            hash: told.error or told.status.value
            for hash, told in self.judgements.items()
            if told.status is not Status.OK
        }


def references(items: Iterable[Item], claims: FrozenClaims) -> list[Reference]:
    """The references of a dataset, in its order; those of items that recall does not judge are left out."""
    found: dict[tuple[str, bool], Reference] = {}
    for item in items:
        if not item.answerable or not (item.claims is not None or (item.reference and item.reference.strip())):
            continue
        key = (item.id if item.claims is not None else reference_hash(item), item.claims is not None)
        if key in found:
            found[key] = replace(found[key], item_ids=(*found[key].item_ids, item.id))
            continue
        entry = claims.entry(item) if item.claims is None else None
        known = item.claims if item.claims is not None else entry.claims if entry is not None else None
        origin = "item" if item.claims is not None else entry.claim_set.origin if entry is not None else "missing"
        found[key] = Reference(item, (item.id,), known, origin, entry)
    return list(found.values())


def strays(items: Iterable[Item], claims: FrozenClaims) -> list[FrozenEntry]:
    """Lines of the claims file that belong to no reference of the dataset any more."""
    hashes = {reference_hash(item) for item in items}
    return [entry for entry in claims.file.entries() if entry.hash not in hashes]


def of_items(all_of_them: Sequence[Reference], item_ids: Sequence[str]) -> list[Reference]:
    """The references of these items; all, where none are named.

    Raises:
        UsageError: no reference belongs to an item of that id.
    """
    if not item_ids:
        return list(all_of_them)
    by_id = {item_id: each for each in all_of_them for item_id in each.item_ids}
    if unknown := [item_id for item_id in item_ids if item_id not in by_id]:
        raise UsageError(
            f"no item with a reference is called {', '.join(map(repr, unknown))}",
            mend="`ragscore claims list` lists them",
        )
    return list({by_id[item_id].hash: by_id[item_id] for item_id in item_ids}.values())


async def extract(judge: Judge, wanted: Sequence[Reference]) -> Extracted:
    """What `judge` says now; those whose claims a person wrote into the dataset are not asked about.

    Raises:
        JudgeRefused, JudgeUnavailable: as `Judge.ask`.
    """
    asked = [each for each in wanted if each.origin != "item"]
    told = await asyncio.gather(
        *(judge.ask(ExtractClaims(each.item.input, each.item.reference or "")) for each in asked)
    )
    return Extracted({each.hash: judgement for each, judgement in zip(asked, told, strict=True)})


def differences(wanted: Sequence[Reference], extracted: Extracted, claims: FrozenClaims) -> list[ClaimsDiff]:
    """Where what is extracted now says something else than what is frozen, in the order of the dataset."""
    by_hash = {diff.hash: diff for diff in claims.file.diff(extracted.claims)}
    found = []
    for each in wanted:
        diff = by_hash.get(each.hash)
        if diff is None or (diff.entry is None and each.entry is not None):  # it stands in the committed file
            continue
        found.append(diff)
    return found


def freeze(
    wanted: Sequence[Reference], extracted: Extracted, claims: FrozenClaims, *, force: bool = False
) -> tuple[list[Reference], list[Reference]]:
    """Put what was extracted in the place of what is frozen; a person's edits stay unless `force`.

    Returns:
        The references whose line is another now, and those whose edit was kept.

    Raises:
        DatasetError: the file that holds their claims cannot be written.
    """
    changed, kept = [], []
    for each in wanted:
        judgement = extracted.judgements.get(each.hash)
        if judgement is None or judgement.status is not Status.OK:
            continue
        if not claims.is_writable(each.item):
            raise DatasetError(
                "the claims stand in a file beside the dataset that cannot be written",
                where=", ".join(map(repr, each.item_ids)),
                mend="make it writable",
            )
        entry = claims.file.refresh(
            each.item, judgement.claims, judge=judgement.judge, prompt=judgement.prompt_version, force=force
        )
        if entry.edited:
            kept.append(each)
        elif entry != each.entry:
            changed.append(each)
    return changed, kept
