"""Recognises what a target returned, by shape: text, contexts, or an object that holds both."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from numbers import Real
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
    if isinstance(value, (Iterator, AsyncIterator)):  # it may be endless
        raise _unreadable(value, "; make a list of it")
    raw = jsonable(value)
    if isinstance(value, str):
        return Response(output=value, raw=raw)
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str) and _listed(value[1]) is not None:
        value = {"output": value[0], "contexts": value[1]}
    if (listed := _listed(value)) is not None:
        return Response(contexts=_contexts(listed, need_contexts), raw=raw)
    fields = _fields(value)
    if fields is None:
        if need_contexts:
            raise _unreadable(value)
        return Response(raw=raw)
    output = next((fields[key] for key in OUTPUT_KEYS if isinstance(fields.get(key), str)), None)
    listed = next((found for key in CONTEXTS_KEYS if (found := _listed(fields.get(key))) is not None), None)
    contexts = _contexts(listed, need_contexts) if listed is not None else None
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
        score=_finite(score),
        metadata=jsonable(metadata) if isinstance(metadata, Mapping) else {},
    )


def jsonable(value: Any) -> Any:
    """`value` as JSON: arrays become lists, objects with fields that are known here an object, all else its text."""
    return to_jsonable_python(value, fallback=_plain, inf_nan_mode="strings", bytes_mode="base64")


def _plain(value: Any) -> Any:
    if isinstance(value, type):
        return str(value)
    if hasattr(value, "tolist"):  # numpy's arrays and numbers, and what is like them
        return value.tolist()
    return _fields(value) or str(value)


def _contexts(values: Sequence[Any], need: bool) -> tuple[Context, ...] | None:
    contexts = contexts_of(values)
    if contexts is None and need:
        number, value = next((n, v) for n, v in enumerate(values, start=1) if context_of(v) is None)
        raise TargetFailure(
            f"returned contexts of which number {number} is {_kind(value)}; expected text, or objects with a `text`"
        )
    return contexts


def _fields(value: Any) -> Mapping[str, Any] | None:
    if isinstance(value, Mapping):
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    keys = (*OUTPUT_KEYS, *CONTEXTS_KEYS, *TEXT_KEYS, *ID_KEYS, "score", "metadata")
    found = {key: getattr(value, key) for key in keys if hasattr(value, key)}
    return {key: each for key, each in found.items() if not callable(each)} or None


def _listed(value: Any) -> Sequence[Any] | None:
    """`value` as a sequence, when it is a list of any kind, an array too."""
    if isinstance(value, (str, bytes, bytearray, memoryview, type)):
        return None
    if isinstance(value, Sequence):
        return value
    listed = value.tolist() if hasattr(value, "tolist") else None
    return listed if isinstance(listed, list) else None


def _finite(value: Any) -> float | None:
    if not isinstance(value, Real) or isinstance(value, bool):  # Real: numpy's numbers too
        return None
    return float(value) if math.isfinite(value) else None


def _kind(value: Any) -> str:
    kind = type(value).__name__
    if isinstance(value, Mapping):
        return f"{kind} with the keys {', '.join(map(str, value))}" if value else f"empty {kind}"
    return kind


def _unreadable(value: Any, mend: str = "") -> TargetFailure:
    return TargetFailure(
        f"returned {_kind(value)}; expected text, a list of contexts (text, or objects with a `text`), "
        f"or an object with `output` and `contexts`{mend}"
    )
