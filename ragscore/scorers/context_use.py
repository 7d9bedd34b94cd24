"""context utilisation and noise sensitivity: what the answer made of what was retrieved.

Both are counted from verdicts on claims × contexts that other scorers ask for, too; beside them a judge with a memory
is asked nothing more.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from ragscore.items import Score, Status
from ragscore.judges.claims import ClaimSource
from ragscore.judges.protocol import Judge
from ragscore.scorers.arithmetic import recall
from ragscore.scorers.attribution import STATED_CLAIM, Inquiry, Stopped, as_passage, claim_findings, yes
from ragscore.scorers.fused import crossed, version_of
from ragscore.scorers.outcome import by_id, outcome
from ragscore.scorers.protocol import Judged, Sample
from ragscore.scorers.reasons import recall_reason


@dataclass(frozen=True, slots=True)
class ContextUtilization:
    """Of the reference's claims that the contexts support, the share that the output states, × scale.

    Where the contexts support none of them there is nothing to use: no score (`no_claims`).

    Args:
        name: The name in the history; two of a kind in one suite need different ones.
        scale: The score of a perfect item; > 0.
        missing_reference: Whether an item without reference takes part in means with its 0 (`zero`) or not (`exclude`).
        fused: Ask all at once, as `context_recall` with `fused="answer"` does.

    Source: context utilization of RAGChecker (Ru et al., 2024, https://arxiv.org/abs/2408.08067). RAGAS's namesake is
    context precision judged against the output.
    """

    name: str = "context_utilization"
    scale: Fraction = Fraction(1)
    missing_reference: str = "zero"
    fused: bool = False
    kind: str = "context_utilization"
    version: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "version", version_of("1", "answer" if self.fused else False))

    async def judge(self, sample: Sample, *, judge: Judge, claims: ClaimSource) -> Judged:
        """Shares its questions with `context_recall` and `answer_similarity`."""
        try:
            inquiry = Inquiry(sample, judge, claims)
            output = inquiry.output
            inquiry.need_contexts()
            known = await inquiry.of_reference()
            if self.fused:
                await crossed(inquiry, known, of="reference")
            else:
                await inquiry.supported("found", known, inquiry.passages.passages)
            if not any(yes(inquiry.made["found"], len(known))):
                raise inquiry.stop(Status.NO_CLAIMS, "the contexts support no claim of the reference: nothing to use")
            if not self.fused:
                await inquiry.supported("other", known, as_passage(output))
            return inquiry.judged(against="reference")
        except Stopped as end:
            return end.judged

    def score(self, sample: Sample, judged: Judged) -> Score:
        """The share of usable claims that were used; findings are the usable ones."""
        if judged.status is not Status.OK or judged.claims is None:
            return outcome(self, sample, judged, missing_reference=self.missing_reference)
        texts = judged.claims.claims
        found = yes(judged.also["found"], len(texts))
        stated = claim_findings(STATED_CLAIM, texts, by_id(judged.also["other"]), None)
        usable = [each for each, there in zip(stated, found, strict=True) if there]
        exact = recall([bool(each.positive) for each in usable])
        return outcome(self, sample, judged, exact=exact, reason=recall_reason(usable), findings=usable)


@dataclass(frozen=True, slots=True)
class NoiseSensitivity:
    """Claims of the output that the reference does not support and the contexts do ÷ all its claims. Less is better.

    These are the claims that the system took from misleading contexts. Without contexts there is no score, since a 0
    would be praise.

    Args:
        name: The name in the history; two of a kind in one suite need different ones.
        scale: The score where every claim is such a one; > 0.
        missing_reference: Kept for alikeness with other scorers; an item without reference never has a score here.
        fused: Ask all at once, as `context_recall` with `fused="answer"` does; the output's claims are its sentences
            then.

    Source: noise sensitivity of RAGAS and RAGChecker (https://arxiv.org/abs/2408.08067); they tell relevant from
    irrelevant contexts, this one counts any.
    """

    name: str = "noise_sensitivity"
    scale: Fraction = Fraction(1)
    missing_reference: str = "zero"
    fused: bool = False
    kind: str = "noise_sensitivity"
    version: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "version", version_of("1", "answer" if self.fused else False))

    async def judge(self, sample: Sample, *, judge: Judge, claims: ClaimSource) -> Judged:
        """Shares its questions with `faithfulness` and `answer_correctness`."""
        try:
            inquiry = Inquiry(sample, judge, claims)
            reference = inquiry.reference
            _ = inquiry.output
            inquiry.need_contexts()
            if self.fused:
                await crossed(inquiry, await inquiry.of_reference(may_be_none=True), of="output")
            else:
                said = await inquiry.of_output()
                await inquiry.supported("other", said, as_passage(reference))
                await inquiry.supported("found", said, inquiry.passages.passages)
            return inquiry.judged(against="reference")
        except Stopped as end:
            return end.judged

    def score(self, sample: Sample, judged: Judged) -> Score:
        """The share of claims that are wrong and stand in the contexts; findings are positive for these."""
        if judged.status is not Status.OK:
            return outcome(self, sample, judged, missing_reference="exclude", zeros=frozenset())
        count = len(judged.output_claims)
        pairs = zip(yes(judged.also["other"], count), yes(judged.also["found"], count), strict=True)
        noisy = [there and not true for true, there in pairs]
        verdicts = by_id(judged.also["found"])
        findings = claim_findings("noise_claim", judged.output_claims, verdicts, judged.passages, positive=noisy)
        return outcome(self, sample, judged, exact=recall(noisy), reason=recall_reason(findings), findings=findings)
