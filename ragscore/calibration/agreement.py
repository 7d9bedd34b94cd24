"""How far two binary verdicts agree: the figures of a 2 x 2 table, with intervals that respect what hangs together.

"Positive" is supported (claims) or relevant (contexts). A figure that the table does not determine (no positive at
all, say) is None, never 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ragscore.stats import CONFIDENCE, RESAMPLES, Interval, wilson


@dataclass(frozen=True, slots=True)
class Agreement:
    """The confusion table of a judge against people, and its figures.

    Attributes:
        true_positive, false_positive, false_negative, true_negative: Verdicts; true is what people say.
        intervals: By name of a figure its 95 % interval; a figure without one is not among them.
    """

    true_positive: int
    false_positive: int
    false_negative: int
    true_negative: int
    intervals: dict[str, Interval]

    @property
    def n(self) -> int:
        """Verdicts that both gave."""
        return self.true_positive + self.false_positive + self.false_negative + self.true_negative

    @property
    def figures(self) -> dict[str, float | None]:
        """Every figure by name."""
        cells = (self.true_positive, self.false_positive, self.false_negative, self.true_negative)
        return {name: figure(*cells) for name, figure in FIGURES.items()}

    def as_dict(self) -> dict[str, Any]:
        """The agreement as JSON."""
        return {
            "n": self.n,
            "true_positive": self.true_positive,
            "false_positive": self.false_positive,
            "false_negative": self.false_negative,
            "true_negative": self.true_negative,
            **self.figures,
            "intervals": {name: [each.low, each.high] for name, each in self.intervals.items()},
        }


def agreement_of(
    pairs: Sequence[tuple[bool, bool]], *, clusters: Sequence[object] | None = None, seed: int = 0
) -> Agreement:
    """Tabulate (what people say, what the judge says).

    Args:
        pairs: One per verdict.
        clusters: Per verdict what it shares with others (its item): those are resampled together.
        seed: Of the resampling.

    Shares get Wilson intervals where every verdict stands by itself; all other figures, and shares of clustered
    verdicts, the percentile bootstrap over clusters (Efron & Tibshirani, 1993, ch. 13).
    """
    tp = sum(human and judge for human, judge in pairs)
    fp = sum(judge and not human for human, judge in pairs)
    fn = sum(human and not judge for human, judge in pairs)
    tn = len(pairs) - tp - fp - fn
    groups = list(range(len(pairs))) if clusters is None else list(clusters)
    intervals = _bootstrapped(pairs, groups, seed)
    if len(set(groups)) == len(groups):
        shares = {"precision": (tp, tp + fp), "recall": (tp, tp + fn), "specificity": (tn, tn + fp)}
        for name, (successes, trials) in shares.items():
            if (interval := wilson(successes, trials)) is not None:
                intervals[name] = interval
    return Agreement(tp, fp, fn, tn, intervals)


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _balanced_accuracy(tp: float, fp: float, fn: float, tn: float) -> float | None:
    """The mean of the shares of positives and of negatives that are told right (Brodersen et al., 2010)."""
    recall, specificity = _share(tp, tp + fn), _share(tn, tn + fp)
    return None if recall is None or specificity is None else (recall + specificity) / 2


def _kappa(tp: float, fp: float, fn: float, tn: float) -> float | None:
    """Agreement beyond chance (Cohen, 1960, *A coefficient of agreement for nominal scales*)."""
    n = tp + fp + fn + tn
    if not n:
        return None
    expected = ((tp + fp) * (tp + fn) + (fn + tn) * (fp + tn)) / n**2
    return _share((tp + tn) / n - expected, 1 - expected)


def _mcc(tp: float, fp: float, fn: float, tn: float) -> float | None:
    """The correlation of both verdicts (Matthews, 1975)."""
    return _share(tp * tn - fp * fn, math.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)))


#: Figures by name, of (true positives, false positives, false negatives, true negatives).
FIGURES: dict[str, Callable[[float, float, float, float], float | None]] = {
    "balanced_accuracy": _balanced_accuracy,
    "kappa": _kappa,
    "mcc": _mcc,
    "precision": lambda tp, fp, fn, tn: _share(tp, tp + fp),
    "recall": lambda tp, fp, fn, tn: _share(tp, tp + fn),
    "specificity": lambda tp, fp, fn, tn: _share(tn, tn + fp),
}


def _bootstrapped(pairs: Sequence[tuple[bool, bool]], groups: Sequence[object], seed: int) -> dict[str, Interval]:
    import numpy as np

    place: dict[object, int] = {}
    at = [place.setdefault(group, len(place)) for group in groups]
    if len(place) < 2:
        return {}
    # Clusters with the same four counts are alike: it is enough to draw how many of each kind come up.
    cells = np.zeros((len(place), 4))
    for where, (human, judge) in zip(at, pairs, strict=True):
        cells[where, (0 if judge else 2) if human else (1 if judge else 3)] += 1
    kinds, counts = np.unique(cells, axis=0, return_counts=True)
    rng = np.random.default_rng(seed)
    drawn = rng.multinomial(len(place), counts / len(place), size=RESAMPLES) @ kinds
    tables, times = np.unique(drawn, axis=0, return_counts=True)
    tail = (1 - CONFIDENCE) / 2
    intervals = {}
    for name, figure in FIGURES.items():
        if figure(*(float(each) for each in cells.sum(axis=0))) is None:
            continue
        found = [figure(*(float(cell) for cell in table)) for table in tables]
        values = np.repeat(
            [value for value in found if value is not None],
            [count for value, count in zip(found, times, strict=True) if value is not None],
        )
        if len(values) >= RESAMPLES / 2:
            low, high = np.quantile(values, [tail, 1 - tail])
            intervals[name] = Interval(float(low), float(high))
    return intervals
