"""Has a judge changed since last time? The same labels, judged then and now.

A set of labels that is judged again on a schedule (a canary) tells a changed judge from a changed retriever: its
contexts never change, so whatever changes is the judge.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from ragscore.history import History, select

#: One-sided level at which lost agreement is more than chance.
ALPHA = 0.05


@dataclass(frozen=True, slots=True)
class Drift:
    """Labels that were judged both times.

    Attributes:
        since: When the calibration before was made.
        shared: Labels in both.
        lost: Told right then and wrong now.
        won: Told wrong then and right now.
        p: One-sided: how often chance alone would lose so many more than it wins.
        prompt_changed: The judge had another prompt then.
    """

    since: str
    shared: int
    lost: int
    won: int
    p: float
    prompt_changed: bool

    @property
    def drifted(self) -> bool:
        """Whether agreement fell, by more than chance."""
        return self.lost > self.won and self.p <= ALPHA


def drift_of(
    history: History, *, judge: str, prompt_version: str, kind: str, labels: str, right: Mapping[str, bool]
) -> Drift | None:
    """Hold verdicts against those of the latest calibration of the same judge on labels that are the same.

    Args:
        history: Where calibrations are kept.
        judge: The judge's name.
        prompt_version: Of the judge, now.
        kind: claim or context.
        labels: The name of the labels, as calibrations are kept under.
        right: By key of a label whether the judge agrees with people.

    Returns:
        None for the first time, or when no label is the same.

    Source: the exact one-sided test of McNemar (1947), *Note on the sampling error of the difference between
    correlated proportions*, by `scipy.stats.binomtest`.
    """
    from scipy import stats

    if not history.exists():
        return None
    rows = select(
        history.path,
        "SELECT created_at::VARCHAR, coalesce(prompt_version, ''), details::VARCHAR FROM calibrations"
        " WHERE judge = ? AND kind = ? AND labels = ? ORDER BY created_at DESC LIMIT 1",
        [judge, kind, labels],
    ).rows
    if not rows:
        return None
    since, before, details = rows[0]
    then = (json.loads(details) if details else {}).get("right", {})
    shared = [key for key in right if key in then]
    if not shared:
        return None
    lost = sum(then[key] and not right[key] for key in shared)
    won = sum(right[key] and not then[key] for key in shared)
    p = float(stats.binomtest(lost, lost + won, 0.5, alternative="greater").pvalue) if lost + won else 1.0
    return Drift(str(since)[:19], len(shared), lost, won, p, before != prompt_version)
