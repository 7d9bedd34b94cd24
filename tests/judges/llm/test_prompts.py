"""Prompts: stable rubric first, fenced data last, short."""

from __future__ import annotations

import re
from itertools import chain, repeat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragscore.items import digest
from ragscore.judges.llm.prompts import asked_again, prompt, prompt_version, template
from ragscore.judges.llm.replies import SCHEMAS
from ragscore.judges.tasks import AttributeClaims, Claim, ExtractClaims, Passage, RateContexts, Task

QUESTION = "When was the Eiffel Tower finished and who built it?"
REFERENCE = (
    "The Eiffel Tower was completed in March of the year 1889 for the world's fair. It was designed and built by the "
    "company of Gustave Eiffel. Its construction took two years, two months and five days. It stands 330 metres tall "
    "and was the tallest structure until 1930."
)
PASSAGES = tuple(Passage(f"p{number}", "x" * 500) for number in range(1, 6))
CLAIMS = tuple(Claim(f"c{number}", text) for number, text in enumerate(re.split(r"(?<=\.) ", REFERENCE), start=1))
TASKS: tuple[Task, ...] = (
    ExtractClaims(QUESTION, REFERENCE),
    AttributeClaims(QUESTION, CLAIMS, PASSAGES),
    RateContexts(QUESTION, REFERENCE, "reference", PASSAGES),
)


def test_the_prompts_of_one_item_stay_within_1900_tokens() -> None:
    assert len(CLAIMS) == 4
    chars = sum(len(message["content"]) for task in TASKS for message in prompt(task).messages)
    assert chars / 4 <= 1900


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_the_system_message_is_the_same_for_every_item_and_names_every_field_of_the_reply(task: Task) -> None:
    system = prompt(task).messages[0]
    assert (
        system
        == prompt(TASKS[TASKS.index(task)]).messages[0]
        == {"role": "system", "content": template(prompt_version(task))}
    )
    assert "<<<…>>>" in system["content"]
    assert all(f'"{name}"' in system["content"] for name in _names(SCHEMAS[task.name]))


def test_a_changed_template_or_reply_form_needs_a_new_version() -> None:
    """If this fails: keep the old template, add the new one as the next version, and write its digest here."""
    pinned = {prompt_version(task): digest(template(prompt_version(task)), SCHEMAS[task.name]) for task in TASKS}
    assert pinned == {
        "extract_claims.v1": "eaba10613d1f5a0072fc9acde039bba8",
        "attribute_claims.v1": "1ff154ea2a8fd43f4626317ab783d9ba",
        "rate_contexts.v1": "6828567d5cd9ddfca59054a6aebba730",
    }


def test_data_stands_in_fences_in_the_form_agreed() -> None:
    task = AttributeClaims("Q?", (Claim("c1", "a\n[c2] b"),), (Passage("p1", "one\ntwo"),))
    shown = prompt(task, new_marker=lambda size: "abcd")
    assert shown.messages[1]["content"] == (
        "<<<abcd question>>>\nQ?\n<<<abcd end>>>\n"
        "<<<abcd claims>>>\n[c1] a [c2] b\n<<<abcd end>>>\n"
        "<<<abcd context p1>>>\none\ntwo\n<<<abcd end>>>"
    )


def test_expected_is_left_out_where_there_is_none() -> None:
    assert "expected>>>" not in prompt(RateContexts("Q?", None, "question", PASSAGES)).messages[1]["content"]


def test_a_marker_that_stands_in_the_data_is_not_taken() -> None:
    markers = chain(["beef"], ["BEEF"], repeat("cafe01"))
    shown = prompt(ExtractClaims("Q?", "<<<beef end>>>"), new_marker=lambda size: next(markers))
    assert shown.marker == "cafe01"


def test_markers_differ_from_call_to_call() -> None:
    assert len({prompt(TASKS[0]).marker for _ in range(20)}) > 15


@given(st.lists(st.text(max_size=60), min_size=1, max_size=4))
def test_no_text_can_close_its_fence_or_open_one(texts: list[str]) -> None:
    passages = tuple(Passage(f"p{number}", text) for number, text in enumerate(texts, start=1))
    shown = prompt(RateContexts("Q?", "A.", "reference", passages))
    content = shown.messages[1]["content"]
    assert content.count(f"<<<{shown.marker} ") == 2 * (len(texts) + 2)
    content.encode("utf-8")


def test_html_and_braces_reach_the_model_as_they_are() -> None:
    assert "a < b && {{ c }}" in prompt(ExtractClaims("Q?", "a < b && {{ c }}")).messages[1]["content"]


def test_asking_again_shows_the_reply_and_the_error() -> None:
    messages = asked_again(prompt(TASKS[0]).messages, reply="nonsense", error="it holds no JSON object")
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "user"]
    assert messages[2]["content"] == "nonsense"
    assert "it holds no JSON object" in messages[3]["content"]


def _names(schema: dict[str, object]) -> set[str]:
    names: set[str] = set()
    properties = schema.get("properties", {})
    assert isinstance(properties, dict)
    for name, part in properties.items():
        names |= {name} | _names(part.get("items", {}))
    return names
