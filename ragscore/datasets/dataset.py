"""A dataset as the chain sees it: items in order, and a hash of what influences scores."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import overload

from ragscore.items import Item

#: Metadata that influences scores: an agent's messages, and grades of relevance (rank metrics).
TELLING = ("messages", "output_messages", "relevance")


@dataclass(frozen=True, slots=True)
class Dataset:
    """Items in the order of their source; `name` is how the history calls it.

    Attributes:
        name: How the history calls it.
        items: The items; a `Streamed` sequence where they are too many to hold.
        known_hash: Their hash, where the validating pass has found it; else it is computed on demand.
    """

    name: str
    items: Sequence[Item]
    known_hash: str | None = None

    @property
    def hash(self) -> str:
        """Equal for datasets that give equal scores on equal retrieval: ids, inputs, references, claims, contexts.

        Metadata is left out, but for what scorers read of it: a changed tag does not make another dataset.
        """
        return self.known_hash or hash_of(fingerprint(item) for item in self.items)

    def batches(self, size: int) -> Iterator[list[Item]]:
        """The items in lists of `size`, the last one shorter; holds one list at a time."""
        items = iter(self.items)
        while batch := list(islice(items, size)):
            yield batch


class Streamed(Sequence[Item]):
    """Items that are read anew at each passage, so that any number of them takes no memory.

    Passing over them and `len` are cheap; an item by its number is found by reading up to it.

    Args:
        count: How many there are.
        read: Begins a passage. It raises DatasetError when the source is not what it was.
    """

    def __init__(self, count: int, read: Callable[[], Iterator[Item]]) -> None:
        self._count = count
        self._read = read

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Item]:
        return self._read()

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Item]: ...
    def __getitem__(self, index: int | slice) -> Item | Sequence[Item]:
        if isinstance(index, slice):
            start, stop, step = index.indices(self._count)
            if step < 0:
                return list(islice(self, stop + 1, start + 1))[::step]
            return list(islice(self, start, stop, step))
        place = index + self._count if index < 0 else index
        if not 0 <= place < self._count:
            raise IndexError(index)
        return next(islice(self, place, None))


def fingerprint(item: Item) -> bytes:
    """16 bytes (MD5) over all of an item that influences its scores.

    MD5 because DuckDB computes it three times as fast as SHA-256 and nobody gains from forging a dataset; of the
    JSON text that `screening` composes in SQL too.
    """
    parts: list[object] = [
        item.id,
        item.input,
        item.reference,
        item.reference_context_ids,
        None if item.contexts is None else [c.text if c.id is None else [c.id, c.text] for c in item.contexts],
        item.output,
        item.claims,
        item.answerable,
    ]
    telling = {key: item.metadata[key] for key in TELLING if item.metadata.get(key) is not None}
    if telling:
        parts.append(telling)
    text = json.dumps(parts, ensure_ascii=False, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.md5(text.encode("utf-8", "surrogatepass"), usedforsecurity=False).digest()


def hash_of(fingerprints: Iterable[bytes]) -> str:
    """32 hex digits (of SHA-256) over fingerprints in the order of their items."""
    total = hashlib.sha256()
    for each in fingerprints:
        total.update(each)
    return total.hexdigest()[:32]
