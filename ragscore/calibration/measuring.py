"""Labels with verdicts of both sides, by kind: agreement, drift, and the row that is kept."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ragscore.calibration.agreement import Agreement, agreement_of
from ragscore.calibration.drift import Drift, drift_of
from ragscore.calibration.judging import Judged
from ragscore.calibration.labels import Label, labels_hash
from ragscore.errors import UsageError
from ragscore.history import History


@dataclass(frozen=True, slots=True)
class Calibration:
    """One judge on one kind of verdicts.

    Attributes:
        disagreements: Labels that the judge sees otherwise than people, the surest first.
        unlabelled: Rows that no person has decided.
        undecided: Rows that the judge gave no verdict on.
        sampled: Rows that were chosen because the judge was in doubt: agreement on all verdicts is likely higher.
    """

    kind: str
    judge: str
    prompt_version: str
    agreement: Agreement
    drift: Drift | None
    disagreements: Sequence[Label]
    unlabelled: int
    undecided: int
    sampled: int
    rows: Sequence[dict[str, Any]]


def calibrations(found: Judged, *, name: str, history: History) -> list[Calibration]:
    """What the labels say about each judge and prompt version among them, per kind.

    Args:
        found: Labels with the judge's verdicts.
        name: What the labels are kept under; drift is looked for among calibrations of that name.
        history: Where earlier calibrations are.

    Raises:
        UsageError: no row has a verdict of both sides.
    """
    groups: dict[tuple[str, str, str], list[Label]] = {}
    for label in found.labels:
        if label.human is not None and label.verdict is not None:
            groups.setdefault((label.kind, label.judge or "unnamed", label.prompt_version), []).append(label)
    if not groups:
        raise UsageError(
            "no row has both a person's verdict and a judge's",
            where=name,
            mend="fill in `human` with yes or no, and name a judge with --suite or --judge",
        )
    calibration_id = secrets.token_hex(8)
    return [
        _calibration(kind, judge, prompt, labels, found, name, f"{calibration_id}-{number}", history)
        for number, ((kind, judge, prompt), labels) in enumerate(sorted(groups.items()))
    ]


def _calibration(
    kind: str,
    judge: str,
    prompt_version: str,
    labels: Sequence[Label],
    found: Judged,
    name: str,
    calibration_id: str,
    history: History,
) -> Calibration:
    agreement = agreement_of(
        [(bool(label.human), bool(label.verdict)) for label in labels], clusters=[label.cluster for label in labels]
    )
    right = {label.key: label.human == label.verdict for label in labels}
    drift = drift_of(history, judge=judge, prompt_version=prompt_version, kind=kind, labels=name, right=right)
    wrong = [label for label in labels if label.human != label.verdict]
    unlabelled = sum(label.kind == kind and label.human is None for label in found.labels)
    undecided = sum(label.kind == kind and label.human is not None and label.verdict is None for label in found.labels)
    figures = agreement.figures
    row = {
        "calibration_id": calibration_id,
        "judge": judge,
        "judge_params": found.params,
        "prompt_version": prompt_version,
        "labels": name,
        "labels_hash": labels_hash(labels),
        "kind": kind,
        "n": agreement.n,
        "true_positive": agreement.true_positive,
        "false_positive": agreement.false_positive,
        "false_negative": agreement.false_negative,
        "true_negative": agreement.true_negative,
        **{each: figures[each] for each in ("balanced_accuracy", "kappa", "mcc", "precision", "recall")},
        "drifted": drift.drifted if drift is not None else None,
        "details": {
            "intervals": {figure: [each.low, each.high] for figure, each in agreement.intervals.items()},
            "right": right,
            "unlabelled": unlabelled,
            "undecided": undecided,
        },
    }
    return Calibration(
        kind=kind,
        judge=judge,
        prompt_version=prompt_version,
        agreement=agreement,
        drift=drift,
        disagreements=sorted(wrong, key=lambda label: -(label.confidence or 0.0)),
        unlabelled=unlabelled,
        undecided=undecided,
        sampled=sum(label.chosen not in ("", "random") for label in labels),
        rows=[row],
    )
