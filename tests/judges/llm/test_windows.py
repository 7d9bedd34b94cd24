"""Splitting, merging, and the excerpts of the last look."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ragscore.items import Evidence, Verdict
from ragscore.judges.llm.windows import FENCES, merged, nearest, split
from ragscore.judges.tasks import ELSEWHERE, ONLY_HERE, Claim, Passage


def words(text: str) -> int:
    return len(text.split())


def passages(*texts: str) -> tuple[Passage, ...]:
    return tuple(Passage(f"p{number}", text) for number, text in enumerate(texts, start=1))


@given(st.lists(st.integers(0, 60), max_size=8), st.integers(FENCES + 10, 200), st.none() | st.integers(1, 3))
def test_parts_fit_and_lose_nothing(sizes: list[int], room: int, most: int | None) -> None:
    given_ = passages(*(" ".join(f"w{number}" for number in range(size)) + "." for size in sizes))
    parts = split(given_, tokens=room, most=most, count=words)
    for part in parts:
        assert sum(words(passage.text) + FENCES for passage in part) <= room
        assert most is None or len(part) <= most
    joined: dict[str, list[str]] = {}
    for part in parts:
        for passage in part:
            joined.setdefault(passage.id, []).extend(passage.text.split())
    assert joined == {passage.id: passage.text.split() for passage in given_}


def test_without_limits_there_is_one_part() -> None:
    assert split(passages("a", "b"), tokens=None, most=None, count=words) == [passages("a", "b")]
    assert split((), tokens=None, most=None, count=words) == []


def test_a_long_passage_is_cut_at_sentence_ends_and_keeps_its_id() -> None:
    text = "One two three four. Five six seven eight. Nine ten eleven twelve."
    parts = split(passages(text), tokens=FENCES + 8, most=None, count=words)
    assert [[(p.id, p.text) for p in part] for part in parts] == [
        [("p1", "One two three four. Five six seven eight.")],
        [("p1", "Nine ten eleven twelve.")],
    ]


def test_a_stretch_without_any_space_is_cut_too() -> None:
    parts = split(passages("ไทย" * 400), tokens=FENCES + 100, most=None, count=len)
    assert "".join(passage.text for part in parts for passage in part) == "ไทย" * 400
    assert all(len(passage.text) <= 100 for part in parts for passage in part)


def test_positive_in_any_part_is_positive_and_negative_needs_every_part() -> None:
    parts = [
        (["a", "b", "c", "d"], {"a": Verdict("a", False), "b": Verdict("b", False), "c": Verdict("c", True)}),
        (["a", "b", "d"], {"a": Verdict("a", True), "d": Verdict("d", False)}),
    ]
    assert {id: verdict.positive for id, verdict in merged(parts).items()} == {"a": True, "c": True}


def test_evidence_of_all_positive_parts_is_kept_and_a_text_stated_elsewhere_in_one_part_is_stated() -> None:
    quoted, named, other = Evidence("p1", "in 1889", True), Evidence("p1", "", False), Evidence("p3", "1889", True)
    first = Verdict("c1", True, evidence=(named,), warnings=("w",), label=ONLY_HERE)
    second = Verdict("c1", False, label=ELSEWHERE)
    third = Verdict("c1", True, evidence=(other, quoted), warnings=("w", "v"), label=ONLY_HERE)
    found = merged([(["c1"], {"c1": each}) for each in (first, second, third)])["c1"]
    assert (found.positive, found.evidence, found.warnings) == (True, (other, quoted), ("w", "v"))
    assert found.label == ELSEWHERE


def test_a_map_of_which_a_part_is_missing_is_not_complete() -> None:
    parts = [(["a", "b"], {"a": Verdict("a", True), "b": Verdict("b", True)}), (["a", "b"], {"b": Verdict("b", False)})]
    assert set(merged(parts)) == {"a", "b"}
    assert set(merged(parts, every=True)) == {"b"}


def test_the_nearest_sentences_of_every_passage_are_kept_in_order() -> None:
    found = nearest(
        [Claim("c1", "The tower stands in Paris and is 330 metres tall.")],
        passages("Bananas are yellow. The tower is 330 metres tall.", "Rain fell.", "The tower is in Paris. It rains."),
        tokens=500,
        count=words,
    )
    assert [(p.id, p.text) for p in found] == [
        ("p1", "The tower is 330 metres tall."),
        ("p3", "The tower is in Paris."),
    ]


def test_the_last_look_stays_within_its_tokens() -> None:
    texts = passages(*(f"The tower {number} is tall." for number in range(50)))
    found = nearest([Claim("c1", "The tower is tall.")], texts, tokens=3 * FENCES, count=words)
    assert len(found) == 2


def test_nothing_near_is_nothing() -> None:
    assert nearest([Claim("c1", "Volcano eruption")], passages("Bananas."), tokens=100, count=words) == ()
