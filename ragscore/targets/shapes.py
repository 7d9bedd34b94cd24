"""Recognises what a target returned, by shape: text, contexts, or an object that holds both."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from numbers import Real
from typing import Any

from pydantic_core import to_jsonable_python

from ragscore.items import Context, Response
from ragscore.targets.messages import answer_of, messages_of
from ragscore.targets.protocol import TargetFailure

OUTPUT_KEYS = ("output", "answer", "response", "result", "actual_output")
CONTEXTS_KEYS = (
    "contexts",
    "retrieved_contexts",
    "retrieval_context",
    "documents",
    "source_documents",
    "source_nodes",
    "context",
)
TEXT_KEYS = ("text", "content", "page_content", "document", "body")
ID_KEYS = ("id", "doc_id", "chunk_id", "_id", "node_id")
SCORE_KEYS = ("score", "_score", "similarity", "relevance_score")
#: Where stores keep the text of a hit when it does not stand in the hit itself.
HOLDERS = ("document", "node", "payload", "_source", "metadata", "meta")
#: What is kept of a context besides, when it stands beside the text instead of in its metadata.
KEPT = ("source", "url", "title", "rank")


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
    messages = messages_of(raw)
    if messages is not None and not isinstance(raw, Mapping):
        return Response(output=answer_of(messages), raw=raw)
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str) and _listed(value[1]) is not None:
        value = {"output": value[0], "contexts": value[1]}
    if (listed := _listed(value)) is not None:
        return Response(contexts=_contexts(listed, need_contexts), raw=raw)
    fields = _fields(value)
    if fields is None:
        if need_contexts:
            raise _unreadable(value)
        return Response(raw=raw)
    output = next((said for key in OUTPUT_KEYS if (said := _said(fields.get(key))) is not None), None)
    listed = next((found for key in CONTEXTS_KEYS if (found := _listed(fields.get(key))) is not None), None)
    if messages is not None:
        output = output if output is not None else answer_of(messages)
    elif output is None and listed is None:
        output, listed = _of_components(fields)
    contexts = _contexts(listed, need_contexts) if listed is not None else None
    if output is None and contexts is None and messages is None and need_contexts:
        raise _unreadable(value)
    return Response(output=output, contexts=contexts, raw=raw)


def _said(value: Any) -> str | None:
    """The text of an answer: itself, or what a message says."""
    if value is None or isinstance(value, str):
        return value
    message = None if isinstance(value, (int, float)) else messages_of(jsonable(value))
    return answer_of(message) if message is not None else None


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
    if isinstance(value, (tuple, list)) and len(value) == 2 and (score := _finite(value[1])) is not None:
        # What vector stores give with scores: pairs of a document and its score.
        scored = context_of(value[0])
        return None if scored is None else dataclasses.replace(scored, score=score)
    fields = _fields(value)
    if fields is None:
        return None
    text = next((fields[key] for key in TEXT_KEYS if isinstance(fields.get(key), str)), None)
    if text is None:
        held = next((found for key in HOLDERS if (found := _held(fields.get(key))) is not None), None)
        if held is None:
            return None
    else:
        held = Context(text)
    identity = next((fields[key] for key in ID_KEYS if fields.get(key) is not None), held.id)
    scores = (_finite(fields.get(key)) for key in SCORE_KEYS)
    score = next((each for each in scores if each is not None), held.score)
    described = (fields.get(key) for key in ("metadata", "meta"))
    metadata = next((each for each in described if isinstance(each, Mapping)), held.metadata)
    beside = {key: fields[key] for key in KEPT if fields.get(key) is not None and key not in metadata}
    return Context(
        held.text,
        id=None if identity is None else str(identity),
        score=score,
        metadata=jsonable({**metadata, **beside}),
    )


def _held(value: Any) -> Context | None:
    return None if value is None or isinstance(value, str) else context_of(value)


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
    if isinstance(value, type):
        return None
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    content: Any = getattr(value, "get_content", None)
    is_node = callable(content)  # of LlamaIndex; its `text` raises where a node is no text
    keys = dict.fromkeys((*OUTPUT_KEYS, *CONTEXTS_KEYS, *TEXT_KEYS, *ID_KEYS, *SCORE_KEYS, *KEPT, *HOLDERS))
    found = {key: getattr(value, key) for key in keys if not (is_node and key == "text") and hasattr(value, key)}
    if is_node:
        found["text"] = content()
    return {key: each for key, each in found.items() if not callable(each)} or None


def _of_components(fields: Mapping[str, Any]) -> tuple[str | None, Sequence[Any] | None]:
    """Output and contexts of a pipeline's result, `{"retriever": {"documents": […]}, "llm": {"replies": […]}}`.

    Where several components give documents, the last one stands: it ranks what those before it found.
    """
    output: str | None = None
    contexts: Sequence[Any] | None = None
    for given in fields.values():
        if not isinstance(given, Mapping):
            continue
        if (documents := _listed(given.get("documents"))) is not None:
            contexts = documents
        for answer in [*(_listed(given.get("replies")) or ()), *(_listed(given.get("answers")) or ())][:1]:
            said = answer if isinstance(answer, str) else getattr(answer, "text", getattr(answer, "data", None))
            output = said if isinstance(said, str) else output
            contexts = contexts if contexts is not None else _listed(getattr(answer, "documents", None))
    return output, contexts


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
