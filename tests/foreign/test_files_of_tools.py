"""Files that the tools themselves wrote (`files/README.md` says which version, and how), read by ours."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from ragscore.datasets import load_dataset
from ragscore.foreign import read_results
from ragscore.items import Item
from ragscore.suite import DatasetPart

FILES = Path(__file__).parent / "files"
TEA = ("What is tea?", "Tea is a drink.", "A drink.", ["Tea is a drink.", "It rains."])
MATE = ("What is mate?", "Mate is a drink.", "No idea.", ["It rains."])


def items(name: str) -> list[Item]:
    return list(load_dataset(DatasetPart(path=name), base_dir=FILES).items)


def told(item: Item) -> tuple[str, str | None, str | None, list[str] | None]:
    contexts = None if item.contexts is None else [each.text for each in item.contexts]
    return item.input, item.reference, item.output, contexts


@pytest.mark.parametrize("name", ["deepeval/test_run.json", "deepeval/evaluation_result.json"])
def test_deepeval_results_are_read_as_scores_and_as_a_dataset(name: str) -> None:
    results = read_results(FILES / name)
    assert (results.tool, list(results.skipped)) == ("deepeval", [])
    assert [{key: score.exact for key, score in each.scores.items()} for each in results.items] == [
        {"context_recall": Fraction(1), "faithfulness": Fraction(3, 4)},
        {"context_recall": Fraction(1, 4), "faithfulness": None},
    ]
    assert results.items[1].scores["faithfulness"].reason == "ValueError: the judge gave no JSON"
    assert [told(item) for item in items(name)] == [TEA, MATE]


@pytest.mark.parametrize("name", ["goldens.csv", "goldens.json", "goldens.jsonl"])
def test_deepeval_goldens_have_their_contexts_in_every_format(name: str) -> None:
    (item,) = items(f"deepeval/{name}")
    assert told(item) == (*TEA[:3], ["It rains.", "Tea is hot."])
    assert item.metadata["source_file"] == "drinks.md"


def test_langsmith_examples() -> None:
    (item,) = items("langsmith/examples.jsonl")
    assert told(item) == (*TEA[:2], None, None)
    assert item.id == "00000000-0000-0000-0000-000000000001"


@pytest.mark.parametrize("name", ["experiment.csv", "experiment.jsonl"])
def test_a_langsmith_experiment_keeps_the_ids_of_its_examples(name: str) -> None:
    found = items(f"langsmith/{name}")
    assert [told(item) for item in found] == [TEA, MATE]
    assert [item.id[-2:] for item in found] == ["01", "03"]
    assert float(found[1].metadata["feedback.correctness"]) == 0.25


@pytest.mark.parametrize("name", ["dataset.json", "dataframe.csv", "dataframe.jsonl"])
def test_phoenix_datasets(name: str) -> None:
    tea, mate = items(f"phoenix/{name}")
    assert told(tea) == (*TEA[:2], None, None)
    assert (tea.id, tea.metadata["topic"]) == ("RGF0YXNldDox", "tea")
    assert (told(mate), mate.id) == ((*MATE[:2], None, None), "RGF0YXNldDoz")


@pytest.mark.parametrize("name", ["results.json", "results.jsonl", "results.csv"])
def test_promptfoo_results_in_every_format(name: str) -> None:
    results = read_results(FILES / "promptfoo" / name)
    assert (results.tool, list(results.skipped)) == ("promptfoo", [])
    tea, mate = ({key: score.exact for key, score in each.scores.items()} for each in results.items)
    assert (tea["correct"], tea["context_recall"], mate) == (Fraction(1), Fraction(3, 4), {"correct": Fraction(0)})
    assert [each.row["input"] for each in results.items] == [TEA[0], MATE[0]]
    assert [each.row["output"] for each in results.items] == [TEA[2], MATE[2]]
    assert [each.row["contexts"] for each in results.items] == [["Tea is a drink."], ["It rains."]]


@pytest.mark.parametrize("name", ["results.json", "results.jsonl"])
def test_promptfoo_results_as_a_dataset(name: str) -> None:
    assert [told(item) for item in items(f"promptfoo/{name}")] == [
        ("What is tea?", "A drink.", "A drink.", ["Tea is a drink."]),  # what `equals` expects is the reference
        ("What is mate?", "Mate is a drink.", "No idea.", ["It rains."]),
    ]


@pytest.mark.parametrize("name", ["results.csv", "results.json", "results.jsonl", "records.json"])
def test_ragas_results_in_every_format(name: str) -> None:
    results = read_results(FILES / "ragas" / name)
    assert (results.tool, list(results.skipped)) == ("ragas", [])
    assert [{key: score.exact for key, score in each.scores.items()} for each in results.items] == [
        {"context_recall": Fraction(1), "context_precision": Fraction(9999999999, 10000000000)},
        {"context_recall": Fraction(1, 4), "context_precision": None},
    ]
    assert [each.row["contexts"] for each in results.items] == [TEA[3], MATE[3]]


@pytest.mark.parametrize("name", ["dataset.csv", "dataset.jsonl", "results.csv", "results.jsonl", "records.json"])
def test_ragas_datasets(name: str) -> None:
    assert [told(item) for item in items(f"ragas/{name}")] == [TEA, MATE]


def test_mlflow_grades_of_1_to_5_keep_their_scale() -> None:
    results = read_results(FILES / "mlflow" / "eval_results_table.json")
    assert (results.tool, list(results.skipped)) == ("mlflow", [])
    scores = [each.scores["faithfulness"] for each in results.items]
    assert [(score.exact, score.scale, score.reason) for score in scores] == [
        (Fraction(4, 5), Fraction(5), "mostly"),
        (Fraction(1, 5), Fraction(5), "no"),
    ]
    assert [(each.row["input"], each.row["reference"], each.row["output"], each.row["contexts"]) for each in
            results.items] == [TEA, MATE]  # fmt: skip
