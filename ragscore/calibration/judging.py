"""Asking a judge what people have said already: labels grouped as the scorers would ask them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ragscore.calibration.labels import Label
from ragscore.items import Judgement, Status, Usage
from ragscore.judges import Judge
from ragscore.judges.tasks import AttributeClaims, Claim, Passage, RateContexts


@dataclass(frozen=True, slots=True)
class Judged:
    """Labels with the judge's verdicts.

    Attributes:
        labels: In the order given; `verdict` is None where the judge gave none.
        failures: Why, one line per question that failed.
        params: JSON of what the judge's answers depend on.
        usage: What it cost.
    """

    labels: Sequence[Label]
    failures: Sequence[str]
    params: str
    usage: Usage


async def judged_labels(labels: Sequence[Label], judge: Judge, *, concurrency: int = 16) -> Judged:
    """Ask the judge about every label that a person has decided.

    Claims of one item against the same contexts are asked together, and so are contexts for the same answer, as the
    scorers do.

    Raises:
        JudgeRefused, JudgeUnavailable: the judge will not work, or does not answer.
    """
    groups: dict[tuple[object, ...], list[int]] = {}
    for at, label in enumerate(labels):
        if label.human is not None:
            beside = label.contexts if label.kind == "claim" else (label.expected, label.against)
            groups.setdefault((label.kind, label.item_id, label.question, beside), []).append(at)
    slots = asyncio.Semaphore(concurrency)

    async def asked(places: Sequence[int]) -> Judgement:
        async with slots:
            return await judge.ask(_task([labels[at] for at in places]))

    found = list(labels)
    failures, params, usage = [], "{}", Usage()
    judgements = await asyncio.gather(*(asked(places) for places in groups.values()))
    for places, judgement in zip(groups.values(), judgements, strict=True):
        usage += judgement.usage
        params = judgement.params if judgement.params != "{}" else params
        verdicts = {verdict.id: verdict for verdict in reversed(judgement.verdicts)}
        if judgement.status is not Status.OK:
            failures.append(f"{labels[places[0]].question or labels[places[0]].text}: {judgement.error}")
        for number, at in enumerate(places):
            verdict = verdicts.get(str(number))
            found[at] = replace(
                labels[at],
                verdict=verdict.positive if verdict is not None else None,
                confidence=verdict.confidence if verdict is not None else None,
                note=verdict.why if verdict is not None else "",
                judge=judgement.judge,
                prompt_version=judgement.prompt_version,
            )
    return Judged(found, failures, params, usage)


def _task(group: Sequence[Label]) -> AttributeClaims | RateContexts:
    first = group[0]
    if first.kind == "claim":
        passages = tuple(Passage(f"p{at}", text) for at, text in enumerate(first.contexts))
        return AttributeClaims(
            first.question, tuple(Claim(str(at), label.text) for at, label in enumerate(group)), passages
        )
    against: Literal["reference", "output"] = "output" if first.against == "output" else "reference"
    return RateContexts(
        first.question,
        first.expected,
        against,
        tuple(Passage(str(at), label.text) for at, label in enumerate(group)),
    )
