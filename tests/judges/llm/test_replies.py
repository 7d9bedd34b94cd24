"""Reading replies: whatever the text, a reply or a ReplyError."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragscore.judges.llm.replies import (
    SCHEMAS,
    ReplyError,
    label,
    parse_claim_verdicts,
    parse_claims,
    parse_context_verdicts,
)

ROWS = '{"verdicts": [{"id": "p1", "relevant": true, "why": "a"}, {"id": "p2", "relevant": false, "why": "b"}]}'


def relevance(text: str, ids: tuple[str, ...] = ("p1", "p2")) -> dict[str, bool]:
    return {id: row.relevant for id, row in parse_context_verdicts(text, ids).by_id.items()}


@pytest.mark.parametrize(
    "text",
    [
        ROWS,
        f"```json\n{ROWS}\n```",
        f"```\n{ROWS}\n```",
        f"Sure! See [1]:\n\n{ROWS}\n\nAnything else [2]?",
        f'<think>Draft: {{"verdicts": [{{"id": "p1", "relevant": false}}]}}</think>{ROWS}',
        f'The ids are {{"id": "p1", "relevant": false}}.\n</think>\n{ROWS}',
        f'First {{"verdicts": [{{"id": "p1", "relevant": false, "why": ""}}]}} no, rather: {ROWS}',
        f"{ROWS}\n<think>done</think>",
        json.dumps(json.loads(ROWS)["verdicts"]),
        "\ufeff" + ROWS,
        f"{{ broken {ROWS}",
    ],
    ids=[
        "straight",
        "fenced",
        "bare fence",
        "prose",
        "think",
        "lone think",
        "last counts",
        "think after",
        "list",
        "bom",
        "unclosed before",
    ],
)
def test_json_is_found_in_what_models_wrap_around_it(text: str) -> None:
    assert relevance(text) == {"p1": True, "p2": False}


@pytest.mark.parametrize("text", ["", "I cannot judge this.", "{}", "[1]", "true", '{"verdicts": "none"}', ROWS[:40]])
def test_a_reply_without_verdicts_is_an_error_in_words(text: str) -> None:
    with pytest.raises(ReplyError, match=r"it (holds|has) no"):
        relevance(text)


@pytest.mark.parametrize("text", [ROWS[:-1] + ",", ROWS[:-20], ROWS.replace('": [', '" = [', 1)])
def test_a_part_of_a_broken_reply_is_not_taken_for_the_whole(text: str) -> None:
    with pytest.raises(ReplyError):
        relevance(text)


def test_unknown_ids_are_dropped_and_of_duplicates_the_first_counts() -> None:
    rows = [
        {"id": "p9", "relevant": True},
        {"id": "1", "relevant": True},
        {"id": "[P1]", "relevant": False},
        {"id": "p1", "relevant": True},
        {"id": "", "relevant": True},
    ]
    reply = parse_context_verdicts(json.dumps({"verdicts": rows}), ("p1", "p2"))
    assert {id: row.relevant for id, row in reply.by_id.items()} == {"p1": False}
    assert reply.missing == ("p2",)


def test_a_row_that_says_neither_yes_nor_no_counts_as_missing() -> None:
    rows = [{"id": "c1", "supported": "partially"}, {"id": "c2", "supported": "Yes."}]
    reply = parse_claim_verdicts(json.dumps({"verdicts": rows}), ("c1", "c2"))
    assert reply.missing == ("c1",)
    assert reply.by_id["c2"].supported


def test_where_no_row_can_be_used_the_error_says_what_is_wrong() -> None:
    with pytest.raises(ReplyError, match="supported: neither true nor false"):
        parse_claim_verdicts('{"verdicts": [{"id": "c1", "supported": "maybe"}]}', ("c1",))


@pytest.mark.parametrize(
    "said",
    [
        True,
        1,
        "1",
        "Yes.",
        "TRUE",
        "**yes**",
        "ja",
        "Oui",
        "sí",
        "да",
        "是",
        "はい",
        "예",
        "نعم",
        "ใช่",
        "हाँ",
        "supported",
        "Relevant",
        "ＹＥＳ",
    ],
)
def test_common_spellings_of_yes(said: object) -> None:
    assert label(said) is True


@pytest.mark.parametrize(
    "said",
    [
        False,
        0,
        "0",
        "No.",
        "FALSE",
        "nein",
        "non",
        "нет",
        "否",
        "いいえ",
        "아니요",
        "لا",
        "ไม่ใช่",
        "नहीं",
        "not supported",
        "not_relevant",
        "irrelevant",
    ],
)
def test_common_spellings_of_no(said: object) -> None:
    assert label(said) is False


@pytest.mark.parametrize("said", [None, "", "partially", "yes and no", 2, 0.5, [], {}, "unknown", float("nan")])
def test_anything_else_is_no_verdict(said: object) -> None:
    with pytest.raises(ValueError, match="neither"):
        label(said)


def test_claims_are_single_lines_without_repeats() -> None:
    text = json.dumps({"claims": ["Water is\nwet.", " water  is wet. ", "", {"claim": "Ice is cold."}]})
    assert parse_claims(text) == ("Water is wet.", "Ice is cold.")
    assert parse_claims('{"claims": []}') == ()
    assert parse_claims('["a", "b"]') == ("a", "b")


def test_claims_that_are_no_texts_are_an_error() -> None:
    with pytest.raises(ReplyError, match="list of strings"):
        parse_claims('{"claims": [["a"]]}')


def test_lone_surrogates_and_nul_do_not_reach_the_database() -> None:
    reply = parse_context_verdicts('{"verdicts": [{"id": "p1", "relevant": true, "why": "a\\ud800\\u0000b"}]}', ("p1",))
    assert reply.by_id["p1"].why == "a?b"


def test_quotes_in_a_list_are_joined_and_one_context_may_stand_alone() -> None:
    row = {"id": "c1", "supported": True, "contexts": "p1", "quote": ["one", "two"]}
    reply = parse_claim_verdicts(json.dumps({"verdicts": [row]}), ("c1",))
    assert (reply.by_id["c1"].contexts, reply.by_id["c1"].quote) == (["p1"], "one … two")


def test_schemas_hold_nothing_that_strict_providers_reject() -> None:
    def check(part: dict[str, object]) -> None:
        assert set(part) <= {"type", "properties", "required", "additionalProperties", "items"}
        if part["type"] == "object":
            properties = part["properties"]
            assert isinstance(properties, dict)
            assert part["additionalProperties"] is False
            assert part["required"] == list(properties)
            for inner in properties.values():
                check(inner)
        if "items" in part:
            check(part["items"])  # type: ignore[arg-type]

    for schema in SCHEMAS.values():
        check(schema)
    assert SCHEMAS["attribute_claims"]["properties"]["verdicts"]["items"]["required"] == [
        "id",
        "supported",
        "contexts",
        "quote",
    ]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["id", "verdicts", "relevant", "supported", "claims", "quote", "contexts"]), inner
        )
    ),
    max_leaves=12,
)


@given(st.text() | JSON.map(json.dumps) | JSON.map(lambda value: f"<think>{json.dumps(value)}</think> {{{value}}} ```"))
def test_no_reply_raises_anything_but_a_reply_error(text: str) -> None:
    _parse_in_every_way(text)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"a":' * 50_000,
        "{" * 50_000 + "}" * 50_000,
        "9" * 5000,
        "[" + "9" * 5000 + "]",
        "<think>" * 20_000,
        "```" * 20_001,
        '{"claims": ' + "[" * 5000,
    ],
)
def test_hostile_replies_take_little_time(text: str) -> None:
    _parse_in_every_way(text)


def test_recorded_replies_of_real_models_raise_nothing_else(shared_data: Path) -> None:
    lines = (shared_data / "recorded_llm_raw_wice.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(lines) > 100
    for line in lines:
        _parse_in_every_way(json.loads(line)["raw"])


def _parse_in_every_way(text: str) -> None:
    for parse in (
        lambda: parse_claims(text),
        lambda: parse_claim_verdicts(text, ("c1", "c2")),
        lambda: parse_context_verdicts(text, ("p1",)),
    ):
        with suppress(ReplyError):
            parse()
