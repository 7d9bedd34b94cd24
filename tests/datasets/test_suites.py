"""Datasets in suites: what the YAML may say, and that a text reaches the scorers and the history as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragscore.errors import SuiteError
from ragscore.suite import DatasetPart
from ragscore.suite_file import read_suite
from tests.workspace import Workspace

TEXTS = ["2024-01-01", "007", "1e5", "null", "NaN"]


@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl"])
def test_a_text_that_looks_like_something_else_reaches_scorer_and_history_as_it_is(
    workspace: Workspace, kind: str
) -> None:
    import duckdb

    path = workspace.folder / f"labels.{kind}"
    rows = ", ".join(f"('i{n}', 'What about tea {n}?', '{text}')" for n, text in enumerate(TEXTS))
    with duckdb.connect() as connection:
        option = "json" if kind == "jsonl" else kind
        connection.execute(f"COPY (FROM (VALUES {rows}) t(id, question, ground_truth)) TO '{path}' (FORMAT {option})")
    workspace.write_suite(dataset=path.name, target={"python": "drinks:retrieve"})
    done = workspace.ragscore("run", "suite.yaml", "--engine", "local")
    assert done.returncode in (0, 3), done.stderr
    assert [row[0] for row in workspace.sql("SELECT reference FROM items ORDER BY item_id")] == TEXTS
    claims = workspace.sql("SELECT DISTINCT text FROM verdicts WHERE scorer = 'context_recall' AND kind = 'claim'")
    assert {row[0] for row in claims} <= set(TEXTS)


def test_a_suite_may_name_each_kind_of_source(workspace: Workspace) -> None:
    workspace.write_items([{"id": "a", "input": "What about tea?", "reference": "Tea is made from leaves."}])
    for dataset in (
        {"path": "questions.jsonl", "limit": 1},
        {"sql": "SELECT * FROM 'questions.jsonl'"},
        {"path": "questions.jsonl", "where": "id = 'a'"},
    ):
        workspace.write_suite(dataset=dataset)
        done = workspace.ragscore("run", "suite.yaml", "--engine", "local")
        assert done.returncode == 0, done.stdout + done.stderr
    assert len(workspace.sql("SELECT * FROM runs WHERE dataset_hash = (SELECT dataset_hash FROM runs LIMIT 1)")) == 3


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("{limit: 3}", "name a source: path, python, sql or plugin"),
        ("{python: 'a:b', path: x.csv}", "`python` yields the rows itself; name no other source beside it"),
        ("{path: x.csv, limt: 3}", "unknown key `limt` — did you mean `limit`?"),
        ("{path: x.csv, sample: 0}", "0 is out of range"),
        ("{path: x.csv, references: all}", "'all' is not known here"),
        ("{path: x.csv, columns: {question: q}}", "'question' is not known here"),
    ],
)
def test_what_is_wrong_with_the_part_is_said_with_its_line(tmp_path: Path, written: str, said: str) -> None:
    path = tmp_path / "suite.yaml"
    path.write_text(f"name: d\ntarget: {{python: 'a:b'}}\ndataset: {written}\n", encoding="utf-8")
    with pytest.raises(SuiteError) as caught:
        read_suite(path)
    assert f"{path}:3: dataset" in str(caught.value)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("part", "described", "beside"),
    [
        ({"path": "data/q.csv"}, "data/q.csv", "data/q.csv"),
        ({"path": "data/*.csv"}, "data/*.csv", "data/_.csv"),
        ({"path": "https://u:secret@host/q.csv?key=secret"}, "https://host/q.csv", "q.csv-key-secret"),
        ({"python": "labels:rows"}, "python:labels:rows", "python-labels-rows"),
        ({"sql": "SELECT  1\n AS a"}, "sql:SELECT 1 AS a", "sql-SELECT-1-AS-a"),
    ],
)
def test_a_dataset_has_a_name_for_the_history_and_a_place_beside_it(
    part: dict[str, str], described: str, beside: str
) -> None:
    made = DatasetPart.model_validate(part)
    assert (made.described, made.beside) == (described, beside)


def test_a_faulty_dataset_is_exit_2_with_all_its_faults(workspace: Workspace) -> None:
    (workspace.folder / "labels.csv").write_text("input,answerable\n,\nq,maybe\n", encoding="utf-8")
    workspace.write_suite(dataset="labels.csv")
    done = workspace.ragscore("run", "suite.yaml", "--engine", "local")
    assert done.returncode == 2
    assert "labels.csv: row 1: input: is missing or empty" in done.stdout + done.stderr
    assert "labels.csv: row 2: answerable: is 'maybe'" in done.stdout + done.stderr
    assert not workspace.history.exists()
