"""Two runs against each other, item by item: what got worse, what got better, and which facts went missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from ragscore.errors import UsageError
from ragscore.history import History, ItemScore, RunRow, findings, item_scores
from ragscore.scorers import mean


@dataclass(frozen=True, slots=True)
class Pair:
    """One item under one scorer in both runs. `lost` and `won` are claims, supported on one side only."""

    before: ItemScore
    after: ItemScore
    change: Fraction
    lost: Sequence[str] = ()
    won: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class ScorerComparison:
    """One scorer in both runs; means and pairs are over the items scored on both sides.

    Attributes:
        pairs: Every item that both runs scored, in the order of the dataset.
        before, after: Means of `exact` over the pairs; None when there are none.
        one_sided: Items that only one of the runs scored.
        changed: Items whose input, reference or claims differ; they are not compared.
    """

    scorer: str
    scale: float
    pairs: Sequence[Pair]
    before: Fraction | None
    after: Fraction | None
    one_sided: Sequence[str]
    changed: Sequence[str]

    @property
    def worse(self) -> list[Pair]:
        """The items that got worse, the largest drop first."""
        return sorted((pair for pair in self.pairs if pair.change < 0), key=lambda pair: pair.change)

    @property
    def better(self) -> list[Pair]:
        """The items that got better, the largest rise first."""
        return sorted((pair for pair in self.pairs if pair.change > 0), key=lambda pair: -pair.change)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Run `after` against run `before`."""

    before: RunRow
    after: RunRow
    scorers: Sequence[ScorerComparison]


def compare_runs(history: History, before: RunRow, after: RunRow) -> Comparison:
    """Pair the items of two runs and compare them.

    Raises:
        UsageError: the runs were judged or scored differently, so that a difference would say nothing about the
            retriever; or they have no scorer in common.
    """
    _refuse("treatment of repeated contexts", before.duplicates, after.duplicates)
    scores = {run.run_id: item_scores(history, run.run_id) for run in (before, after)}
    names = [
        str(scorer["name"])
        for scorer in after.scorers
        if any(str(scorer["name"]) == str(other["name"]) for other in before.scorers)
    ]
    if not names:
        raise UsageError(
            "the runs cannot be compared: they have no scorer in common", mend="name their scorers alike in the suite"
        )
    claims = {run.run_id: _supported(history, run.run_id) for run in (before, after)}
    return Comparison(
        before,
        after,
        [
            _compared(
                name,
                {s.item_id: s for s in scores[before.run_id] if s.scorer == name},
                {s.item_id: s for s in scores[after.run_id] if s.scorer == name},
                claims[before.run_id],
                claims[after.run_id],
            )
            for name in names
        ],
    )


def _compared(
    name: str,
    before: dict[str, ItemScore],
    after: dict[str, ItemScore],
    supported_before: dict[tuple[str, str], dict[str, bool]],
    supported_after: dict[tuple[str, str], dict[str, bool]],
) -> ScorerComparison:
    pairs, one_sided, changed = [], [], []
    for item_id in dict.fromkeys([*before, *after]):
        old, new = before.get(item_id), after.get(item_id)
        if old is not None and new is not None:
            _refuse_unlike(old, new)
            if old.item_hash != new.item_hash or _claims_differ(old, new):
                changed.append(item_id)
                continue
        if old is None or new is None or old.exact is None or new.exact is None or not (old.counted and new.counted):
            if any(score is not None and score.exact is not None for score in (old, new)):
                one_sided.append(item_id)
            continue
        _refuse(f"expected answer of {name}", old.against, new.against)
        was, now = supported_before.get((item_id, name), {}), supported_after.get((item_id, name), {})
        pairs.append(
            Pair(
                old,
                new,
                new.exact - old.exact,
                lost=[claim for claim, supported in was.items() if supported and not now.get(claim, False)],
                won=[claim for claim, supported in now.items() if supported and not was.get(claim, False)],
            )
        )
    scale = next((score.scale for score in [*after.values(), *before.values()]), 1.0)
    return ScorerComparison(
        name,
        scale,
        pairs,
        mean([pair.before.exact for pair in pairs if pair.before.exact is not None]),
        mean([pair.after.exact for pair in pairs if pair.after.exact is not None]),
        one_sided,
        changed,
    )


def _claims_differ(old: ItemScore, new: ItemScore) -> bool:
    # A side without contexts never needed its claims; that alone is no change of the dataset.
    return old.claim_set is not None and new.claim_set is not None and old.claim_set != new.claim_set


def _refuse_unlike(old: ItemScore, new: ItemScore) -> None:
    _refuse(f"kind of scorer called {new.scorer}", old.kind, new.kind)
    _refuse("judge", old.judge, new.judge)
    _refuse("judge's prompt", old.prompt_version, new.prompt_version)
    _refuse("scorer version", old.scorer_version, new.scorer_version)


def _refuse(what: str, was: str | None, now: str | None) -> None:
    if was and now and was != now:
        raise UsageError(
            f"the runs cannot be compared: their {what} differs ({was}, {now})", mend="judge both runs the same way"
        )


def _supported(history: History, run_id: str) -> dict[tuple[str, str], dict[str, bool]]:
    claims: dict[tuple[str, str], dict[str, bool]] = {}
    for each in findings(history, run_id, kind="claim"):
        claims.setdefault((each.item_id, each.scorer), {})[each.finding.text] = bool(each.finding.positive)
    return claims
