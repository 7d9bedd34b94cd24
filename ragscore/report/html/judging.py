"""What is known about the judge: agreement with people, its noise, and what it cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ragscore.history import History, RunRow, select

#: Days of spending that are listed: the latest.
MOST_DAYS = 30


@dataclass(frozen=True, slots=True)
class Judging:
    """Rows of the history about a judge, as its tables and views have them.

    `calibrations` holds the latest one per kind for the judge of the run, `noise` the latest per scorer for its suite
    and judge (`floor` and `spread` within 0 and 1), `spend` the rows of `judge_spend` of the suite, latest day first.
    """

    calibrations: Sequence[Mapping[str, Any]]
    noise: Sequence[Mapping[str, Any]]
    spend: Sequence[Mapping[str, Any]]


def judging_of(history: History, run: RunRow) -> Judging:
    """What the history knows about the judge of a run."""
    return Judging(
        calibrations=_rows(
            history,
            "SELECT kind, created_at, prompt_version, labels, n, true_positive, false_positive, false_negative,"
            " true_negative, balanced_accuracy, kappa, mcc, drifted FROM calibrations WHERE judge = ?"
            " QUALIFY row_number() OVER (PARTITION BY kind ORDER BY created_at DESC, calibration_id) = 1 ORDER BY kind",
            [run.judge],
        ),
        noise=_rows(
            history,
            "SELECT scorer, created_at, repeats, n, flip_rate, spread, floor FROM noise WHERE suite = ? AND judge = ?"
            " QUALIFY row_number() OVER (PARTITION BY scorer ORDER BY created_at DESC, noise_id) = 1 ORDER BY scorer",
            [run.suite, run.judge],
        ),
        spend=_rows(
            history,
            "SELECT day, model, calls, failed, prompt_tokens, completion_tokens, cost_usd, known_cost_usd, unpriced"
            f" FROM judge_spend WHERE suite = ? ORDER BY day DESC, model LIMIT {MOST_DAYS}",
            [run.suite],
        ),
    )


def _rows(history: History, query: str, params: Sequence[Any]) -> list[dict[str, Any]]:
    found = select(history.path, query, params, lock_timeout_s=history.lock_timeout_s)
    return [dict(zip(found.columns, row, strict=True)) for row in found.rows]
