"""How much a judge differs from itself: the stored retrievals of a run judged again and again, memory bypassed.

Nothing is retrieved, and claims stay as they are frozen, so that whatever differs is the judge. The gate takes what is
found for a floor: a drop that the judge makes by itself is no drop.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ragscore.assembly import Parts
from ragscore.errors import UsageError
from ragscore.history import History, RunRow
from ragscore.items import ContextSet, Item, Response, Score, Usage
from ragscore.scorers import Judged, Sample, Scorer
from ragscore.stats import Interval, wilson

#: One-sided normal quantile of the level at which the gate takes a drop for real.
Z = 1.959964


@dataclass(frozen=True, slots=True)
class ScorerNoise:
    """How one scorer varies when only the judge can.

    Attributes:
        n: Items that were scored in every repeat.
        left_out: Items that were not, and do not count here.
        means: Of each repeat, unscaled; empty when `n` is 0.
        spread: Largest minus smallest of `means`.
        item_spread: The standard deviation of an item's score over the repeats, pooled over the items.
        verdicts: Verdicts that were given in every repeat.
        flipped: Those of them that were not the same in all.
        floor: The drop of the mean between two runs that the judge alone exceeds in 2.5 % of cases, unscaled.
        flipping: Ids of items whose score differed, the widest first.
    """

    scorer: str
    scale: float
    n: int
    left_out: int
    means: Sequence[float]
    spread: float | None
    item_spread: float | None
    verdicts: int
    flipped: int
    floor: float | None
    flipping: Sequence[str]

    @property
    def flip_rate(self) -> float | None:
        """The share of verdicts that were not the same in every repeat; None without any."""
        return self.flipped / self.verdicts if self.verdicts else None

    @property
    def flip_interval(self) -> Interval | None:
        """Of the flip rate."""
        return wilson(self.flipped, self.verdicts)


@dataclass(frozen=True, slots=True)
class Noise:
    """What judging a run's retrievals `repeats` times gave, and what it cost."""

    run: RunRow
    judge: str
    judge_params: str
    prompt_version: str
    repeats: int
    is_deterministic: bool
    scorers: Sequence[ScorerNoise]
    usage: Usage

    def rows(self, noise_id: str) -> list[dict[str, Any]]:
        """Rows of the table `noise`."""
        return [
            {
                "noise_id": noise_id,
                "run_id": self.run.run_id,
                "suite": self.run.suite,
                "scorer": each.scorer,
                "judge": self.judge,
                "judge_params": self.judge_params,
                "prompt_version": self.prompt_version,
                "repeats": self.repeats,
                "n": each.n,
                "flip_rate": each.flip_rate,
                "spread": each.spread,
                "floor": each.floor,
                "details": {
                    "means": list(each.means),
                    "item_spread": each.item_spread,
                    "verdicts": each.verdicts,
                    "flipped": each.flipped,
                    "left_out": each.left_out,
                    "flipping": list(each.flipping[:100]),
                    "cost_usd": self.usage.cost_usd,
                    "calls": self.usage.calls,
                },
            }
            for each in self.scorers
        ]


