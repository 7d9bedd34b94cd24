"""Agreement with people: held against scikit-learn, on tables and on the human-labelled data."""

from __future__ import annotations

import asyncio
import json
import warnings
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics

from ragscore.calibration import agreement_of
from ragscore.judges.offline import OfflineJudge
from ragscore.judges.tasks import AttributeClaims, Claim, Passage, RateContexts
from ragscore.stats import wilson
from tests.workspace import Workspace


def by_scikit_learn(human: list[bool], judge: list[bool]) -> dict[str, float]:
    tn, fp, fn, tp = metrics.confusion_matrix(human, judge, labels=[False, True]).ravel()
    return {
        "true_positive": tp,
        "false_positive": fp,
        "false_negative": fn,
        "true_negative": tn,
        "balanced_accuracy": metrics.balanced_accuracy_score(human, judge),
        "kappa": metrics.cohen_kappa_score(human, judge),
        "mcc": metrics.matthews_corrcoef(human, judge),
        "precision": metrics.precision_score(human, judge),
        "recall": metrics.recall_score(human, judge),
        "specificity": metrics.recall_score(human, judge, pos_label=False),
    }


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60))
@settings(max_examples=50, deadline=None)
def test_every_figure_is_scikit_learns_or_unknown(pairs: list[tuple[bool, bool]]) -> None:
    found = agreement_of(pairs).as_dict()
    human, judge = [each for each, _ in pairs], [each for _, each in pairs]
    determined = len(set(human)) == 2 and len(set(judge)) == 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = by_scikit_learn(human, judge)
    for name, value in expected.items():
        if determined:
            assert found[name] == pytest.approx(value)
        else:
            assert found[name] is None or found[name] == pytest.approx(value)


def test_what_the_table_does_not_determine_is_unknown_and_never_0() -> None:
    found = agreement_of([(True, True)] * 5)
    assert found.figures == {
        "balanced_accuracy": None,
        "kappa": None,
        "mcc": None,
        "precision": 1.0,
        "recall": 1.0,
        "specificity": None,
    }
    assert agreement_of([]).n == 0


def test_intervals_hold_the_figures_shares_are_wilsons_and_clusters_widen_them() -> None:
    pairs = ([(True, True)] * 9 + [(False, False)] * 7 + [(True, False)] * 3 + [(False, True)]) * 6
    alone = agreement_of(pairs)
    figures = alone.figures
    for name, interval in alone.intervals.items():
        value = figures[name]
        assert value is not None
        assert interval.low < value < interval.high
    assert alone.intervals["recall"] == wilson(54, 72)
    by_kind = sorted(pairs)
    one, many = agreement_of(by_kind), agreement_of(by_kind, clusters=[at // 6 for at in range(len(by_kind))])
    assert many.intervals["kappa"].low < one.intervals["kappa"].low
    assert many.intervals["kappa"].high > one.intervals["kappa"].high


def calibrated(workspace: Workspace, rows: list[dict[str, Any]]) -> dict[str, Any]:
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    (workspace.folder / "labels.jsonl").write_text(lines, encoding="utf-8")
    done = workspace.ragscore("calibrate", "labels.jsonl", "--judge", "offline", "--json")
    assert done.returncode == 0, done.stderr
    (kind,) = json.loads(done.stdout)["kinds"]
    return dict(kind)


def read(shared_data: Path, name: str) -> list[dict[str, Any]]:
    with (shared_data / name).open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def test_claims_labelled_by_people_give_the_figures_of_scikit_learn(workspace: Workspace, shared_data: Path) -> None:
    data = read(shared_data, "claim_support_hagrid_attributedqa.jsonl")
    found = calibrated(
        workspace,
        [
            {
                "kind": "claim",
                "item_id": row["id"],
                "question": row["question"],
                "text": row["claim"],
                "contexts": row["contexts"],
                "human": "yes" if row["supported"] else "no",
            }
            for row in data
        ],
    )
    judge = OfflineJudge()
    verdicts = []
    for row in data:
        passages = tuple(Passage(f"p{at}", text) for at, text in enumerate(row["contexts"]))
        task = AttributeClaims(row["question"], (Claim("c", row["claim"]),), passages)
        verdicts.append(asyncio.run(judge.ask(task)).verdicts[0].positive)
    expected = by_scikit_learn([row["supported"] == 1 for row in data], verdicts)
    assert {name: found[name] for name in expected} == pytest.approx(expected)
    assert found["n"] == len(data) == 1087
    assert 0.7 < found["balanced_accuracy"] < 0.85
    stored = workspace.sql("select judge, kind, n, balanced_accuracy, kappa, mcc, drifted from calibrations")
    figures = [pytest.approx(expected[each]) for each in ("balanced_accuracy", "kappa", "mcc")]
    assert stored == [(judge.name, "claim", 1087, *figures, None)]


def test_contexts_labelled_by_people_give_the_figures_of_scikit_learn(workspace: Workspace, shared_data: Path) -> None:
    data = read(shared_data, "passage_relevance_hotpotqa100.jsonl")
    rows = [
        {
            "kind": "context",
            "item_id": row["id"],
            "question": row["question"],
            "expected": row["answer"],
            "text": passage["text"],
            "human": passage["relevant"],
        }
        for row in data
        for passage in row["passages"]
    ]
    found = calibrated(workspace, rows)
    verdicts = []
    for row in data:
        passages = tuple(Passage(str(at), each["text"]) for at, each in enumerate(row["passages"]))
        judgement = asyncio.run(OfflineJudge().ask(RateContexts(row["question"], row["answer"], "reference", passages)))
        verdicts += [verdict.positive for verdict in judgement.verdicts]
    expected = by_scikit_learn([bool(each["relevant"]) for row in data for each in row["passages"]], verdicts)
    assert {name: found[name] for name in expected} == pytest.approx(expected)
    assert found["n"] == 1000
