from __future__ import annotations

import logging
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from ragscore.demo import assistant
from ragscore.demo.assistant import Retriever, analyse_v1, analyse_v2, retrieve_v1, retrieve_v2
from ragscore.demo.corpus import chunks
from ragscore.demo.questions import labelled_questions

Retrieve = Callable[[str], list[dict[str, Any]]]


def _hit_rate(retrieve: Retrieve) -> float:
    rows = [row for row in labelled_questions() if row.get("reference_context_ids")]
    hits = [{hit["id"] for hit in retrieve(row["input"])} & set(row["reference_context_ids"]) for row in rows]
    return sum(map(bool, hits)) / len(rows)


def test_v1_finds_a_labelled_chunk_for_most_questions_and_v2_for_clearly_fewer() -> None:
    v1, v2 = _hit_rate(retrieve_v1), _hit_rate(retrieve_v2)
    assert v1 >= 0.85
    assert 0.45 <= v2 <= v1 - 0.2


@pytest.mark.parametrize(("retrieve", "k"), [(retrieve_v1, 5), (retrieve_v2, 3)])
def test_hits_are_chunks_in_rank_order(retrieve: Retrieve, k: int) -> None:
    texts = {chunk.id: chunk.text for chunk in chunks()}
    for row in labelled_questions():
        hits = retrieve(row["input"])
        scores = [hit["score"] for hit in hits]
        assert len(hits) == len({hit["id"] for hit in hits}) <= k
        assert scores == sorted(scores, reverse=True)
        assert all(score > 0 for score in scores)
        assert all(hit["text"] == texts[hit["id"]] and set(hit) == {"id", "text", "score"} for hit in hits)


@pytest.mark.parametrize("retrieve", [retrieve_v1, retrieve_v2])
@pytest.mark.parametrize("question", ["", "?!", "the of and", "qqqqqqqq"])
def test_a_question_without_known_words_has_no_hits(retrieve: Retrieve, question: str) -> None:
    assert retrieve(question) == []


def test_equal_scores_are_ordered_by_id() -> None:
    def same(text: str) -> list[str]:
        return ["same"]

    ids = [hit["id"] for hit in Retriever(same, 10).search("x")]
    assert ids == sorted(chunk.id for chunk in chunks())[:10]


@pytest.mark.parametrize(("analyse", "k"), [(analyse_v1, 5), (analyse_v2, 3)])
def test_eight_threads_at_once_get_what_one_gets(analyse: Callable[[str], list[str]], k: int) -> None:
    questions = [row["input"] for row in labelled_questions()] * 2
    alone = Retriever(analyse, k)
    expected = [alone.search(question) for question in questions]
    shared = Retriever(analyse, k)  # the first questions meet an index that is not yet built
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(shared.search, questions)) == expected


def test_an_index_and_all_questions_take_less_than_two_seconds() -> None:
    questions = [row["input"] for row in labelled_questions()]
    for analyse, k in ((analyse_v1, assistant.K_V1), (analyse_v2, assistant.K_V2)):
        retriever = Retriever(analyse, k)
        began = time.process_time()
        for question in questions:
            retriever.search(question)
        assert time.process_time() - began < 2


def test_the_good_analyser_keeps_identifiers_and_quoted_stop_words() -> None:
    assert analyse_v1("What is `__set_name__` for?") == ["`__set_name__", "__set_name__", "set", "name"]
    assert "`with" in analyse_v1('the "with" statement')
    assert "with" not in analyse_v1("a statement with a block")


def test_the_faulty_analyser_loses_short_words_digits_and_underscores() -> None:
    assert analyse_v2("Which `__eq__` of PEP 572 would del x use, and where?") == ["which", "would", "where"]


def test_importing_the_demo_does_not_import_what_the_index_needs() -> None:
    code = (
        "import sys, ragscore.demo, ragscore.demo.assistant, ragscore.demo.questions;"
        "print(sorted({'bm25s', 'numpy', 'scipy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_building_an_index_says_nothing(capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        Retriever(analyse_v2, 3).search("metaclass")
    assert capfd.readouterr() == ("", "")
    assert caplog.records == []
