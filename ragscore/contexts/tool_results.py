"""Contexts from what an agent's tools returned: one per document, not one per call.

Read are the OpenAI chat format (`tool_calls`, and messages of the role `tool`), the formats with `toolInvocations` or
`parts` (also below `content`), LangChain's messages, and content blocks of the type `tool_result`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ragscore.contexts.path import keys_of
from ragscore.items import Context, Item, Response
from ragscore.targets.messages import TOOLS, Message, messages_of, parts_of, role_of, since_the_question
from ragscore.targets.shapes import CONTEXTS_KEYS, context_of

#: Under which keys tools wrap their list of documents.
LIST_KEYS = (
    *CONTEXTS_KEYS,
    *("results", "hits", "docs", "chunks", "matches", "passages", "nodes", "items", "data", "relevantContext"),
    *("content", "result", "output"),
)


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What one call of a tool returned; `tool` is its name where the messages tell."""

    tool: str | None
    call: str | None
    content: Any


def from_tool_results(tools: Sequence[str] = ()) -> Callable[[Item, Response], tuple[Context, ...]]:
    """The extractor of what these tools returned, or all tools where none is named."""

    def extract(item: Item, response: Response) -> tuple[Context, ...]:
        messages = messages_of(response.raw)
        if messages is None:
            raise ValueError(f"the response holds no messages of an agent; it {keys_of(response.raw)}")
        results = [each for each in tool_results(messages) if not tools or each.tool in tools]
        return tuple(
            replace(context, metadata={**context.metadata, "tool": result.tool} if result.tool else context.metadata)
            for result in results
            for context in documents_in(result.content)
        )

    return extract


def tool_results(messages: Sequence[Message]) -> list[ToolResult]:
    """What tools returned after the user's last message, in order, each call once; failed calls are left out."""
    names = {call: name for message in messages for call, name in _calls(message)}
    found: list[ToolResult] = []
    seen: set[str] = set()
    for message in since_the_question(messages):
        for result in _results(message):
            if result.call is not None:
                if result.call in seen:  # the same one in `toolInvocations` and in `parts`
                    continue
                seen.add(result.call)
            found.append(replace(result, tool=result.tool or names.get(result.call or "")))
    return found


def documents_in(content: Any) -> list[Context]:
    """The documents that a tool's result holds, in its order.

    JSON text is parsed. A list is one document per entry; an object with a text is one; an object that wraps a list
    is that list; what is none of these is one document, its JSON.
    """
    if content is None:
        return []
    if isinstance(content, str):
        parsed = _parsed(content)
        if parsed is not None:
            return documents_in(parsed)
        return [Context(content)] if content.strip() else []
    if isinstance(content, (list, tuple)):
        if content and all(_is_text_part(part) for part in content):
            return [context for part in content for context in documents_in(part["text"])]
        return [context for each in content if (context := _document(each)) is not None]
    if isinstance(content, Mapping):
        listed = next((content[key] for key in LIST_KEYS if isinstance(content.get(key), (list, tuple))), None)
        if listed is not None:
            return documents_in(listed)
    document = _document(content)
    return [] if document is None else [document]


def _calls(message: Message) -> Iterator[tuple[str, str]]:
    for call in _list(message.get("tool_calls")):
        function = call.get("function")
        name = function.get("name") if isinstance(function, Mapping) else call.get("name")
        if isinstance(call.get("id"), str) and isinstance(name, str):
            yield call["id"], name
    for part in parts_of(message):
        if isinstance(part, Mapping) and part.get("type") in ("tool_use", "tool-call"):
            call_id, name = part.get("id", part.get("toolCallId")), part.get("name", part.get("toolName"))
            if isinstance(call_id, str) and isinstance(name, str):
                yield call_id, name


def _results(message: Message) -> Iterator[ToolResult]:
    parts = [part for part in parts_of(message) if isinstance(part, Mapping)]
    if role_of(message) in TOOLS and not any(part.get("type") == "tool-result" for part in parts):
        if message.get("status") != "error":
            yield ToolResult(_text(message.get("name")), _text(message.get("tool_call_id")), message.get("content"))
        return
    content = message.get("content")
    invocations = [*_list(message.get("toolInvocations"))]
    if isinstance(content, Mapping):
        invocations += _list(content.get("toolInvocations"))
    for part in parts:
        kind = str(part.get("type", ""))
        if kind == "tool-invocation" and isinstance(part.get("toolInvocation"), Mapping):
            invocations.append(part["toolInvocation"])
        elif kind == "tool_result" and not part.get("is_error"):
            yield ToolResult(None, _text(part.get("tool_use_id")), part.get("content"))
        elif kind == "tool-result" and not part.get("isError"):
            yield _result(part, part.get("output", part.get("result")))
        elif (kind == "dynamic-tool" or kind.startswith("tool-")) and part.get("state") == "output-available":
            name = part.get("toolName") or kind.removeprefix("tool-")
            yield _result({**part, "toolName": name}, part.get("output"))
    for invocation in invocations:
        if invocation.get("state") == "result" or ("state" not in invocation and "result" in invocation):
            yield _result(invocation, invocation.get("result"))


def _result(told: Mapping[str, Any], content: Any) -> ToolResult:
    if isinstance(content, Mapping) and content.keys() == {"type", "value"}:
        content = [] if str(content["type"]).startswith("error") else content["value"]
    return ToolResult(_text(told.get("toolName")), _text(told.get("toolCallId")), content)


def _document(value: Any) -> Context | None:
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    context = context_of(value)
    if context is not None:
        return context
    return Context(json.dumps(value, ensure_ascii=False, default=str))


def _parsed(text: str) -> Any:
    if text.lstrip()[:1] not in ("[", "{"):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _is_text_part(value: Any) -> bool:
    return isinstance(value, Mapping) and value.get("type") == "text" and isinstance(value.get("text"), str)


def _list(value: Any) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