async def measure_noise(history: History, run: RunRow, repeats: Sequence[Parts]) -> Noise:
    """Judge the stored retrievals of a run once with each of `repeats`, which must not share a memory.

    Args:
        history: Where the run is.
        run: A run that is complete.
        repeats: The suite's parts, two or more times, each with a judge that remembers nothing of the others.

    Raises:
        UsageError: fewer than two repeats, or the run holds no item of the dataset any more.
        JudgeRefused, JudgeUnavailable: the judge will not work, or does not answer.
    """
    if len(repeats) < 2:
        raise UsageError("one repeat cannot differ from itself", mend="take two or more, better five")
    items = repeats[0].dataset.items
    ids = [item.id for item in items]
    responses = await asyncio.to_thread(history.responses, run.run_id, ids)
    sets = await asyncio.to_thread(history.context_sets, run.run_id, ids)
    stored = [
        (item, responses[item.id][0], sets.get(item.id, {}))
        for item in items
        if item.id in responses and responses[item.id][0].error is None
    ]
    if not stored:
        raise UsageError(f"run {run.run_id} holds no retrieval of this dataset", mend="run the suite first")
    judged = []
    for parts in repeats:
        await parts.judging.prepare()
        try:
            judged.append(await _judged_again(parts, stored))
        finally:
            await parts.judging.aclose()
    first = repeats[0]
    versions = {score.prompt_version for each in judged for score in each.values() if score.prompt_version}
    return Noise(
        run=run,
        judge=first.judge.name,
        judge_params=first.judging.params,
        prompt_version=" ".join(sorted(versions)),
        repeats=len(repeats),
        is_deterministic=first.judging.model is None and first.judge.name.startswith("offline"),
        scorers=[_noise_of(scorer, [item.id for item, _, _ in stored], judged) for scorer in first.scorers],
        usage=sum((score.usage for each in judged for score in each.values()), Usage()),
    )


#: By (item, scorer).
_Scores = Mapping[tuple[str, str], Score]


async def _judged_again(
    parts: Parts, stored: Sequence[tuple[Item, Response, Mapping[str, ContextSet]]]
) -> dict[tuple[str, str], Score]:
    slots = asyncio.Semaphore(parts.suite.judge.concurrency)

    async def one(item: Item, response: Response, sets: Mapping[str, ContextSet], scorer: Scorer) -> Score | None:
        contexts = sets.get(parts.resolvers[scorer.name].source)
        if contexts is None or contexts.error is not None:
            return None
        sample = Sample(item, response.output, contexts)
        async with slots:
            judged: Judged = await scorer.judge(sample, judge=parts.judge, claims=parts.claims)
        return scorer.score(sample, judged)

    asked = [(item.id, scorer.name) for item, _, _ in stored for scorer in parts.scorers]
    found = await asyncio.gather(*(one(*each, scorer) for each in stored for scorer in parts.scorers))
    return {cell: score for cell, score in zip(asked, found, strict=True) if score is not None}


def _noise_of(scorer: Scorer, ids: Sequence[str], judged: Sequence[_Scores]) -> ScorerNoise:
    values: dict[str, list[float]] = {}
    verdicts: dict[tuple[str, str, str], list[bool]] = {}
    eligible = 0
    for item_id in ids:
        scores = [each.get((item_id, scorer.name)) for each in judged]
        present = [score for score in scores if score is not None]
        eligible += any(score.exact is not None and score.counted for score in present)
        exact = [float(score.exact) for score in present if score.exact is not None and score.counted]
        if len(exact) == len(judged):
            values[item_id] = exact
        for score in present:
            for finding in score.findings:
                if finding.positive is not None and finding.duplicate_of is None:
                    verdicts.setdefault((item_id, finding.kind, finding.id), []).append(finding.positive)
    complete = [each for each in verdicts.values() if len(each) == len(judged)]
    count, variances = len(values), {item_id: _variance(each) for item_id, each in values.items()}
    means = [sum(each[repeat] for each in values.values()) / count for repeat in range(len(judged))] if count else []
    total = sum(variances.values())
    widest = sorted((item_id for item_id in values if variances[item_id]), key=lambda each: -variances[each])
    return ScorerNoise(
        scorer=scorer.name,
        scale=float(scorer.scale),
        n=count,
        left_out=eligible - count,
        means=means,
        spread=max(means) - min(means) if means else None,
        item_spread=math.sqrt(total / count) if count else None,
        verdicts=len(complete),
        flipped=sum(len(set(each)) > 1 for each in complete),
        # The difference of two means of n items each, whose judgements vary independently.
        floor=Z * math.sqrt(2 * total) / count if count else None,
        flipping=widest,
    )


def _variance(values: Sequence[float]) -> float:
    center = sum(values) / len(values)
    found = sum((value - center) ** 2 for value in values) / (len(values) - 1)
    return found if found > 1e-18 else 0.0
