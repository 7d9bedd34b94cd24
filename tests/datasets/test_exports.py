"""Files as other tools export them load without a mapping; each is written here to its documented shape."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ragscore.items import Context, Item
from tests.datasets.conftest import Load


def one(load: Load, folder: Path, name: str, content: Any) -> Item:
    text = content if isinstance(content, str) else json.dumps(content, indent=2)
    (folder / name).write_text(text, encoding="utf-8")
    (item,) = load(name).items
    return item


def told(item: Item) -> tuple[str, str | None, str | None, list[str] | None]:
    contexts = None if item.contexts is None else [each.text for each in item.contexts]
    return item.input, item.reference, item.output, contexts


RAGAS = {"user_input": "Q?", "retrieved_contexts": ["a", "b"], "response": "S", "reference": "A", "faithfulness": 0.5}


def test_ragas(load: Load, folder: Path) -> None:
    item = one(load, folder, "v2.jsonl", json.dumps({**RAGAS, "reference_contexts": ["x"]}) + "\n")
    assert told(item) == ("Q?", "A", "S", ["a", "b"])
    assert item.metadata == {"faithfulness": 0.5, "reference_contexts": ["x"]}
    table = "user_input,retrieved_contexts,response,reference,faithfulness\nQ?,\"['a', 'b']\",S,A,0.5\n"
    assert told(one(load, folder, "v2.csv", table)) == ("Q?", "A", "S", ["a", "b"])
    old = {"question": "Q?", "contexts": ["a", "b"], "answer": "S", "ground_truths": ["A"]}
    assert told(one(load, folder, "v1.jsonl", json.dumps(old) + "\n")) == ("Q?", "A", "S", ["a", "b"])


def test_deepeval(load: Load, folder: Path) -> None:
    golden = {"input": "Q?", "actual_output": "S", "expected_output": "A", "retrieval_context": ["a", "b"]}
    item = one(load, folder, "goldens.json", [{**golden, "context": ["ideal"], "source_file": "f.md"}])
    assert told(item) == ("Q?", "A", "S", ["a", "b"])
    assert item.metadata == {"context": ["ideal"], "source_file": "f.md"}
    table = "input,actual_output,expected_output,context,source_file\nQ?,,A,a|b,f.md\n"
    assert told(one(load, folder, "goldens.csv", table)) == ("Q?", "A", None, ["a", "b"])


def test_promptfoo(load: Load, folder: Path) -> None:
    test = {
        "vars": {"query": "Q?", "topic": "tea"},
        "assert": [{"type": "context-recall", "value": "A", "threshold": 0.8}],
    }
    result = {
        "promptIdx": 0,
        "testIdx": 0,
        "vars": {"query": "Q?", "context": "a", "topic": "tea"},
        "response": {"output": "S", "tokenUsage": {}},
        "testCase": test,
        "success": True,
    }
    item = one(load, folder, "out.json", {"evalId": "e", "results": {"version": 3, "prompts": [], "results": [result]}})
    assert told(item) == ("Q?", "A", "S", ["a"])
    assert item.metadata == {"topic": "tea", "testIdx": 0, "promptIdx": 0}
    assert told(one(load, folder, "tests.json", [test])) == ("Q?", "A", None, None)
    assert told(one(load, folder, "out.jsonl", json.dumps(result) + "\n")) == ("Q?", "A", "S", ["a"])


@pytest.mark.parametrize(
    ("expected", "reference"),
    [("A", "A"), ("equals: A", "A"), ("similar(0.8): A", "A"), ("contains: A", None), ("Note: A b", "Note: A b")],
)
def test_promptfoo_tables(load: Load, folder: Path, expected: str, reference: str | None) -> None:
    item = one(load, folder, "tests.csv", f"question,__expected\nQ?,{expected}\n")
    assert told(item) == ("Q?", reference, None, None)
    assert item.metadata["__expected"] == expected


def test_langsmith(load: Load, folder: Path) -> None:
    example = {"id": "e1", "inputs": {"question": "Q?"}, "outputs": {"answer": "A"}, "metadata": {"split": "base"}}
    item = one(load, folder, "examples.jsonl", json.dumps(example) + "\n")
    assert told(item) == ("Q?", "A", None, None)
    assert (item.id, item.metadata) == ("e1", {"split": "base"})
    run = {
        "inputs": {"q": "Q?"},
        "reference_outputs": {"label": "A"},
        "outputs": {"answer": "S", "contexts": ["a", "b"]},
    }
    assert told(one(load, folder, "experiment.json", [run])) == ("Q?", "A", "S", ["a", "b"])
    table = 'id,inputs,outputs\ne1,"{""question"": ""Q?""}","{""answer"": ""A""}"\n'
    assert told(one(load, folder, "examples.csv", table)) == ("Q?", "A", None, None)


def test_phoenix(load: Load, folder: Path) -> None:
    table = "example_id,input_question,output_answer,metadata_topic\nRGF0YQ==,Q?,A,tea\n"
    item = one(load, folder, "dataset.csv", table)
    assert told(item) == ("Q?", "A", None, None)
    assert (item.id, item.metadata) == ("RGF0YQ==", {"topic": "tea"})
    example = {"id": "x1", "input": {"question": "Q?"}, "output": {"answer": "A"}, "metadata": {"topic": "tea"}}
    item = one(load, folder, "dataset.json", {"data": {"dataset_id": "D", "version_id": "V", "examples": [example]}})
    assert (told(item), item.id) == (("Q?", "A", None, None), "x1")
    span = {
        "context.span_id": "s1",
        "attributes.input.value": "Q?",
        "attributes.output.value": "S",
        "attributes.retrieval.documents": [{"document.content": "a", "document.id": "d1", "document.score": 0.5}],
    }
    item = one(load, folder, "spans.jsonl", json.dumps(span) + "\n")
    assert item.contexts == (Context("a", id="d1", score=0.5),)
    assert (item.id, item.input, item.output) == ("s1", "Q?", "S")
