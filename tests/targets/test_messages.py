"""Messages of an agent in the formats of the field: recognised, and read."""

from __future__ import annotations

from typing import Any

import pytest

from ragscore.targets.messages import answer_of, messages_of, question_of, since_the_question, text_of
from ragscore.targets.shapes import response_of

USER = {"role": "user", "content": "why?"}
SAID = {"role": "assistant", "content": "because"}


@pytest.mark.parametrize(
    ("value", "messages"),
    [
        ([USER, SAID], [USER, SAID]),
        ({"messages": [USER, SAID], "thread": 1}, [USER, SAID]),
        ({"choices": [{"message": SAID}], "usage": {}}, [SAID]),
        (SAID, [SAID]),
        (
            [{"type": "human", "content": "why?", "additional_kwargs": {}}],
            [{"type": "human", "content": "why?", "additional_kwargs": {}}],
        ),
        (
            [{"type": "ai", "data": {"content": "because", "tool_calls": []}}],
            [{"type": "ai", "content": "because", "tool_calls": [], "additional_kwargs": {}}],
        ),
        (
            [{"lc": 1, "type": "constructor", "id": ["AIMessage"], "kwargs": {"content": "because", "type": "ai"}}],
            [{"content": "because", "type": "ai", "additional_kwargs": {}}],
        ),
        ([{"lc": 1, "type": "constructor", "id": ["Document"], "kwargs": {"page_content": "a document"}}], None),
        ([{"role": "assistant", "parts": []}], [{"role": "assistant", "parts": []}]),
        ([], None),
        ({"messages": []}, None),
        ([{"content": "a document"}], None),
        ([{"type": "system", "content": "a document of the type system"}], None),
        ([USER, {"content": "a document"}], None),
        ([{"role": "editor", "content": "a document"}], None),
        (["text"], None),
        ("text", None),
        (None, None),
        ({"choices": []}, None),
        ({"choices": [3]}, None),
        (USER, None),
    ],
    ids=str,
)
def test_messages_are_told_from_documents(value: Any, messages: Any) -> None:
    assert messages_of(value) == messages


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (SAID, "because"),
        ({"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image_url"}, "b"]}, "ab"),
        ({"role": "user", "parts": [{"type": "text", "text": "a"}, {"type": "tool-search", "output": []}]}, "a"),
        ({"role": "user", "content": "", "parts": [{"type": "text", "text": "a"}]}, "a"),
        ({"role": "user", "content": {"format": 2, "parts": [{"type": "text", "text": "a"}]}}, "a"),
        (
            {
                "role": "assistant",
                "content": [{"type": "reasoning", "text": "hm"}, {"type": "output_text", "text": "a"}],
            },
            "a",
        ),
        ({"role": "assistant", "content": None}, ""),
    ],
    ids=str,
)
def test_the_text_of_a_message_is_its_text_parts(message: Any, text: str) -> None:
    assert text_of(message) == text


def test_question_and_answer_are_the_last_of_their_kind_that_say_something() -> None:
    talk: list[dict[str, Any]] = [
        USER,
        SAID,
        {"role": "user", "content": "and?"},
        SAID | {"content": "so"},
        SAID | {"content": None},
    ]
    assert (question_of(talk), answer_of(talk)) == ("and?", "so")
    assert (question_of([SAID]), answer_of([USER])) == (None, None)


def test_what_came_after_the_question() -> None:
    tool = {"role": "user", "content": [{"type": "tool_result", "content": "x"}]}
    assert since_the_question([USER, SAID, USER, tool, SAID]) == [tool, SAID]
    assert since_the_question([tool, SAID]) == [tool, SAID]
    assert since_the_question([USER]) == []


@pytest.mark.parametrize(
    ("value", "output"),
    [
        ([USER, SAID], "because"),
        ({"messages": [USER, SAID]}, "because"),
        ({"messages": [USER, SAID], "answer": "shorter"}, "shorter"),
        ({"answer": SAID}, "because"),
        (SAID, "because"),
        ({"messages": [USER]}, None),
    ],
    ids=str,
)
def test_a_target_may_return_messages(value: Any, output: str | None) -> None:
    response = response_of(value)
    assert (response.output, response.contexts) == (output, None)


def test_an_agents_state_may_hold_contexts_beside_its_messages() -> None:
    response = response_of({"messages": [USER, SAID], "documents": ["a"]})
    assert response.output == "because"
    assert [context.text for context in response.contexts or ()] == ["a"]
