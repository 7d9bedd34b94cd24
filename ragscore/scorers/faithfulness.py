"""faithfulness and hallucination: does the output say what the contexts say, or the contrary?"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from ragscore.items import Score, Status
from ragscore.judges.claims import ClaimSource
from ragscore.judges.protocol import Judge
from ragscore.judges.tasks import ContradictClaims
from ragscore.scorers.arithmetic import recall
from ragscore.scorers.attribution import OUTPUT_CLAIM, Inquiry, Stopped, claim_findings, numbered, yes
from ragscore.scorers.outcome import by_id, outcome
from ragscore.scorers.protocol import Judged, Sample
from ragscore.scorers.reasons import recall_reason


@dataclass(frozen=True, slots=True)
class Faithfulness:
    """Claims of the output that the contexts support ÷ all claims of the output × scale.

    Needs an output and contexts, no reference. Without contexts the score is 0 (`no_context`); without an output, or
    with one that states nothing, there is none (`no_claims`).

    Args:
        name: The name in the history; two of a kind in one suite need different ones.
        scale: The score of a perfect item; > 0.

    Source: faithfulness of RAGAS (Es et al., 2024, https://arxiv.org/abs/2309.15217).
    """

    name: str = "faithfulness"
    scale: Fraction = Fraction(1)
    kind: str = "faithfulness"
    version: str = "1"

    async def judge(self, sample: Sample, *, judge: Judge, claims: ClaimSource) -> Judged:
        """At most two calls: the claims of the output, and their support."""
        try:
            inquiry = Inquiry(sample, judge, claims)
            _ = inquiry.output
            inquiry.need_contexts()
            await inquiry.supported("judgement", await inquiry.of_output(), inquiry.passages.passages)
            return inquiry.judged(against="contexts")
        except Stopped as end:
            return end.judged

    def score(self, sample: Sample, judged: Judged) -> Score:
        """The share of supported claims."""
        if judged.status is not Status.OK:
            return outcome(self, sample, judged)
        judgement = judged.also["judgement"]
        findings = claim_findings(OUTPUT_CLAIM, judged.output_claims, by_id(judgement), judged.passages)
        exact = recall(yes(judgement, len(findings)))
        return outcome(self, sample, judged, exact=exact, reason=recall_reason(findings), findings=findings)


@dataclass(frozen=True, slots=True)
class Hallucination:
    """Claims of the output that the contexts contradict ÷ all claims of the output × scale. Less is better.

    The complement of faithfulness by contradiction: a claim that the contexts do not mention is unfaithful, yet no
    hallucination here. Without contexts nothing can be contradicted: there is no score, since a 0 would be praise.

    Args:
        name: The name in the history; two of a kind in one suite need different ones.
        scale: The score where every claim is contradicted; > 0.

    Source: the contradiction label of natural language inference, as in RAGChecker (Ru et al., 2024,
    https://arxiv.org/abs/2408.08067) and in DeepEval's hallucination, which counts contexts instead of claims.
    """

    name: str = "hallucination"
    scale: Fraction = Fraction(1)
    kind: str = "hallucination"
    version: str = "1"

    async def judge(self, sample: Sample, *, judge: Judge, claims: ClaimSource) -> Judged:
        """At most two calls: the claims of the output, and what contradicts them."""
        try:
            inquiry = Inquiry(sample, judge, claims)
            _ = inquiry.output
            inquiry.need_contexts()
            said = numbered(await inquiry.of_output())
            task = ContradictClaims(sample.item.input, said, inquiry.passages.passages)
            await inquiry.answer("judgement", task)
            return inquiry.judged(against="contexts")
        except Stopped as end:
            return end.judged

    def score(self, sample: Sample, judged: Judged) -> Score:
        """The share of contradicted claims; findings are positive where a claim is contradicted."""
        if judged.status is not Status.OK:
            return outcome(self, sample, judged, zeros=frozenset())
        judgement = judged.also["judgement"]
        findings = claim_findings("contradicted_claim", judged.output_claims, by_id(judgement), judged.passages)
        exact = recall(yes(judgement, len(findings)))
        return outcome(self, sample, judged, exact=exact, reason=recall_reason(findings), findings=findings)
