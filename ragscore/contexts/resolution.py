"""Context resolution (DESIGN §4): static contexts or one extractor, by suite or by scorer, decided before a run."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from ragscore.contexts.path import compiled
from ragscore.items import Context, ContextSet, Item, Response, digest
from ragscore.suite import ContextsPart

Extract = Callable[[Item, Response], "tuple[Context, ...] | Awaitable[tuple[Context, ...]]"]


@dataclass(frozen=True)
class Resolver:
    """Gives the contexts of an item. Equal `source`s give equal contexts, so that each is asked once per item."""

    source: str
    extract: Extract

    async def resolve(self, item: Item, response: Response) -> ContextSet:
        """The contexts, or the error that becomes the item's `context_error`."""
        try:
            contexts = self.extract(item, response)
            if inspect.isawaitable(contexts):
                contexts = await contexts
        except Exception as error:  # noqa: BLE001 - the per-item boundary: an extractor may be user code
            said = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
            return ContextSet(self.source, error=said)
        return ContextSet(self.source, contexts)


def resolver_for(kind: str, part: ContextsPart | None, *, where: str) -> Resolver:
    """The resolver of one scorer, from its own `contexts:` or the suite's.

    Args:
        kind: The scorer's kind: with both static contexts and an extractor, precision takes the extractor and recall
            the static contexts (inputs are text, not agent messages).
        part: The declaration; None means what the target returned.
        where: File and field, for messages.

    Raises:
        SuiteError: a path is not JMESPath.
    """
    if part is None:
        return Resolver("response", _from_response)
    extractor = _extractor(part, where=where)
    if part.static is not None and (extractor is None or kind == "context_recall"):
        static = tuple(Context(text) for text in part.static)
        return Resolver(f"static:{digest(part.static)[:8]}", lambda item, response: static)
    return extractor if extractor is not None else Resolver("response", _from_response)


def _extractor(part: ContextsPart, *, where: str) -> Resolver | None:
    if part.path is not None:
        return Resolver(f"path:{part.path}", compiled(part.path, where=where))
    if part.item:
        return Resolver("item", _from_item)
    if part.response:
        return Resolver("response", _from_response)
    return None


def _from_response(item: Item, response: Response) -> tuple[Context, ...]:
    if response.contexts is None:
        raise ValueError("the target returned no contexts; name their place with `contexts: {path: …}`")
    return response.contexts


def _from_item(item: Item, response: Response) -> tuple[Context, ...]:
    if item.contexts is None:
        raise ValueError("the dataset row has no `contexts`")
    return item.contexts
