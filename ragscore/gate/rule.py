"""The rule of the gate about drops (DESIGN §7), for one scorer and for all that are tested together.

- **fail**: the drop is larger than the limit, and p ≤ .025 after Holm's correction over all drops that one gate tests
  (scorers, slices, baseline and anchor).
- **pass**: the lower end of the interval of the change is not below `-limit`.
- **inconclusive**: neither.

The limit is the larger of `max_drop` and the judge's measured noise.

Why .025 and not .05: a baseline that is *the latest run that did not fail* was chosen by its own results. A lucky one
stays, since the nights after it fail against it, so that at .05 an unchanged system would raise up to 7.7 % alarms a
night. At .025, the level of the lower end of the two-sided 95 % interval, it is 3.4 % at most (`benchmarks/gate.py`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from typing import Any

from ragscore.scorers import mean
from ragscore.stats import TOLERANCE, Interval, bca_interval, detectable_drop, drop_p, holm, items_needed

#: The level at which a drop is taken for real.
ALPHA = 0.025


class Verdict(StrEnum):
    """What a gate, or one check of it, says."""

    PASS = "pass"
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True)
class Question:
    """Is there a drop? Over the pairs of one scorer.

    Attributes:
        before, after: `exact` of each pair, within 0 and 1.
        limit: The drop that is tolerated, within 0 and 1.
        clusters: As `ragscore.stats` takes them.
        less_is_better: A rise is what is asked about, and called a drop: of what is good.
    """

    before: Sequence[Fraction]
    after: Sequence[Fraction]
    limit: Fraction
    clusters: Sequence[object] | None = None
    less_is_better: bool = False

    def turned(self) -> Question:
        """The same question where more is better."""
        if not self.less_is_better:
            return self
        return replace(self, before=[1 - each for each in self.before], after=[1 - each for each in self.after])


@dataclass(frozen=True, slots=True)
class Answer:
    """What the pairs say. All figures are unscaled, within 0 and 1.

    Attributes:
        n: Pairs.
        mean_before, mean_after, difference: Exact; None when there is no pair.
        interval: Of the difference; None when there are too few items.
        p: One-sided, of a drop, as it comes; None when there is no pair.
        p_adjusted: After Holm's correction.
        limit: The drop that is tolerated.
        detectable: The smallest true drop that this rule would find here; None when it would find none.
        needed: About how many items it would take to tell; None when it can be told, or nobody knows.
    """

    n: int
    mean_before: Fraction | None
    mean_after: Fraction | None
    difference: Fraction | None
    interval: Interval | None
    p: float | None
    p_adjusted: float | None
    limit: Fraction
    detectable: float | None
    needed: int | None
    verdict: Verdict

    def as_dict(self, scale: float = 1.0) -> dict[str, Any]:
        """The answer as JSON, in a scorer's scale."""

        def scaled(value: Fraction | float | None) -> float | None:
            return None if value is None else float(value) * scale

        return {
            "n": self.n,
            "mean_before": scaled(self.mean_before),
            "mean_after": scaled(self.mean_after),
            "difference": scaled(self.difference),
            "low": scaled(self.interval.low) if self.interval else None,
            "high": scaled(self.interval.high) if self.interval else None,
            "p": self.p,
            "p_adjusted": self.p_adjusted,
            "max_drop": scaled(self.limit),
            "detectable_drop": scaled(self.detectable),
            "items_needed": self.needed,
            "verdict": self.verdict.value,
        }


def answers(questions: Sequence[Question]) -> list[Answer]:
    """Answer all questions of one gate together, in their order."""
    questions = [each.turned() for each in questions]
    changes = [[float(b - a) for a, b in zip(each.before, each.after, strict=True)] for each in questions]
    tested = [number for number, each in enumerate(changes) if each]
    raw = {number: drop_p(changes[number], clusters=questions[number].clusters) for number in tested}
    adjusted = dict(zip(tested, holm([raw[number] for number in tested]), strict=True))
    return [
        _answer(each, changes[number], raw.get(number), adjusted.get(number), len(tested))
        for number, each in enumerate(questions)
    ]


def _answer(
    question: Question, changes: Sequence[float], p: float | None, p_adjusted: float | None, tests: int
) -> Answer:
    difference = mean([b - a for a, b in zip(question.before, question.after, strict=True)])
    interval = bca_interval(changes, clusters=question.clusters)
    limit = float(question.limit)
    if difference is not None and -difference > question.limit and p_adjusted is not None and p_adjusted <= ALPHA:
        verdict = Verdict.FAIL
    elif interval is not None and interval.low >= -limit - TOLERANCE:
        verdict = Verdict.PASS
    else:
        verdict = Verdict.INCONCLUSIVE
    alpha = ALPHA / max(1, tests)
    before, after, shown = mean(question.before), mean(question.after), interval
    if question.less_is_better and before is not None and after is not None and difference is not None:
        before, after, difference = 1 - before, 1 - after, -difference
        shown = Interval(-interval.high, -interval.low) if interval is not None else None
    return Answer(
        n=len(changes),
        mean_before=before,
        mean_after=after,
        difference=difference,
        interval=shown,
        p=p,
        p_adjusted=p_adjusted,
        limit=question.limit,
        detectable=detectable_drop(
            [float(each) for each in question.before],
            chance_in(changes, p),
            limit=limit,
            alpha=alpha,
            clusters=question.clusters,
        ),
        needed=items_needed(changes, limit=limit, alpha=alpha) if verdict is Verdict.INCONCLUSIVE else None,
        verdict=verdict,
    )


def chance_in(changes: Sequence[float], p: float | None) -> Sequence[float]:
    """The part of the changes that is taken for chance: all of it, unless they point one way by more than chance.

    Then only what goes against that way is, twice as much of it, since chance goes both ways.
    """
    if p is None or ALPHA < p < 1 - ALPHA or not any(each for each in changes):
        return changes
    against = 1 if p <= ALPHA else -1
    return [math.sqrt(2) * change if change * against > 0 else 0.0 for change in changes]
