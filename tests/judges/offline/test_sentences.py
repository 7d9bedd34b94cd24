from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragscore.judges.offline.sentences import LONGEST, claims, spans


def sentences(text: str) -> list[str]:
    return [text[start:end] for start, end in spans(text)]


@pytest.mark.parametrize(
    "text",
    [
        "Dr. Smith met Mrs. Jones.",
        "J. R. R. Tolkien wrote it.",
        "It measures 1.5 km and costs 3.20 euros.",
        "He lives at No. 5, e.g. near St. Paul.",
        "The U.S. Army moved in.",
        "Am 6. Oktober 1973 begann der Krieg.",
        "Bring pens, paper etc. and a ruler.",
        '"Why?" he asked.',
        "See Fig. 3 and pp. 4 to 6.",
        "1. Open the lid",
        "This line was wrapped at some width because it\nwas too long for the page.",
        "Wait... what happened?",
    ],
)
def test_what_does_not_end_a_sentence(text: str) -> None:
    assert sentences(text) == [text]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("He died in 1879. The war went on.", ["He died in 1879.", "The war went on."]),
        ("It was good (very good.) Then it ended.", ["It was good (very good.)", "Then it ended."]),
        ("She moved to the U.S. The war went on.", ["She moved to the U.S.", "The war went on."]),
        ("It has vitamin C. The rest is water.", ["It has vitamin C.", "The rest is water."]),
        ("all lower case. nothing else.", ["all lower case.", "nothing else."]),
        ("他是学生。她也是！", ["他是学生。", "她也是！"]),
        ("यह सच है। वह नहीं।", ["यह सच है।", "वह नहीं।"]),
        ("هل هذا صحيح؟ نعم.", ["هل هذا صحيح؟", "نعم."]),
        ("Heading\n\nText follows", ["Heading", "Text follows"]),
        ("We need:\n- a pen\n- paper", ["We need:", "- a pen", "- paper"]),
        ("1. Open it\n2. Close it", ["1. Open it", "2. Close it"]),
        ("Windows, line one.\r\n\r\nLine two.", ["Windows, line one.", "Line two."]),
    ],
)
def test_what_ends_a_sentence(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("", ()),
        (" \n\t ", ()),
        ("... !!! —", ()),
        ("It floats; it is red.", ("It floats", "it is red.")),
        ("Use it (a; b) &amp; go.", ("Use it (a; b) &amp; go.",)),
        ("Steps:\n1. Open it.\n2) Close it.\n* Go", ("Steps:", "Open it.", "Close it.", "Go")),
        ("It is red [1]. It floats.[2, 3]", ("It is red.", "It floats.")),
        ("`a[1]` is the second.", ("`a[1]` is the second.",)),
        ("It is red. It is red. IT IS RED!", ("It is red.",)),
        ("It was\n   wrapped here.", ("It was wrapped here.",)),
    ],
)
def test_claims_of_a_reference(reference: str, expected: tuple[str, ...]) -> None:
    assert claims(reference) == expected


@settings(deadline=None)
@given(st.text())
def test_spans_are_in_order_and_lose_nothing_but_white_space(text: str) -> None:
    found = spans(text)
    assert found == sorted(found)
    assert all(0 < end - start <= LONGEST for start, end in found)
    assert all(first[1] <= second[0] for first, second in pairwise(found))
    assert "".join("".join(text[start:end] for start, end in found).split()) == "".join(text.split())


def test_a_page_without_full_stops_is_not_one_sentence() -> None:
    pieces = sentences("word " * 1000)
    assert len(pieces) > 5
    assert max(map(len, pieces)) <= LONGEST
