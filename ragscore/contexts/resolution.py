"""Context resolution (DESIGN §4): static contexts or one extractor, by suite or by scorer, decided before a run."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from ragscore.contexts.function import from_function
from ragscore.contexts.path import compiled
from ragscore.contexts.tool_results import from_tool_results
from ragscore.items import Context, ContextSet, Item, Response, digest
from ragscore.suite import ContextsPart
from ragscore.targets.messages import messages_of, since_the_question
from ragscore.targets.python import load_callable

Extract = Callable[[Item, Response], "tuple[Context, ...] | Awaitable[tuple[Context, ...]]"]


@dataclass(frozen=True)
class Resolver:
    """Gives the contexts of an item. Equal `source`s give equal contexts, so that each is asked once per item.

    `top_k` cuts what was extracted. `of_messages` takes its place where input and output are messages of an agent.
    """

    source: str
    extract: Extract
    top_k: int | None = None
    of_messages: Resolver | None = None

    def for_item(self, item: Item, response: Response) -> Resolver:
        """The resolver that this item's contexts come from: mostly this one."""
        if self.of_messages is not None and _are_messages(item, response):
            return self.of_messages
        return self

    @property
    def sources(self) -> set[str]:
        """Every source that contexts may come from."""
        return {self.source} | (self.of_messages.sources if self.of_messages is not None else set())

    async def resolve(self, item: Item, response: Response) -> ContextSet:
        """The contexts, or the error that becomes the item's `context_error`."""
        try:
            contexts = self.extract(item, response)
            if inspect.isawaitable(contexts):
                contexts = await contexts
        except Exception as error:  # noqa: BLE001 - the per-item boundary: an extractor may be user code
            said = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
            return ContextSet(self.source, error=said)
        return ContextSet(self.source, contexts[: self.top_k])


#: For scorers that look at no contexts, and for those that take whatever there is.
NOTHING = Resolver("none", lambda item, response: ())
IF_ANY = Resolver("returned", lambda item, response: response.contexts or item.contexts or ())


def resolver_for(
    kind: str,
    part: ContextsPart | None,
    *,
    where: str,
    base_dir: Path | None = None,
    response: ContextsPart | None = None,
    top_k: int | None = None,
) -> Resolver:
    """The resolver of one scorer, from its own `contexts:` or the suite's.

    Args:
        kind: The scorer's kind: with both static contexts and an extractor, precision takes the extractor and recall
            the static contexts, but for items whose input and output are agent messages.
        part: The declaration; None means what the target returned.
        where: File and field, for messages.
        base_dir: Where a function's module is looked for first.
        response: Where a target keeps "what it returned", if that is not found by its shape.
        top_k: How many of the extracted contexts are taken; static ones are all taken.

    Raises:
        ConfigError: a path is not JMESPath, a function cannot be loaded or called.
    """
    base_dir = base_dir or Path()
    own = _extractor(response, where=where, base_dir=base_dir) if response is not None else None
    own = own or Resolver("response", _from_response)
    extractor = None
    if part is not None:
        extractor = own if part.response else _extractor(part, where=where, base_dir=base_dir)
    if part is None or (extractor is None and part.static is None):
        extractor = own
    cut = None if extractor is None else Resolver(extractor.source, extractor.extract, top_k)
    if part is not None and part.static is not None and (cut is None or kind == "context_recall"):
        static = tuple(Context(text) for text in part.static)
        return Resolver(f"static:{digest(part.static)[:8]}", lambda item, response: static, of_messages=cut)
    assert cut is not None
    return cut


def _extractor(part: ContextsPart, *, where: str, base_dir: Path) -> Resolver | None:
    if part.path is not None:
        return Resolver(f"path:{part.path}", compiled(part.path, where=where))
    if part.item:
        return Resolver("item", _from_item)
    if part.response:
        return Resolver("response", _from_response)
    if part.function is not None:
        at = f"{where}.function"
        function = load_callable(part.function, base_dir=base_dir, where=at)
        return Resolver(f"function:{part.function}", from_function(function, name=part.function, where=at))
    if part.tool_results is not None:
        tools = () if part.tool_results is True else tuple(part.tool_results)
        return Resolver(":".join(("tool_results", *([",".join(tools)] if tools else []))), from_tool_results(tools))
    return None


def _are_messages(item: Item, response: Response) -> bool:
    answered = messages_of(response.raw)
    return bool(item.metadata.get("messages")) and answered is not None and bool(since_the_question(answered))


def _from_response(item: Item, response: Response) -> tuple[Context, ...]:
    if response.contexts is None:
        if messages_of(response.raw) is not None:
            raise ValueError("the target returned messages; take their contexts with `contexts: {tool_results: true}`")
        raise ValueError("the target returned no contexts; name their place with `contexts: {path: …}`")
    return response.contexts


def _from_item(item: Item, response: Response) -> tuple[Context, ...]:
    if item.contexts is None:
        raise ValueError("the dataset row has no `contexts`")
    return item.contexts
