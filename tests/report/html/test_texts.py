"""Long texts are held once, cut only where they must be, and say so."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ragscore.report.html.texts import GAP, LENGTHS, Texts, packed, shortened_around


def test_the_same_text_is_held_once() -> None:
    texts = Texts()
    assert [texts.add(each) for each in ("a", "b", "a", None)] == [0, 1, 0, None]
    assert texts.cut(None) == (["a", "b"], 0)


def test_a_quoted_place_stays_when_the_text_is_cut() -> None:
    texts = Texts()
    whole = "x" * 1_000 + " the needle " + "y" * 1_000
    texts.quote(whole, "the needle")
    (cut,), count = texts.cut(100)
    assert count == 1
    assert "the needle" in cut
    assert cut.startswith("x" * 100 + GAP)
    assert cut.endswith(GAP.rstrip())
    assert len(cut) < 300


@given(st.text(max_size=400), st.integers(1, 100), st.lists(st.text(max_size=20), max_size=3))
def test_what_is_cut_is_never_longer_and_a_short_text_is_whole(text: str, length: int, quotes: list[str]) -> None:
    cut = shortened_around(text, length, quotes)
    assert cut == text or len(cut) <= len(text) + len(GAP)
    if len(text) <= length:
        assert cut == text
    for quote in quotes:
        if quote in text:
            assert quote in cut


def test_texts_are_cut_just_as_far_as_the_budget_asks() -> None:
    texts = Texts()
    noise = random.Random(7)
    for _ in range(50):
        texts.add("".join(noise.choices("abcdefghijklmnopqrstuvwxyz ", k=5_000)))

    def data(made: list[str], length: int | None, cut: int) -> Mapping[str, Any]:
        return {"texts": made}

    whole = packed(texts, data, budget=10_000_000)
    assert (whole.length, whole.cut) == (None, 0)
    tight = packed(texts, data, budget=60_000)
    assert tight.length is not None
    assert tight.cut == 50
    assert len(tight.data) <= 60_000
    longer = LENGTHS[LENGTHS.index(tight.length) - 1]
    assert longer is not None
    made, _ = texts.cut(longer)
    assert sum(map(len, made)) > 60_000, "a longer cut would not have fitted"
