"""Contexts from the results of an agent's tools, in every format, one per document."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ragscore.contexts.tool_results import documents_in, from_tool_results, tool_results
from ragscore.items import Context, Item, Response
from ragscore.targets.messages import question_of

ITEM = Item("q", "why?")
DOCUMENTS = [{"text": "a", "id": 1, "score": 0.9, "source": "f.md"}, {"page_content": "b", "metadata": {"page": 2}}]


def extracted(raw: Any, *tools: str) -> list[tuple[str, str | None]]:
    """Text and tool of each context."""
    contexts = from_tool_results(tools)(ITEM, Response(raw=raw))
    return [(context.text, context.metadata.get("tool")) for context in contexts]


def called(call: str, name: str) -> dict[str, Any]:
    return {"id": call, "type": "function", "function": {"name": name, "arguments": "{}"}}


OPENAI = [
    {"role": "user", "content": "earlier"},
    {"role": "assistant", "content": None, "tool_calls": [called("0", "search")]},
    {"role": "tool", "tool_call_id": "0", "content": "of an earlier question"},
    {"role": "assistant", "content": "earlier answer"},
    {"role": "user", "content": "why?"},
    {"role": "assistant", "content": None, "tool_calls": [called("1", "search"), called("2", "weather")]},
    {"role": "tool", "tool_call_id": "1", "content": json.dumps(DOCUMENTS)},
    {"role": "tool", "tool_call_id": "2", "content": "sunny"},
    {"role": "assistant", "content": "because"},
]
INVOCATION = {"state": "result", "toolCallId": "1", "toolName": "search", "args": {}, "result": DOCUMENTS}
TWO = [("a", "search"), ("b", "search")]


def test_the_openai_chat_format_with_one_context_per_document_after_the_last_question() -> None:
    assert extracted(OPENAI) == [*TWO, ("sunny", "weather")]
    assert extracted({"messages": OPENAI}, "search") == TWO


def test_id_score_source_and_metadata_are_kept() -> None:
    first, second = from_tool_results(["search"])(ITEM, Response(raw=OPENAI))
    assert first == Context("a", id="1", score=0.9, metadata={"source": "f.md", "tool": "search"})
    assert second == Context("b", metadata={"page": 2, "tool": "search"})


@pytest.mark.parametrize(
    "message",
    [
        {"content": "", "toolInvocations": [INVOCATION]},
        {"content": {"format": 2, "toolInvocations": [INVOCATION], "parts": []}},
        {"parts": [{"type": "tool-invocation", "toolInvocation": INVOCATION}]},
        {"content": {"format": 2, "parts": [{"type": "tool-invocation", "toolInvocation": INVOCATION}]}},
        {
            "toolInvocations": [INVOCATION],
            "parts": [{"type": "tool-invocation", "toolInvocation": INVOCATION}, {"type": "text", "text": "x"}],
        },
        {"parts": [{"type": "tool-search", "toolCallId": "1", "state": "output-available", "output": DOCUMENTS}]},
        {
            "parts": [
                {
                    "type": "dynamic-tool",
                    "toolName": "search",
                    "toolCallId": "1",
                    "state": "output-available",
                    "output": {"results": DOCUMENTS},
                }
            ]
        },
    ],
    ids=lambda message: ",".join(message) if isinstance(message, dict) else "",
)
def test_tool_invocations_and_parts(message: dict[str, Any]) -> None:
    assert extracted([{"role": "assistant", **message}]) == TWO


@pytest.mark.parametrize(
    "output", [{"result": DOCUMENTS}, {"output": {"type": "json", "value": DOCUMENTS}}, {"output": DOCUMENTS}], ids=str
)
def test_result_parts_of_tool_messages(output: dict[str, Any]) -> None:
    part = {"type": "tool-result", "toolCallId": "1", "toolName": "search", **output}
    assert extracted([{"role": "tool", "content": [part]}]) == TWO


def test_content_blocks_and_langchains_messages() -> None:
    blocks: list[dict[str, Any]] = [
        {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "search", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": json.dumps(DOCUMENTS)}]},
    ]
    assert extracted(blocks) == TWO
    reminded = [{"role": "user", "content": "why?"}, *blocks]
    reminded[2] = {"role": "user", "content": [*blocks[1]["content"], {"type": "text", "text": "Be brief."}]}
    assert extracted(reminded) == TWO
    assert question_of(reminded) == "why?"
    common: dict[str, Any] = {"additional_kwargs": {}, "response_metadata": {}}
    langchain = [
        {"type": "human", "content": "why?", **common},
        {"type": "ai", "content": "", "tool_calls": [{"name": "search", "args": {}, "id": "1"}], **common},
        {"type": "tool", "content": json.dumps(DOCUMENTS), "tool_call_id": "1", "status": "success", **common},
    ]
    assert extracted({"messages": langchain}) == TWO


@pytest.mark.parametrize(
    "message",
    [
        {"role": "assistant", "toolInvocations": [{**INVOCATION, "state": "call"}]},
        {"role": "assistant", "parts": [{"type": "tool-search", "state": "output-error", "output": "x"}]},
        {"role": "assistant", "parts": [{"type": "tool-search", "state": "input-available", "input": {}}]},
        {"role": "tool", "content": "boom", "status": "error"},
        {"role": "tool", "content": [{"type": "tool-result", "output": {"type": "error-text", "value": "boom"}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "no", "is_error": True}]},
        {"role": "assistant", "content": "no tool was called"},
    ],
    ids=str,
)
def test_calls_that_failed_or_are_not_finished_give_nothing(message: dict[str, Any]) -> None:
    assert extracted([message]) == []


@pytest.mark.parametrize(
    ("content", "texts"),
    [
        ("plain text", ["plain text"]),
        ("  ", []),
        (None, []),
        ("[not json", ["[not json"]),
        ('["a", "b"]', ["a", "b"]),
        (["a", "", "b"], ["a", "b"]),
        ({"text": "a"}, ["a"]),
        ({"content": "a"}, ["a"]),
        ({"page_content": "a"}, ["a"]),
        ({"document": "a"}, ["a"]),
        ({"body": "a"}, ["a"]),
        ({"results": [{"text": "a"}], "total": 1}, ["a"]),
        ({"documents": []}, []),
        ([{"type": "text", "text": '[{"text": "a"}, {"text": "b"}]'}], ["a", "b"]),
        ({"content": [{"type": "text", "text": "a"}]}, ["a"]),
        ([{"id": "1", "score": 0.5, "metadata": {"text": "a"}}], ["a"]),
        ({"temperature": 3}, ['{"temperature": 3}']),
        ([{"name": "Bär"}], ['{"name": "Bär"}']),
        ([1, 2], ["1", "2"]),
    ],
    ids=str,
)
def test_what_a_tool_returned_is_one_context_per_document(content: Any, texts: list[str]) -> None:
    assert [context.text for context in documents_in(content)] == texts


def test_each_call_counts_once() -> None:
    both = [
        {"role": "assistant", "toolInvocations": [INVOCATION]},
        {"role": "assistant", "toolInvocations": [INVOCATION]},
    ]
    assert len(tool_results(both)) == 1


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ({"hits": [], "data": {"total": 0}}, "has the keys hits, data, data.total"),
        ("text", "is text"),
        (None, "is null"),
    ],
)
def test_a_response_without_messages_says_what_it_has(raw: Any, said: str) -> None:
    with pytest.raises(ValueError, match=f"the response holds no messages of an agent; it {said}"):
        extracted(raw)
