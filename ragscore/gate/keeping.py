"""What the history keeps about comparisons, and what it knows about the noise of a judge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ragscore.gate.pairs import ScorerComparison
from ragscore.gate.rule import Answer
from ragscore.history import History, RunRow, select
from ragscore.items import digest


@dataclass(frozen=True, slots=True)
class NoiseFloor:
    """The smallest drop of a mean over `n` items that is not the judge's own noise, within 0 and 1."""

    floor: float
    n: int


def noise_floors(history: History, run: RunRow) -> dict[str, NoiseFloor]:
    """By scorer what `ragscore noise` measured last for the run's suite and judge."""
    rows = select(
        history.path,
        "SELECT scorer, floor, n FROM noise"
        " WHERE suite = ? AND judge = ? AND coalesce(judge_params, '{}') = ? AND floor IS NOT NULL"
        " ORDER BY created_at",
        [run.suite, run.judge, run.judge_params],
    ).rows
    return {str(scorer): NoiseFloor(float(floor), int(n)) for scorer, floor, n in rows}


def comparison_rows(
    before: RunRow,
    after: RunRow,
    found: Sequence[tuple[ScorerComparison, Answer]],
    *,
    purpose: str,
    forced: bool = False,
) -> list[dict[str, Any]]:
    """Rows of the table `comparisons`, one per scorer; figures within 0 and 1.

    Args:
        before: The baseline.
        after: The run.
        found: Per scorer the pairs and what they say.
        purpose: What the comparison was made for; the same one of the same attempt is kept once.
        forced: The runs are unlike.
    """
    limits = [str(answer.limit) for _, answer in found]
    comparison_id = digest(before.run_id, before.attempt, after.run_id, after.attempt, purpose, limits)[:16]
    return [
        {
            "comparison_id": comparison_id,
            "baseline_run_id": before.run_id,
            "run_id": after.run_id,
            "suite": after.suite,
            "scorer": paired.scorer,
            "n": answer.n,
            "mean_before": _number(answer.mean_before),
            "mean_after": _number(answer.mean_after),
            "difference": _number(answer.difference),
            "low": answer.interval.low if answer.interval else None,
            "high": answer.interval.high if answer.interval else None,
            "p": answer.p,
            "p_adjusted": answer.p_adjusted,
            "mdd": answer.detectable,
            "verdict": answer.verdict.value,
            "forced": forced,
            "details": {
                "purpose": purpose,
                "max_drop": float(answer.limit),
                "items_needed": answer.needed,
                "worse": [pair.after.item_id for pair in paired.worse],
                "better": [pair.after.item_id for pair in paired.better],
                "one_sided": list(paired.one_sided),
                "changed": list(paired.changed),
                "came": list(paired.came),
                "went": list(paired.went),
            },
        }
        for paired, answer in found
    ]


def _number(value: Any) -> float | None:
    return None if value is None else float(value)
