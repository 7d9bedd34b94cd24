"""Sheets for people: written from a run, corrected, read again, and what is wrong in them."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from ragscore.calibration import Label, labels_hash, read_labels, write_labels
from ragscore.errors import DatasetError
from tests.workspace import Workspace

LABELS = [
    Label("claim", "=1+1 is two", human=True, verdict=False, question="Sum?", contexts=("a, b", 'say "c"\nnext')),
    Label("context", "'quoted' text; ünï", human=None, verdict=True, expected="an answer", confidence=0.25),
    Label("claim", "- a dash", human=False, item_id="q1", chosen="random", judge="j", prompt_version="p", note="why"),
]


@pytest.mark.parametrize("name", ["sheet.csv", "sheet.jsonl"])
def test_a_sheet_is_read_as_it_was_written(tmp_path: Path, name: str) -> None:
    write_labels(LABELS, tmp_path / name)
    assert read_labels(tmp_path / name) == LABELS


def test_a_cell_that_a_spreadsheet_would_run_is_defused(tmp_path: Path) -> None:
    write_labels(LABELS, tmp_path / "sheet.csv")
    with (tmp_path / "sheet.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["text"][:1] for row in rows] == ["'", "'", "'"]
    assert next(iter(rows[0])) == "human"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"kind": "claim", "text": "x", "human": "perhaps"}', ":1: human: 'perhaps' is not yes or no"),
        ('{"kind": "fact", "text": "x", "human": "yes"}', ":1: kind: 'fact' is not claim or context"),
        ('{"kind": "claim", "text": " ", "human": "yes"}', ":1: text: the claim has no text"),
        ('{"kind": "claim", "text": "x", "contexts": [1]}', ":1: contexts: is not a list of texts"),
        ('{"kind": "claim", "text": "x", "confidence": "high"}', ":1: confidence: 'high' is not a number"),
        ("{", ":1: is not JSON"),
        ("[]", ":1: is not an object"),
        ("", "holds no row"),
    ],
)
def test_a_wrong_row_is_named_with_its_field(tmp_path: Path, line: str, said: str) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_text(line, encoding="utf-8")
    with pytest.raises(DatasetError) as caught:
        read_labels(path)
    assert said in str(caught.value)


@pytest.mark.parametrize(("written", "human"), [("YES", True), (" no ", False), ("", None), ("1", True), ("0", False)])
def test_yes_and_no_are_read_as_people_write_them(tmp_path: Path, written: str, human: bool | None) -> None:
    path = tmp_path / "labels.csv"
    path.write_text(f"kind,text,human\nclaim,x,{written}\n", encoding="utf-8")
    assert read_labels(path)[0].human is human


def test_the_hash_of_labels_is_about_what_people_say(tmp_path: Path) -> None:
    assert labels_hash(LABELS) == labels_hash(reversed(LABELS)) == labels_hash([LABELS[0], LABELS[2]])
    assert labels_hash(LABELS) != labels_hash(LABELS[:1])


def test_the_verdicts_of_a_run_become_a_sheet_half_of_them_doubtful(workspace: Workspace) -> None:
    workspace.ragscore("run", "suite.yaml")
    done = workspace.ragscore("label", "last", "--output", "sheet.csv", "--sample", "10")
    assert done.returncode == 0, done.stderr
    assert "10 verdicts of run" in done.stdout
    labels = read_labels(workspace.folder / "sheet.csv")
    assert [label.chosen for label in labels].count("random") == 5
    assert all(label.human is None and label.verdict is not None and label.question for label in labels)
    assert all(label.contexts if label.kind == "claim" else label.expected for label in labels)
    again = workspace.ragscore("label", "last", "--output", "sheet.csv")
    assert (again.returncode, "is there already" in again.stderr) == (2, True)


def test_a_sheet_asks_what_a_judge_decided_and_can_be_read_whatever_else_the_suite_scores(workspace: Workspace) -> None:
    contexts = [{"id": "1", "text": "Lamps can be returned within 30 days of purchase."}, {"id": "2", "text": "Ropes."}]
    told = {"input": "How long?", "reference": "Lamps can be returned within 30 days.", "reference_context_ids": ["1"]}
    told["output"] = "Lamps can be returned. They are red."
    workspace.write_items([{"id": "a", **told, "contexts": contexts}, {"id": "none", **told, "contexts": []}])
    scorers = ["context_recall", "faithfulness", "hallucination", "context_entities_recall", "answer_similarity", "mrr"]
    workspace.write_suite(
        scorers=scorers, target={"retriever": "r", "version": "v", "none": True}, contexts={"item": True}
    )
    workspace.ragscore("run", "suite.yaml")
    done = workspace.ragscore("label", "last", "--output", "sheet.jsonl")
    assert done.returncode == 0, done.stderr
    labels = read_labels(workspace.folder / "sheet.jsonl")
    assert sorted((label.item_id, label.kind, label.text) for label in labels) == [
        ("a", "claim", "Lamps can be returned within 30 days."),
        ("a", "claim", "Lamps can be returned."),
        ("a", "claim", "They are red."),
    ]
    assert {label.contexts for label in labels} == {tuple(context["text"] for context in contexts)}
    workspace.write_suite(
        scorers=["mrr"], target={"retriever": "r", "version": "v", "none": True}, contexts={"item": True}
    )
    workspace.ragscore("run", "suite.yaml")
    done = workspace.ragscore("label", "last", "--output", "ranks.jsonl")
    assert (done.returncode, "has no verdicts of a judge" in done.stderr) == (2, True)


def test_a_corrected_sheet_is_calibrated_without_asking_a_judge(workspace: Workspace) -> None:
    workspace.ragscore("run", "suite.yaml")
    shown = json.loads(workspace.ragscore("label", "--output", "sheet.jsonl", "--json").stdout)
    assert shown["rows"] == 16
    empty = workspace.ragscore("calibrate", "sheet.jsonl")
    assert (empty.returncode, "no row has both" in empty.stderr) == (2, True)
    labels = [json.loads(line) for line in (workspace.folder / "sheet.jsonl").read_text("utf-8").splitlines()]
    wrong = next(label for label in labels if label["kind"] == "claim")
    for label in labels:
        label["human"] = "no" if label is wrong else label["verdict"]
    lines = "".join(json.dumps(label) + "\n" for label in labels)
    (workspace.folder / "sheet.jsonl").write_text(lines, encoding="utf-8")
    done = workspace.ragscore("calibrate", "sheet.jsonl")
    assert done.returncode == 0, done.stderr
    assert "offline-lexical-1 against people: claims" in done.stdout
    assert "people: not supported; judge: supported" in done.stdout
    assert "chosen because the judge was in doubt" in done.stdout


def canary(workspace: Workspace, wrong: int) -> str:
    """20 labels with verdicts of one judge, `wrong` of which people see otherwise."""
    rows = [
        {
            "kind": "claim",
            "text": f"fact {number}",
            "human": number % 2,
            "verdict": (number % 2) ^ (number < wrong),
            "judge": "model-x",
        }
        for number in range(20)
    ]
    (workspace.folder / "canary.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    done = workspace.ragscore("calibrate", "canary.jsonl", "--exit-code")
    assert done.returncode in (0, 1), done.stderr
    return f"{done.returncode} {done.stdout}"


def test_a_judge_whose_agreement_fell_is_flagged(workspace: Workspace) -> None:
    first = canary(workspace, wrong=2)
    assert first.startswith("0 ")
    assert "drift" not in first
    same = canary(workspace, wrong=3)
    assert same.startswith("0 ")
    assert "no drift since" in same
    assert "20 labels judged both times: 1 told right then and wrong now, 0 the other way" in same
    fell = canary(workspace, wrong=9)
    assert fell.startswith("1 ")
    assert "! drift: agreement fell since" in fell
    assert workspace.sql("select drifted from calibrations order by created_at") == [(None,), (False,), (True,)]
