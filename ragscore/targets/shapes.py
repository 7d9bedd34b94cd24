"""Recognises what a target returned, by shape: text, contexts, or an object that holds both."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic_core import to_jsonable_python

from ragscore.items import Context, Response
from ragscore.targets.protocol import TargetFailure

OUTPUT_KEYS = ("output", "answer", "response", "result", "actual_output")
CONTEXTS_KEYS = ("contexts", "retrieved_contexts", "retrieval_context", "documents", "source_documents", "context")
TEXT_KEYS = ("text", "content", "page_content", "document", "body")
ID_KEYS = ("id", "doc_id", "chunk_id", "_id")


def response_of(value: Any, *, need_contexts: bool = True) -> Response:
    """The response that `value` amounts to: text → output; list → contexts; mapping or object → both.

    Args:
        value: What the target returned.
        need_contexts: Whether a shape that cannot be read matters (False when an extractor reads `raw` by itself).

    Raises:
        TargetFailure: the shape is none of these; names what came and what would do.
    """
    raw = jsonable(value)
    if isinstance(value, str):
        return Response(output=value, raw=raw)
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        contexts = contexts_of(value)
        if contexts is None and need_contexts:
            raise _unreadable(value)
        return Response(contexts=contexts, raw=raw)
    fields = _fields(value)
    if fields is None:
        if need_contexts:
            raise _unreadable(value)
        return Response(raw=raw)
    output = next((fields[key] for key in OUTPUT_KEYS if isinstance(fields.get(key), str)), None)
    listed = next((fields[key] for key in CONTEXTS_KEYS if _is_list(fields.get(key))), None)
    contexts = contexts_of(listed) if listed is not None else None
    if output is None and contexts is None and need_contexts:
        raise _unreadable(value)
    return Response(output=output, contexts=contexts, raw=raw)


def contexts_of(values: Sequence[Any]) -> tuple[Context, ...] | None:
    """The contexts of a list of texts or of objects with a text, in order; None when one of them has no text."""
    contexts = [context_of(value) for value in values]
    return None if any(c is None for c in contexts) else tuple(c for c in contexts if c is not None)


def context_of(value: Any) -> Context | None:
    """One context from text or from an object with text, id, score and metadata under the usual names."""
    if isinstance(value, Context):
        return value
    if isinstance(value, str):
        return Context(value)
    fields = _fields(value)
    if fields is None:
        return None
    text = next((fields[key] for key in TEXT_KEYS if isinstance(fields.get(key), str)), None)
    if text is None:
        return None
    identity = next((fields[key] for key in ID_KEYS if fields.get(key) is not None), None)
    score = fields.get("score")
    metadata = fields.get("metadata")
    return Context(
        text,
        id=None if identity is None else str(identity),
        score=float(score) if isinstance(score, (int, float)) and not isinstance(score, bool) else None,
        metadata=jsonable(metadata) if isinstance(metadata, Mapping) else {},
    )


def jsonable(value: Any) -> Any:
    """`value` as JSON; what JSON has no form for becomes its text."""
    return to_jsonable_python(value, fallback=str, inf_nan_mode="strings", bytes_mode="base64")


def _fields(value: Any) -> Mapping[str, Any] | None:
    if isinstance(value, Mapping):
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    keys = (*OUTPUT_KEYS, *CONTEXTS_KEYS, *TEXT_KEYS, *ID_KEYS, "score", "metadata")
    found = {key: getattr(value, key) for key in keys if hasattr(value, key)}
    return found or None


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray))


def _unreadable(value: Any) -> TargetFailure:
    kind = type(value).__name__
    if isinstance(value, Mapping):
        kind = f"{kind} with the keys {', '.join(map(str, value))}" if value else f"empty {kind}"
    return TargetFailure(
        f"returned {kind}; expected text, a list of contexts (text, or objects with a `text`), "
        "or an object with `output` and `contexts`"
    )
