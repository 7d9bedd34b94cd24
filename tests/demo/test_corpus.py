from __future__ import annotations

import re
from pathlib import Path
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragscore.demo import corpus
from ragscore.demo.corpus import CEILING, LEAST, MOST, Chunk, chunked, chunks, resolve


def test_ids_and_texts_are_unique() -> None:
    found = chunks()
    assert len({chunk.id for chunk in found}) == len(found)
    assert len({chunk.text for chunk in found}) == len(found)


def test_there_are_enough_chunks_of_a_telling_size() -> None:
    sizes = [len(chunk.text) for chunk in chunks()]
    assert len(sizes) > 450
    assert LEAST <= median(sizes) <= MOST
    assert sum(size <= 1.1 * MOST for size in sizes) >= 0.9 * len(sizes)
    assert sum(size > CEILING for size in sizes) <= 5
    assert min(sizes) > 60


def test_a_chunk_says_what_it_is_about_and_where_it_comes_from() -> None:
    for chunk in chunks():
        assert chunk.text.startswith(chunk.heading + "\n")
        assert chunk.id.startswith(chunk.topic + "#")
        assert re.fullmatch(r"[a-z-]+#[a-z0-9-]+(/\w[\w-]*)?", chunk.id), chunk.id


def test_prose_is_not_cut_within_a_sentence() -> None:
    unfinished = [
        chunk.id
        for chunk in chunks()
        if re.search(r"[a-z]{2} [a-z]+$", last := chunk.text.splitlines()[-1]) and len(last) > 100
    ]
    assert len(unfinished) <= 3, unfinished


def test_what_several_topics_repeat_belongs_to_the_shortest_of_them() -> None:
    owners = [chunk.topic for chunk in chunks() if "A rich comparison method may return the singleton" in chunk.text]
    assert owners == ["customization"]


def test_a_section_is_cut_the_same_way_in_the_topic_that_contains_it() -> None:
    from pydoc_data.topics import topics

    alone = {chunk.id for chunk in chunked({"try": topics["try"]})}
    assert alone <= {chunk.id for chunk in chunks()}


def test_code_stays_with_the_paragraph_that_introduces_it() -> None:
    (chunk,) = chunked({"t": "Title\n*****\n\nLike this:\n\n   first = 1\n\n   second = 2\n\nAnd so on.\n"})
    assert chunk == Chunk("t#title", "t", "Title", "Title\nLike this:\n   first = 1\n   second = 2\nAnd so on.")


def test_a_definition_keeps_its_signature_and_unwraps_its_lines() -> None:
    (chunk,) = chunked({"t": "Title\n=====\n\nobject.__x__(self)\n\n   Called when\n   it matters.\n"})
    assert chunk.text == "Title\nobject.__x__(self)\nCalled when it matters."


_words = st.lists(st.sampled_from(("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta")), min_size=8)
_paragraphs = st.lists(
    _words.map(lambda words: " ".join(words).capitalize() + "."), min_size=1, max_size=40, unique=True
)


@given(_paragraphs)
def test_no_paragraph_is_lost_or_said_twice(paragraphs: list[str]) -> None:
    found = chunked({"t": "Title\n*****\n\n" + "\n\n".join(paragraphs) + "\n"})
    said = [line for chunk in found for line in chunk.text.splitlines()[1:]]
    assert sorted(" ".join(said).split()) == sorted(" ".join(paragraphs).split())
    assert all(len(chunk.text) <= MOST + corpus.CRUMB + 10 for chunk in found)


def test_an_added_paragraph_leaves_most_ids_as_they_are() -> None:
    from pydoc_data.topics import topics

    before = {chunk.id for chunk in chunks()}
    edited = topics["typesseq"].replace("\n\n", "\n\nA later release added this sentence here.\n\n", 3)
    after = {chunk.id for chunk in chunked({**topics, "typesseq": edited})}
    assert len(before - after) <= 3


def test_a_label_finds_the_paragraph_that_it_is_named_after() -> None:
    one, two = (
        Chunk("t#title", "t", "Title", "Title\nFirst words of it all.\nThe second paragraph starts here."),
        Chunk("t#other", "t", "Other", "Other\nNothing."),
    )
    assert resolve("t#other", (one, two)) == "t#other"
    assert resolve("t#title/the-second-paragraph-starts-here", (one, two)) == "t#title"
    assert resolve("t#title/no-such-words", (one, two)) is None
    assert resolve("t#gone", (one, two)) is None


def test_the_corpus_needs_the_standard_library_only() -> None:
    source = Path(corpus.__file__).read_text("utf-8")
    imported = set(re.findall(r"^\s*(?:from|import) (\w+)", source, re.MULTILINE))
    assert imported <= {"__future__", "re", "collections", "dataclasses", "functools", "hashlib", "itertools"} | {
        "pydoc_data"
    }


@pytest.mark.parametrize("text", ["", "\n\n", "Title\n*****\n"])
def test_a_topic_without_text_has_no_chunks(text: str) -> None:
    assert chunked({"t": text}) == ()
