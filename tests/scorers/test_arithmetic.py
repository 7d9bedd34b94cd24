"""Properties of the arithmetic: range, exactness, order, place."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragscore.errors import ConfigError
from ragscore.items import Context, ContextSet, Item, Judgement, Status, Verdict
from ragscore.scorers import (
    ContextPrecision,
    Judged,
    Passages,
    Sample,
    average_precision,
    band,
    recall,
    rounded,
)
from ragscore.scorers.arithmetic import as_fraction

flags = st.lists(st.booleans(), min_size=1, max_size=30)


@given(flags)
def test_scores_stay_within_0_and_1(verdicts: list[bool]) -> None:
    assert 0 <= recall(verdicts) <= 1
    assert 0 <= average_precision(verdicts) <= 1


@given(flags)
def test_all_yes_is_exactly_1_and_all_no_exactly_0(verdicts: list[bool]) -> None:
    everything, nothing = [True] * len(verdicts), [False] * len(verdicts)
    assert recall(everything) == average_precision(everything) == 1
    assert recall(nothing) == average_precision(nothing) == 0


@given(flags, st.randoms())
def test_recall_does_not_depend_on_order(verdicts: list[bool], random: object) -> None:
    shuffled = list(verdicts)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert recall(shuffled) == recall(verdicts)


@given(flags, st.data())
def test_moving_a_relevant_context_up_never_lowers_precision(relevant: list[bool], data: st.DataObject) -> None:
    places = [rank for rank in range(1, len(relevant)) if relevant[rank] and not relevant[rank - 1]]
    if not places:
        return
    rank = data.draw(st.sampled_from(places))
    moved = list(relevant)
    moved[rank - 1], moved[rank] = moved[rank], moved[rank - 1]
    assert average_precision(moved) > average_precision(relevant)


@given(flags)
def test_precision_agrees_with_its_definition_in_floats(relevant: list[bool]) -> None:
    hits, total = 0, 0.0
    for rank, yes in enumerate(relevant, start=1):
        hits += yes
        total += hits / rank if yes else 0.0
    assert float(average_precision(relevant)) == pytest.approx(total / hits if hits else 0.0)


@given(st.fractions(min_value=0, max_value=1), st.fractions(min_value=Fraction(1, 100), max_value=100))
def test_rounding_is_to_the_nearest_hundredth_and_half_goes_up(exact: Fraction, scale: Fraction) -> None:
    hundredths = Fraction(round(rounded(exact, scale) * 100), 100)
    assert -Fraction(1, 200) < hundredths - exact * scale <= Fraction(1, 200)


@pytest.mark.parametrize("number", ["nan", "inf", "-inf", "", "a", "1/0", float("nan"), float("inf")])
def test_what_is_no_finite_number_is_refused(number: object) -> None:
    with pytest.raises(ConfigError, match="not a finite number"):
        as_fraction(number)  # type: ignore[arg-type]


def test_a_decimal_is_taken_as_written() -> None:
    assert as_fraction(0.835) == Fraction(835, 1000)


@pytest.mark.parametrize(
    ("exact", "word"),
    [("1", "excellent"), ("9/10", "excellent"), ("0.89", "good"), ("7/10", "good"), ("0.4", "mixed"), ("1/99", "poor")],
)
def test_bands_begin_at_their_floor(exact: str, word: str) -> None:
    assert band(Fraction(exact)) == word
    assert band(Fraction(0)) == "none"


def scored(texts: list[str], useful: set[str], duplicates: str) -> Fraction:
    sample = Sample(Item("q", "?", "!"), None, ContextSet("response", tuple(map(Context, texts))))
    passages = Passages.of(sample.contexts.contexts)
    verdicts = tuple(Verdict(p.id, p.text in useful) for p in passages.passages)
    judged = Judged(Status.OK, passages, Judgement("hand", verdicts=verdicts), against="reference")
    score = ContextPrecision(duplicates=duplicates).score(sample, judged)  # type: ignore[arg-type]
    assert score.exact is not None
    return score.exact


texts = st.lists(st.sampled_from("abcdef"), min_size=1, max_size=8, unique=True)


@given(texts, st.sets(st.sampled_from("abcdef")), st.data())
def test_with_duplicates_once_a_repeated_context_never_lifts_a_score(
    retrieved: list[str], useful: set[str], data: st.DataObject
) -> None:
    first = data.draw(st.integers(0, len(retrieved) - 1))
    again = data.draw(st.integers(first + 1, len(retrieved)))
    repeated = [*retrieved[:again], retrieved[first], *retrieved[again:]]
    assert scored(repeated, useful, "once") <= scored(retrieved, useful, "once")


@given(texts, st.sets(st.sampled_from("abcdef")))
def test_without_repeats_the_setting_for_duplicates_changes_nothing(retrieved: list[str], useful: set[str]) -> None:
    assert scored(retrieved, useful, "once") == scored(retrieved, useful, "count")


def test_a_repeat_counts_at_each_of_its_ranks_by_default(sample: Callable[..., Sample]) -> None:
    assert scored(["a", "b", "a"], {"a"}, "count") == Fraction(5, 6)
    assert scored(["a", "b", "a"], {"a"}, "once") == 1


@given(st.lists(st.sampled_from(["a", "b", " a ", "c", "ａ", ""]), max_size=8), st.data())
def test_the_judge_sees_the_same_passages_in_whatever_order_they_were_retrieved(
    retrieved: list[str], data: st.DataObject
) -> None:
    shuffled = data.draw(st.permutations(retrieved))
    seen = [(p.id, Context(p.text).key) for p in Passages.of([Context(t) for t in retrieved]).passages]
    assert seen == [(p.id, Context(p.text).key) for p in Passages.of([Context(t) for t in shuffled]).passages]
