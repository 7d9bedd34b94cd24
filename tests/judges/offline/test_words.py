from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragscore.judges.offline.function_words import has_negation
from ragscore.judges.offline.scripts import stem
from ragscore.judges.offline.words import tokens


def keys(text: str, *kinds: str) -> list[str]:
    return [token.keys[0] for token in tokens(text) if not kinds or token.kind in kinds]


def test_letters_go_with_their_combining_marks() -> None:
    assert [token.surface for token in tokens("हिन्दी भाषा")] == ["हिन्दी", "भाषा"]


@pytest.mark.parametrize("text", ["日本の首都", "ภาษาไทย", "대한민국", "ພາສາລາວ", "ភាសាខ្មែរ"])
def test_scripts_without_spaces_are_read_as_pairs_of_characters(text: str) -> None:
    assert keys(text) == [text[at : at + 2] for at in range(len(text) - 1)]


def test_neighbouring_scripts_are_told_apart() -> None:
    assert [token.surface for token in tokens("工程师Carl于1895年")] == ["工程", "程师", "Carl", "于", "1895", "年"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("café", "CAFE"),
        (unicodedata.normalize("NFD", "Ångström"), "ångström"),
        ("ｆｕｌｌ １２３", "full 123"),
        ("don’t", "don't"),
        ("soft\u00adhyphen", "softhyphen"),
        ("مُحَمَّد", "محمد"),
        ("٣٫٥", "3.5"),
        ("२०२०", "2020"),
        ("U.S.", "US"),
        ("1,000", "1 000"),
        ("20%", "20 %"),
        ("$5 million", "$5,000,000"),
        ("19th", "19"),
    ],
)
def test_one_thing_written_in_two_ways_has_the_same_keys(one: str, other: str) -> None:
    def identity(text: str) -> list[tuple[str, str | None]]:
        return [(token.keys[0], token.unit) for token in tokens(text)]

    assert identity(one) == identity(other)


def test_a_superscript_is_not_a_digit_of_its_number() -> None:
    assert keys("10²") == ["#10", "#2"]


def test_identifiers_are_kept_whole_and_emphasis_is_not_one() -> None:
    assert keys("`__getattr__` and _word_ and read_text", "name", "word") == ["__getattr__", "word", "read_text"]


def test_digits_fused_with_letters_make_a_name() -> None:
    assert keys("3D or 4G", "name") == ["3d", "4g"]
    assert keys("5M or $5m or 5 million", "number") == ["#5000000"] * 3


def test_stop_words_in_quotes_are_names() -> None:
    assert keys("The `with` statement", "name") == ["with"]
    assert keys('The "not in" operator', "name") == ["not in", "not in"]
    assert keys("with the statement", "name") == []


def test_capitals_make_names_of_stop_words() -> None:
    assert keys("The US economy", "word") == ["us", "econom"]
    assert keys("Give us time", "word") == ["give", "time"]


def test_units_belong_to_their_numbers() -> None:
    assert [(t.surface, t.unit) for t in tokens("330 metres, 5 kg, 20 to 30 %, €7, −5 °C") if t.kind == "number"] == [
        ("330", "m"),
        ("5", "kg"),
        ("20", "%"),
        ("30", "%"),
        ("7", "€"),
        ("-5", "°c"),
    ]


def test_a_month_beside_a_number_is_as_exact_as_it() -> None:
    assert keys("on 5 June 2019", "number") == ["#5", "#month6", "#2019"]
    assert keys("she may march", "number") == []


def test_endings_do_not_hide_a_word() -> None:
    assert stem("decorators") == stem("decorator")
    assert stem("delegated") == stem("delegating")


@pytest.mark.parametrize(
    "text",
    ["It is not so", "It isn’t so", "Das ist kein Haus", "他不是学生", "먹지 않았다", "यह नहीं है", "это не так"],
)
def test_negation_is_seen_in_several_languages(text: str) -> None:
    assert has_negation(text)


def test_a_text_without_negation_has_none() -> None:
    assert not has_negation("Nottingham knows the notes of November; it is noted.")


@settings(deadline=None)
@given(st.text())
def test_any_text_is_tokenised_and_compatibility_forms_do_not_matter(text: str) -> None:
    assert all(token.keys and all(token.keys) for token in tokens(text))
    assert len(tokens(unicodedata.normalize("NFC", text))) == len(tokens(unicodedata.normalize("NFD", text)))
