"""Two runs against each other: the pairs, what the rule of the gate says about them, and both as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from ragscore.gate import (
    Answer,
    Move,
    Pair,
    ScorerComparison,
    answers,
    comparison_rows,
    noise_floors,
    pair_runs,
    question_of,
)
from ragscore.history import History, RunRow
from ragscore.scorers.arithmetic import as_fraction

__all__ = ["Comparison", "Move", "Pair", "ScorerComparison", "compare_runs", "keep_comparison"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Run `after` against run `before`.

    Attributes:
        answers: By scorer what the rule of the gate says about a drop.
        unlike: Why a difference may say nothing about the retriever; not empty only when that was forced.
        noise: By scorer the judge's measured noise that the rule was told, unscaled.
    """

    before: RunRow
    after: RunRow
    scorers: Sequence[ScorerComparison]
    answers: Mapping[str, Answer] = field(default_factory=dict)
    unlike: Sequence[str] = ()
    noise: Mapping[str, float] = field(default_factory=dict)

    @property
    def not_whole(self) -> list[str]:
        """Which of the runs has not come to its end, so that verdicts are about a part of its items; in words."""
        parted = {run.run_id: run for run in (self.before, self.after) if run.status != "complete"}
        return [
            f"run {run.run_id} ({run.version}) is {run.status}: only what it has scored so far is compared"
            for run in parted.values()
        ]

    def as_dict(self) -> dict[str, Any]:
        """The comparison as JSON; scores in the scorer's scale."""
        return {
            "before": _run(self.before),
            "after": _run(self.after),
            "forced": bool(self.unlike),
            "unlike": list(self.unlike),
            "scorers": [
                {
                    "scorer": each.scorer,
                    "scale": each.scale,
                    **self.answers[each.scorer].as_dict(each.scale),
                    "noise_floor": self.noise[each.scorer] * each.scale if each.scorer in self.noise else None,
                    "worse": [_pair(pair) for pair in each.worse],
                    "better": [_pair(pair) for pair in each.better],
                    "one_sided": list(each.one_sided),
                    "changed": list(each.changed),
                    "came": list(each.came),
                    "went": list(each.went),
                }
                for each in self.scorers
            ],
        }


def compare_runs(
    history: History,
    before: RunRow,
    after: RunRow,
    *,
    max_drop: Mapping[str, float] | None = None,
    before_in: History | None = None,
    force: bool = False,
) -> Comparison:
    """Pair the items of two runs and compare them.

    Args:
        history: Where the runs are.
        before: The earlier run, or the baseline.
        after: The later run.
        max_drop: The drop that is tolerated, by scorer and in its scale; what the later run's suite says when left out.
        before_in: Where `before` is, if that is another history.
        force: Compare runs that are unlike all the same.

    Raises:
        UsageError: the runs were judged or scored differently, so that a difference would say nothing about the
            retriever; they share too few items; or they have no scorer in common.
    """
    paired = pair_runs(history, before, after, before_in=before_in, force=force)
    limits = max_drop if max_drop is not None else declared_drops(after)
    floors = noise_floors(history, after)
    questions = [
        question_of(
            each,
            limit=as_fraction(limits.get(each.scorer, 0)) / as_fraction(each.scale),
            floor=floors.get(each.scorer),
        )
        for each in paired.scorers
    ]
    said = answers(questions)
    return Comparison(
        before,
        after,
        paired.scorers,
        {each.scorer: answer for each, answer in zip(paired.scorers, said, strict=True)},
        paired.unlike,
        {each.scorer: floors[each.scorer].floor for each in paired.scorers if each.scorer in floors},
    )


def keep_comparison(history: History, comparison: Comparison) -> None:
    """Write the comparison to the table `comparisons`, one row per scorer; the same one is kept once."""
    found = [(each, comparison.answers[each.scorer]) for each in comparison.scorers]
    forced = bool(comparison.unlike)
    purpose = "compare, forced" if forced else "compare"
    history.store_comparison(
        comparison_rows(comparison.before, comparison.after, found, purpose=purpose, forced=forced)
    )


def declared_drops(run: RunRow) -> dict[str, float]:
    """By scorer the `max_drop` of the gate that the run's suite declares, in the scorer's scale."""
    gate = run.suite_doc.get("gate") if isinstance(run.suite_doc, Mapping) else None
    parts = gate.items() if isinstance(gate, Mapping) else ()
    found = {name: part.get("max_drop") for name, part in parts if isinstance(part, Mapping)}
    return {
        str(name): float(drop)
        for name, drop in found.items()
        if isinstance(drop, int | float) and not isinstance(drop, bool)
    }


def _run(row: RunRow) -> dict[str, Any]:
    names = ("run_id", "suite", "retriever", "version", "judge", "items", "status", "started_at")
    return {name: str(value) if name == "started_at" else value for name in names for value in (getattr(row, name),)}


def _pair(pair: Pair) -> dict[str, Any]:
    return {
        "item_id": pair.after.item_id,
        "input": pair.after.input,
        "before": pair.before.score,
        "after": pair.after.score,
        "change": float(pair.change * Fraction(pair.after.scale)),
        "lost": list(pair.lost),
        "won": list(pair.won),
        "moves": [{"text": move.text, "before": move.before, "after": move.after} for move in pair.moves],
    }
