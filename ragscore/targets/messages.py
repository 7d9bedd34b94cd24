"""Messages of an agent, as JSON: the OpenAI chat format, the one with `parts` and `toolInvocations`, LangChain's.

Whatever a target returned is looked at after `shapes.jsonable`, so that objects of any package are plain here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Message = Mapping[str, Any]

#: Who speaks, under each format's name for it.
USERS = frozenset({"user", "human"})
ASSISTANTS = frozenset({"assistant", "ai", "AIMessageChunk"})
TOOLS = frozenset({"tool", "function"})
ROLES = USERS | ASSISTANTS | TOOLS | {"system", "developer", "data"}


def messages_of(value: Any) -> list[Message] | None:
    """The messages that `value` is or holds: a list of them, `{"messages": […]}`, a chat completion; else None.

    A single assistant message counts as a list of one. An empty list is none: it may as well be no contexts.
    """
    if isinstance(value, Mapping):
        if (held := messages_of(value.get("messages"))) is not None:
            return held
        choices = value.get("choices")
        if isinstance(choices, list) and choices and isinstance(choices[0], Mapping):
            return messages_of([choices[0].get("message")])
        return [value] if role_of(value) in ASSISTANTS else None
    if not isinstance(value, Sequence) or isinstance(value, (str, bytes)) or not value:
        return None
    messages = [_unpacked(each) for each in value]
    return messages if all(map(role_of, messages)) else None


def _unpacked(value: Any) -> Any:
    """A message of LangChain's as it is stored (`messages_to_dict`, `dumpd`), without what is wrapped around it."""
    if not isinstance(value, Mapping):
        return value
    if isinstance(value.get("data"), Mapping) and value.get("type") in ROLES:
        return {"additional_kwargs": {}, **value["data"], "type": value["type"]}
    if "lc" in value and isinstance(value.get("kwargs"), Mapping):
        return {"additional_kwargs": {}, **value["kwargs"]}
    return value


def role_of(value: Any) -> str | None:
    """Who speaks in a message; None when `value` is no message. LangChain calls it `type`."""
    if not isinstance(value, Mapping):
        return None
    role = value.get("role")
    if role is None and "additional_kwargs" in value:
        role = value.get("type")
    if not isinstance(role, str) or role not in ROLES:
        return None
    return role if value.keys() & {"content", "parts", "toolInvocations", "tool_calls"} else None


def text_of(message: Message) -> str:
    """The text that a message says, of its parts those that are text."""
    content = message.get("content")
    if isinstance(content, str) and content:
        return content
    return "".join(
        part if isinstance(part, str) else part["text"]
        for part in parts_of(message)
        if isinstance(part, str)
        or (isinstance(part.get("text"), str) and part.get("type", "text") in ("text", "output_text", "input_text"))
    )


def parts_of(message: Message) -> list[Any]:
    """The parts of a message: texts and objects. They stand in `parts`, or in `content` as a list or below it."""
    content = message.get("content")
    parts = message.get("parts")
    if parts is None:
        parts = content.get("parts") if isinstance(content, Mapping) else content
    return [part for part in parts if isinstance(part, (str, Mapping))] if isinstance(parts, list) else []


def answer_of(messages: Sequence[Message]) -> str | None:
    """What the assistant said last; None when it said nothing."""
    said = (text_of(message) for message in reversed(messages) if role_of(message) in ASSISTANTS)
    return next((text for text in said if text), None)


def question_of(messages: Sequence[Message]) -> str | None:
    """What the user said last; None when there is no such message. Datasets take it as an item's `input`."""
    return next((text_of(message) for message in reversed(messages) if _asks(message)), None)


def since_the_question(messages: Sequence[Message]) -> list[Message]:
    """The messages after the user's last one: an agent may return the whole conversation, with earlier answers."""
    last = max((n for n, each in enumerate(messages) if _asks(each)), default=-1)
    return list(messages[last + 1 :])


def _asks(message: Message) -> bool:
    """Whether a user says something. What a tool returned may stand in a user's message too, with a reminder beside."""
    answers = any(isinstance(part, Mapping) and part.get("type") == "tool_result" for part in parts_of(message))
    return role_of(message) in USERS and not answers and bool(text_of(message))
