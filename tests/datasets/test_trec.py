"""BEIR folders and TREC files: ids as references, grades kept, runs as contexts in trec_eval's order."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tests.datasets.conftest import Load, Refused, write_jsonl

QRELS = "query-id\tcorpus-id\tscore\n1\td1\t1\n1\td2\t2\n1\td3\t0\n2\td3\t0\n"
RUN = "1 Q0 d3 1 9.5 bm25\n1 Q0 d1 2 1e1 bm25\n1 Q0 d4 3 9.5 bm25\n2\tQ0\td2  1 1.5 bm25\n"


@pytest.fixture
def beir(folder: Path) -> Path:
    path = folder / "beir"
    (path / "qrels").mkdir(parents=True)
    corpus = [("d1", "Title", "one"), ("d2", "", "two"), ("d3", "", "three")]
    write_jsonl(path / "corpus.jsonl", [{"_id": each, "title": title, "text": text} for each, title, text in corpus])
    queries = [{"_id": "2", "text": "second?", "metadata": {"lang": "en"}}, {"_id": "1", "text": "007", "metadata": {}}]
    write_jsonl(path / "queries.jsonl", [*queries, {"_id": "3", "text": "for training?"}])
    (path / "qrels" / "test.tsv").write_text(QRELS, encoding="utf-8")
    (path / "qrels" / "train.tsv").write_text("query-id\tcorpus-id\tscore\n3\td1\t1\n", encoding="utf-8")
    return path


@pytest.mark.usefixtures("beir")
def test_a_beir_folder_gives_its_judged_queries_with_ids_best_first_and_grades(load: Load) -> None:
    second, first = load("beir").items
    assert (first.id, first.input, first.reference) == ("1", "007", None)
    assert first.reference_context_ids == ("d2", "d1")
    assert first.metadata == {"relevance": {"d1": 1, "d2": 2, "d3": 0}}
    assert (second.reference_context_ids, second.metadata) == ((), {"relevance": {"d3": 0}, "lang": "en"})


@pytest.mark.usefixtures("beir")
def test_another_split_is_named(load: Load, refused: Refused) -> None:
    assert [item.id for item in load("beir", split="train").items] == ["3"]
    assert refused("beir", split="dev") == "beir: has no split 'dev' — name one with `split:`; there are: test, train"


@pytest.mark.usefixtures("beir")
def test_a_run_gives_contexts_by_score_then_id_descending_with_texts_of_the_corpus(load: Load, folder: Path) -> None:
    (folder / "bm25.run").write_text(RUN, encoding="utf-8")
    second, first = load("beir", run="bm25.run").items
    assert [(c.id, c.text, c.score) for c in first.contexts or ()] == [
        ("d1", "Title\none", 10.0),
        ("d4", "d4", 9.5),
        ("d3", "three", 9.5),
    ]
    assert [c.text for c in second.contexts or ()] == ["two"]


def test_a_run_or_qrels_alone_stand_for_themselves(load: Load, folder: Path) -> None:
    (folder / "bm25.run").write_text(RUN, encoding="utf-8")
    first, second = load("bm25.run").items
    assert (first.id, first.input, [c.id for c in first.contexts or ()]) == ("1", "1", ["d1", "d4", "d3"])
    assert second.input == "2"
    (folder / "judged.qrels").write_text("9 0 d1 1\n9 0 d2 -1\n", encoding="utf-8")
    (item,) = load("judged.qrels").items
    assert (item.reference_context_ids, item.metadata["relevance"]) == (("d1",), {"d1": 1, "d2": -1})


def test_topics_qrels_and_run_are_put_together(load: Load, folder: Path) -> None:
    (folder / "topics.tsv").write_text('qid\ttext\n1\tsays "hello"\n2\tsecond\n', encoding="utf-8")
    (folder / "judged.txt").write_text("1 0 d1 1\n\n", encoding="utf-8")
    (folder / "bm25.run").write_text(RUN, encoding="utf-8")
    (item,) = load(queries="topics.tsv", qrels="judged.txt", run="bm25.run").items
    assert (item.input, item.reference_context_ids) == ('says "hello"', ("d1",))
    assert len(item.contexts or ()) == 3


def test_faulty_lines_are_named_all_at_once(refused: Refused, folder: Path) -> None:
    (folder / "bad.run").write_text("1 Q0 d3 1 9.5\n\n1 Q0 d1 2 high bm25\n1 Q0 d1 2 nan bm25\n", encoding="utf-8")
    assert [line.partition(": 1 ")[0] for line in refused("bad.run").splitlines()] == [
        "bad.run:1: is not `query Q0 document rank score tag`",
        "bad.run:3: is not `query Q0 document rank score tag`",
        "bad.run:4: is not `query Q0 document rank score tag`",
    ]
    (folder / "twice.run").write_text("1 Q0 d1 1 3 x\n1 Q0 d1 2 2 x\n", encoding="utf-8")
    assert refused("twice.run") == "twice.run:2: d1 stands twice for query 1 — remove one"
    (folder / "bad.qrels").write_text("1 0 d1 good\n", encoding="utf-8")
    assert refused("bad.qrels").startswith("bad.qrels:1: is not `query 0 document grade`: 1 0 d1 good")
    (folder / "half.qrels").write_text("1 0 d1 1.0\n1 0 d2 0.5\n", encoding="utf-8")
    assert refused("half.qrels").startswith("half.qrels:2: is not `query 0 document grade`: 1 0 d2 0.5")


def test_qrels_for_queries_that_are_not_there_are_an_error(beir: Path, refused: Refused) -> None:
    (beir / "qrels" / "test.tsv").write_text(QRELS + "77\td1\t1\n", encoding="utf-8")
    assert "judges queries that queries.jsonl does not hold: 77" in refused("beir")


def test_several_runs_in_a_folder_have_to_be_chosen_from(beir: Path, refused: Refused) -> None:
    for name in ("a.run", "b.run"):
        (beir / name).write_text(RUN, encoding="utf-8")
    assert refused("beir") == "beir: holds several runs — name one with `run:`; there are: a.run, b.run"


def test_ids_of_documents_below_a_header_with_tabs_may_hold_spaces(beir: Path, load: Load) -> None:
    (beir / "qrels" / "test.tsv").write_bytes(b"query-id\tcorpus-id\tscore\r\n1\treturn policy.md\t2\r\n1\td1\t1\r\n")
    assert load("beir").items[0].reference_context_ids == ("return policy.md", "d1")


def test_runs_and_qrels_may_be_gzipped(load: Load, refused: Refused, folder: Path) -> None:
    (folder / "bm25.run.gz").write_bytes(gzip.compress(RUN.encode()))
    (folder / "judged.qrels.gz").write_bytes(gzip.compress(b"1 0 d1 1\n"))
    first, _ = load("bm25.run.gz").items
    assert [c.id for c in first.contexts or ()] == ["d1", "d4", "d3"]
    assert load("judged.qrels.gz").items[0].reference_context_ids == ("d1",)
    (folder / "cut.run.gz").write_bytes(gzip.compress(RUN.encode())[:-9])
    assert refused("cut.run.gz") == "cut.run.gz: is cut off — compress the file again"
