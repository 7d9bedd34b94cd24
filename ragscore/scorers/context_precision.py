"""context precision: are the retrieved contexts useful for the expected answer, and the useful ones first?"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

from ragscore.items import Context, Finding, Score, Status, Verdict
from ragscore.judges.claims import ClaimSource
from ragscore.judges.protocol import Judge
from ragscore.judges.tasks import RateContexts
from ragscore.scorers.arithmetic import average_precision
from ragscore.scorers.attribution import numbered
from ragscore.scorers.fused import Fused, about, attribution, relevance_of, version_of
from ragscore.scorers.outcome import by_id, decided, finding
from ragscore.scorers.protocol import Judged, Passages, Sample
from ragscore.scorers.reasons import precision_reason

Against = Literal["auto", "reference", "output"]


@dataclass(frozen=True, slots=True)
class ContextPrecision:
    """Average precision of the retrieved contexts × scale.

    Relevance of each context to producing the expected answer is judged yes or no, each by itself.

    Args:
        name: The name in the history; two of a kind in one suite need different ones.
        scale: The score of a perfect item; > 0.
        against: The expected answer: the `reference`, the `output`, or `auto` (the reference if there is one, else
            the output). The row records which it was.
        duplicates: `count` (a repeated context counts at each of its ranks, the definition as it stands) or `once`
            (later ones are not relevant).
        missing_reference: Whether an item with nothing to judge against takes part in means with its 0 (`zero`) or
            not (`exclude`).
        fused: Where it is judged against the reference, take relevance from claims x contexts (`scorers.fused`) instead
            of asking about each context; `answer`: with the output in the same question.

    Source: average precision (Manning et al., *Introduction to Information Retrieval*, §8.4); context precision of
    RAGAS (https://arxiv.org/abs/2309.15217).
    """

    name: str = "context_precision"
    scale: Fraction = Fraction(1)
    against: Against = "auto"
    duplicates: Literal["count", "once"] = "count"
    missing_reference: str = "zero"
    fused: Fused = False
    kind: str = "context_precision"
    version: str = field(init=False)

    def __post_init__(self) -> None:
        # What is judged against the output is never asked at once.
        fused = False if self.against == "output" else self.fused
        object.__setattr__(self, "version", version_of("1", fused))

    async def judge(self, sample: Sample, *, judge: Judge, claims: ClaimSource) -> Judged:
        """At most one call (more when a window is too small)."""
        expected, against = self._expected(sample)
        passages = Passages.of(sample.contexts.contexts)
        if not sample.item.answerable:
            # Not scored, but whether anything relevant came up is a figure of its own.
            if not passages.passages:
                return Judged(Status.UNANSWERABLE, passages=passages)
            judgement = await judge.ask(RateContexts(sample.item.input, None, "question", passages.passages))
            return Judged(Status.UNANSWERABLE, passages, judgement, against="question")
        if expected is None:
            return Judged(Status.NO_REFERENCE, passages=passages)
        if not passages.passages:
            return Judged(Status.NO_CONTEXT, passages=passages, against=against)
        if self.fused and against == "reference":
            return await self._mapped(sample, passages, judge, claims)
        judgement = await judge.ask(RateContexts(sample.item.input, expected, against, passages.passages))
        return Judged(judgement.status, passages, judgement, against=against)

    async def _mapped(self, sample: Sample, passages: Passages, judge: Judge, claims: ClaimSource) -> Judged:
        claim_set, extraction = await claims.of(sample.item)
        if claim_set is None:
            failed = extraction.status if extraction is not None else Status.JUDGE_ERROR
            return Judged(failed, passages, extraction=extraction)
        if not claim_set.claims:
            return Judged(Status.NO_CLAIMS, passages, extraction=extraction)
        stated = numbered(claim_set.claims)
        mapped = await judge.ask(attribution(sample, claim_set.claims, passages.passages, fused=self.fused))
        judgement = relevance_of(about(mapped, stated), stated, passages.passages)
        return Judged(judgement.status, passages, judgement, extraction=extraction, against="reference")

    def score(self, sample: Sample, judged: Judged) -> Score:
        """Average precision over the ranks; a context that was never decided makes the item a judge error."""
        return decided(
            self,
            sample,
            judged,
            self._findings(sample.contexts.contexts, judged),
            missing_reference=self.missing_reference,
            exact=average_precision,
            reason=precision_reason,
            named="the contexts at ranks ",
        )

    def _expected(self, sample: Sample) -> tuple[str | None, Literal["reference", "output"]]:
        reference, output = _filled(sample.item.reference), _filled(sample.output)
        if self.against == "reference" or (self.against == "auto" and reference is not None):
            return reference, "reference"
        return output, "output"

    def _findings(self, contexts: tuple[Context, ...], judged: Judged) -> list[Finding]:
        passages = judged.passages
        if passages is None or judged.judgement is None:
            return []
        verdicts = by_id(judged.judgement)
        at: dict[int, tuple[int, Verdict | None]] = {
            rank: (ranks[0], verdicts.get(passage_id)) for passage_id, ranks in passages.ranks.items() for rank in ranks
        }
        findings = []
        for rank, context in enumerate(contexts, start=1):
            first, verdict = at.get(rank, (rank, None))
            repeated = first != rank
            positive: bool | None = None
            why = ""
            if rank not in at:
                positive, why = False, "the context has no text"
            elif repeated and self.duplicates == "once" and verdict is not None:
                positive, why = False, f"repeats rank {first}"
            findings.append(
                finding(
                    "context",
                    id=str(rank),
                    rank=rank,
                    text=context.text,
                    verdict=verdict,
                    passages=passages,
                    positive=positive,
                    why=why,
                    duplicate_of=first if repeated else None,
                )
            )
        return findings


def _filled(text: str | None) -> str | None:
    return text if text is not None and text.strip() else None
