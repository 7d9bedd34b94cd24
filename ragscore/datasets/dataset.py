"""A dataset as the chain sees it: items in order, and a hash of what influences scores."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from ragscore.items import Item, digest


@dataclass(frozen=True, slots=True)
class Dataset:
    """Items in the order of their source; `name` is how the history calls it."""

    name: str
    items: Sequence[Item]

    @property
    def hash(self) -> str:
        """Equal for datasets that give equal scores on equal retrieval: ids, inputs, references, claims, contexts.

        Metadata is left out: a changed tag does not make another dataset.
        """
        total = hashlib.sha256()
        for item in self.items:
            total.update(item_hash(item).encode())
        return total.hexdigest()[:32]


def item_hash(item: Item) -> str:
    """A hash of all of an item that influences its scores."""
    return digest(
        item.id,
        item.input,
        item.reference,
        list(item.reference_context_ids),
        None if item.contexts is None else [[c.id, c.text] for c in item.contexts],
        item.output,
        None if item.claims is None else list(item.claims),
        item.answerable,
    )
