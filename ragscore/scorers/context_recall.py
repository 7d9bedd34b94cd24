"""context recall: what share of the reference's facts does the retrieved context support?"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from ragscore.items import Finding, Score, Status
from ragscore.judges.claims import ClaimSource
from ragscore.judges.protocol import Judge
from ragscore.scorers.arithmetic import recall
from ragscore.scorers.attribution import numbered
from ragscore.scorers.fused import Fused, about, attribution, version_of
from ragscore.scorers.outcome import by_id, decided, finding
from ragscore.scorers.protocol import Judged, Passages, Sample
from ragscore.scorers.reasons import recall_reason


@dataclass(frozen=True, slots=True)
class ContextRecall:
    """Supported claims ÷ all claims × scale.

    Each claim of the reference is judged, yes or no, against the whole set of contexts; the order of contexts has
    no influence. The claims come from the item when a person gave them, else from the frozen claim set, else they
    are extracted once.

    Args:
        name: The name in the history; two of a kind in one suite need different ones.
        scale: The score of a perfect item; > 0.
        missing_reference: Whether an item without reference takes part in means with its 0 (`zero`) or not (`exclude`).
        fused: True: ask which contexts state each claim, so that precision can be told from the same answer;
            `answer`: ask about the output at once, for utilisation and noise sensitivity (`scorers.fused`).

    Source: context recall of RAGAS (Es et al., 2024, https://arxiv.org/abs/2309.15217). It departs in that claims are
    frozen, so that the denominator does not move from run to run.
    """

    name: str = "context_recall"
    scale: Fraction = Fraction(1)
    missing_reference: str = "zero"
    fused: Fused = False
    kind: str = "context_recall"
    version: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "version", version_of("1", self.fused))

    async def judge(self, sample: Sample, *, judge: Judge, claims: ClaimSource) -> Judged:
        """At most one call for the claims and one for their attribution (more when a window is too small)."""
        item = sample.item
        if not item.answerable:
            return Judged(Status.UNANSWERABLE)
        known = claims.known(item)
        if known is None and not (item.reference and item.reference.strip()):
            return Judged(Status.NO_REFERENCE)
        passages = Passages.of(sample.contexts.contexts)
        extraction = None
        claim_set = known
        if passages.passages and claim_set is None:
            claim_set, extraction = await claims.of(item)
            if claim_set is None:
                failed = extraction.status if extraction is not None else Status.JUDGE_ERROR
                return Judged(failed, passages=passages, extraction=extraction)
        if claim_set is not None and not claim_set.claims:
            return Judged(Status.NO_CLAIMS, passages=passages, claims=claim_set, extraction=extraction)
        if not passages.passages or claim_set is None:
            return Judged(Status.NO_CONTEXT, passages=passages, claims=claim_set)
        judgement = await judge.ask(attribution(sample, claim_set.claims, passages.passages, fused=self.fused))
        if self.fused:
            judgement = about(judgement, numbered(claim_set.claims))
        return Judged(judgement.status, passages, judgement, claim_set, extraction, against="reference")

    def score(self, sample: Sample, judged: Judged) -> Score:
        """The share of supported claims; a claim that was never decided makes the item a judge error, not a "no"."""
        verdicts = by_id(judged.judgement)
        missing = judged.status is Status.NO_CONTEXT
        findings: list[Finding] = []
        for number, claim in enumerate(numbered(judged.claims.claims if judged.claims is not None else ()), start=1):
            findings.append(
                finding(
                    "claim",
                    id=claim.id,
                    rank=number,
                    text=claim.text,
                    verdict=verdicts.get(claim.id),
                    passages=judged.passages,
                    positive=False if missing else None,
                    why="no context was retrieved" if missing else "",
                )
            )
        return decided(
            self,
            sample,
            judged,
            findings,
            missing_reference=self.missing_reference,
            exact=recall,
            reason=lambda found, _: recall_reason(found),
        )
