"""Relevance out of claims × contexts: what `fused: true` takes instead of judging each context by itself.

A context is relevant when it states a claim of the reference, or a part of one that the contexts together support.
One question (`MapClaims`) then serves recall, precision and utilisation: one call per item once claims are frozen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ragscore.items import Judgement, Verdict
from ragscore.judges.tasks import Claim, Passage
from ragscore.scorers.reasons import shortened


def relevance_of(mapped: Judgement, claims: Sequence[Claim], passages: Sequence[Passage]) -> Judgement:
    """The judgement on passages that follows from the one on claims: one verdict per passage, naming the claims.

    Status, cost and calls are those of `mapped`; with a verdict missing there, a passage that no claim names is
    undecided and has none.
    """
    texts = {claim.id: claim.text for claim in claims}
    first: dict[str, Verdict] = {}
    for verdict in mapped.verdicts:
        first.setdefault(verdict.id, verdict)
    complete = all(claim.id in first for claim in claims)
    verdicts = []
    for passage in passages:
        stated = [v for v in first.values() if v.positive and any(e.passage == passage.id for e in v.evidence)]
        evidence = tuple(e for v in stated for e in v.evidence if e.passage == passage.id and e.quote)
        if stated or complete:
            named = "; ".join(shortened(texts[v.id], 80) for v in stated if v.id in texts)
            why = f"states: {named}" if stated else "states no claim of the reference"
            remembered = bool(first) and all(v.remembered for v in first.values())
            verdicts.append(Verdict(passage.id, bool(stated), why=why, evidence=evidence, remembered=remembered))
    return replace(mapped, verdicts=tuple(verdicts))
