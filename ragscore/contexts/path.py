"""Contexts by a JMESPath expression on the target's response."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import jmespath
from jmespath.exceptions import JMESPathError
from jmespath.parser import ParsedResult

from ragscore.errors import SuiteError
from ragscore.expressions import path_fault
from ragscore.items import Context, Item, Response
from ragscore.targets.shapes import contexts_of


def compiled(expression: str, *, where: str) -> Callable[[Item, Response], tuple[Context, ...]]:
    """The extractor that `expression` describes.

    Raises:
        SuiteError: it is not JMESPath.
    """
    if (fault := path_fault(expression)) is not None:
        raise SuiteError(fault, where=where, mend="e.g. hits[*].text")
    search = jmespath.compile(expression)
    entries = _entries(search)

    def extract(item: Item, response: Response) -> tuple[Context, ...]:
        try:
            value = search.search(response.raw)
            there = entries.search(response.raw) if entries is not None else value
        except JMESPathError as error:
            raise ValueError(f"{expression!r} fails: {error}") from error
        if isinstance(value, list) and len(value) < len(there):
            only = f"only {len(value)}" if value else "none"
            raise ValueError(f"{expression!r} finds {len(there)} entries, {only} with a text")
        if value is None:
            raise ValueError(f"nothing at {expression!r}; the response {keys_of(response.raw)}")
        return as_contexts(value, f"{expression!r} gave")

    return extract


def _entries(search: ParsedResult) -> ParsedResult | None:
    """What a projection (`hits[*].text`) goes over: it leaves out entries without a value, and ranks would shift."""
    tree = search.parsed
    if tree["type"] not in ("projection", "filter_projection") or tree["children"][1]["type"] == "identity":
        return None
    itself = jmespath.compile("@").parsed
    source, _, *condition = tree["children"]
    return ParsedResult(search.expression, {**tree, "children": [source, itself, *condition]})


def as_contexts(value: Any, said: str) -> tuple[Context, ...]:
    """Contexts from what an extractor gave: a text, or a list of texts or objects with a text.

    Raises:
        ValueError: it is neither.
    """
    if isinstance(value, str):
        return (Context(value),)
    if isinstance(value, (list, tuple)):
        contexts = contexts_of(value)
        if contexts is not None:
            return contexts
        raise ValueError(f"{said} a list with entries that have no text")
    raise ValueError(f"{said} {type(value).__name__}, not a list of texts")


def keys_of(raw: Any) -> str:
    """What a response consists of, in words: "has the keys data, data.hits, took"."""
    if isinstance(raw, Mapping):
        names: list[str] = []
        for key, value in raw.items():
            names.append(str(key))
            if isinstance(value, Mapping):
                names += [f"{key}.{inner}" for inner in value]
        return f"has the keys {', '.join(names[:20])}" if names else "is an empty object"
    if isinstance(raw, list):
        return f"is a list of {len(raw)}" + (f" whose first entry {keys_of(raw[0])}" if raw else "")
    return "is text" if isinstance(raw, str) else f"is {json.dumps(raw)}"
