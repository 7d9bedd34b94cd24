"""Whatever systems answer can be stored, and comes back."""

from __future__ import annotations

import itertools
import json
from datetime import UTC, datetime, timedelta, timezone
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ragscore.history import History, item_detail, values
from ragscore.items import Context, ContextSet, Finding, Item, Record, Response, Score, Status

from .records import run_row, store

#: Every character there is: NUL, lone surrogates, right-to-left marks.
texts = st.text(st.characters(exclude_categories=()), max_size=30)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda parts: st.lists(parts, max_size=3) | st.dictionaries(texts, parts, max_size=3),
    max_leaves=8,
)
fractions = st.fractions(0, 1)


def cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return "".join("\ufffd" if 0xD800 <= ord(c) < 0xE000 else c for c in value)
    if isinstance(value, list):
        return [cleaned(part) for part in value]
    return {cleaned(k): cleaned(v) for k, v in value.items()} if isinstance(value, dict) else value


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> History:
    history = History(tmp_path_factory.mktemp("values") / "history.duckdb")
    history.start_run(run_row())
    return history


numbers = itertools.count()


@given(st.lists(texts, min_size=9, max_size=9), JSON, fractions)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_json_and_fraction_round_trips(shared: History, text: list[str], raw: Any, exact: Fraction) -> None:
    item = Item(f"{next(numbers)}{text[0]}", text[1], reference=text[2], claims=(text[3],), metadata={text[4]: raw})
    held = (Context(text[5], id=text[6], metadata={"m": raw} if raw is not None else {}), Context(text[7]))
    score = Score(
        scorer="recall",
        kind="context_recall",
        status=Status.OK,
        exact=exact,
        value=float(exact),
        reason=text[8],
        findings=(Finding("claim", text[0], 1, text[1], True, text[2], (1,), (text[3], ""), True, (text[4],)),),
        raw=text[5],
        error=text[6],
        context_set="item",
    )
    one = Record(
        item,
        response=Response(text[0], held, raw, 1.0),
        context_sets={"item": ContextSet("item", held)},
        scores=(score,),
    )
    assert store(shared, "run-1", [one]) == (1, 1, 1)
    detail = item_detail(shared, "run-1", item.id)
    assert (detail.item.input, detail.item.reference) == (cleaned(text[1]), cleaned(text[2]))
    assert detail.item.claims == (cleaned(text[3]),)
    assert detail.item.metadata == {cleaned(text[4]): cleaned(raw)}
    assert detail.response.raw == cleaned(raw)
    assert detail.response.output == cleaned(text[0])
    found = detail.context_sets["item"].contexts
    assert [context.text for context in found] == [cleaned(text[5]), cleaned(text[7])]
    assert found == detail.response.contexts
    (stored,) = detail.scores
    assert (stored.exact, stored.reason, stored.raw) == (exact, cleaned(text[8]), cleaned(text[5]))
    assert stored.findings[0].quotes == (cleaned(text[3]), "")
    assert list(shared.responses("run-1", [item.id])) == [item.id]


def test_one_strange_row_does_not_cost_the_batch(history: History) -> None:
    class Odd:
        def __str__(self) -> str:
            return "odd"

    loop: list[Any] = []
    loop.append(loop)
    raw = {1: float("nan"), "s": {3}, "o": Odd(), "inf": [float("-inf")], "big": 10**40, "deep": loop, "\ud800": "\x00"}
    contexts = (Context("x" * 100_000, score=float("nan"), metadata={"f": Fraction(1, 3)}), Context(""))
    records = [
        Record(Item("a", "?"), 0, response=Response("fine")),
        Record(Item("b\ud800", "?", metadata={"when": datetime(2026, 1, 1, tzinfo=UTC)}), 1).having(
            response=Response("\x00\ud800", contexts, raw, latency_ms=float("inf"))
        ),
    ]
    history.start_run(run_row())
    assert history.store_responses("run-1", records) == 2
    found = history.responses("run-1", ["a", "b\ud800"])
    assert found["a"][0] == Response("fine")
    response = found["b\ud800"][0]
    assert response.output == "\x00\ufffd"
    assert response.latency_ms is None
    assert response.contexts == (Context("x" * 100_000, metadata={"f": "1/3"}), Context(""))
    assert response.raw["1"] is None
    assert (response.raw["o"], response.raw["inf"], response.raw["big"]) == ("odd", [None], 10**40)
    assert response.raw["\ufffd"] == "\x00"


@given(st.fractions())
def test_fractions_lose_nothing(exact: Fraction) -> None:
    assert values.to_fraction(values.from_fraction(exact)) == exact


@given(st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30)))  # noqa: DTZ001
def test_times_are_utc_whatever_zone_they_come_in(moment: datetime) -> None:
    there = moment.replace(tzinfo=timezone(timedelta(hours=5, minutes=45)))
    assert values.utc(there) == there
    assert values.utc(moment) == moment.replace(tzinfo=UTC)
    micros = (there - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    assert values.from_micros(micros) == there


@given(st.from_type(type).map(str) | JSON)
def test_json_is_always_valid_json(value: Any) -> None:
    stored = values.to_json(value)
    assert stored is None or json.loads(stored) == cleaned(value)


def test_a_shared_corpus_with_real_text_comes_back(history: History) -> None:
    data = Path(__file__).parents[2].parent / "shared" / "data" / "rag_passages_mtrag.jsonl"
    if not data.exists():
        pytest.skip("the shared data are not beside this repository")
    lines = data.read_text(encoding="utf-8").splitlines()[:200]
    held = tuple(Context(line, id=str(place)) for place, line in enumerate(lines))
    history.start_run(run_row())
    history.store_responses("run-1", [Record(Item("a", "?"), response=Response(contexts=held, raw=lines))])
    assert history.responses("run-1", ["a"])["a"][0] == Response(contexts=held, raw=lines)
