"""answer relevancy, similarity and correctness: the output against the question and against the reference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from ragscore.items import Score, Status
from ragscore.judges.claims import ClaimSource
from ragscore.judges.protocol import Judge
from ragscore.judges.tasks import RateStatements
from ragscore.scorers.arithmetic import mean, recall, rounded
from ragscore.scorers.attribution import (
    OUTPUT_CLAIM,
    STATED_CLAIM,
    Inquiry,
    Stopped,
    as_passage,
    claim_findings,
    numbered,
    yes,
)
from ragscore.scorers.outcome import by_id, outcome
from ragscore.scorers.protocol import Judged, Sample
from ragscore.scorers.reasons import recall_reason, shortened

Measure = Literal["f1", "precision", "recall"]


@dataclass(frozen=True, slots=True)
class AnswerRelevancy:
    """Mean over the claims of the output: 1 where it answers the question, `unsure` where it may, 0 where not; × scale.

    Needs an output, neither reference nor contexts. Truth does not matter here.

    Args:
        name: The name in the history; two of a kind in one suite need different ones.
        scale: The score of a perfect item; > 0.
        unsure: What an uncertain claim counts, in 0..1.

    Source: the statement-wise form (DeepEval, Mastra, with 0.3 for unsure), not RAGAS's, which compares questions made
    from the answer by embeddings.
    """

    name: str = "answer_relevancy"
    scale: Fraction = Fraction(1)
    unsure: Fraction = Fraction(3, 10)
    kind: str = "answer_relevancy"
    version: str = "1"

    async def judge(self, sample: Sample, *, judge: Judge, claims: ClaimSource) -> Judged:
        """At most two calls: the claims of the output, and whether they answer."""
        try:
            inquiry = Inquiry(sample, judge, claims)
            said = numbered(await inquiry.of_output())
            await inquiry.answer("judgement", RateStatements(sample.item.input, said))
            return inquiry.judged(against="question")
        except Stopped as end:
            return end.judged

    def score(self, sample: Sample, judged: Judged) -> Score:
        """The mean of the claims' values."""
        if judged.status is not Status.OK:
            return outcome(self, sample, judged)
        verdicts = by_id(judged.also["judgement"])
        values: Mapping[str, Fraction] = {"yes": Fraction(1), "unsure": self.unsure, "no": Fraction(0)}
        labels = [verdicts[f"c{n}"].label or "no" for n in range(1, len(judged.output_claims) + 1)]
        findings = claim_findings("answering_claim", judged.output_claims, verdicts, None)
        exact = mean([values[each] for each in labels])
        lines = [f"{each}: {shortened(text)}" for each, text in zip(labels, judged.output_claims, strict=True)]
        return outcome(self, sample, judged, exact=exact, reason="\n".join(lines), findings=findings)


@dataclass(frozen=True, slots=True)
class AnswerMatch:
    """How far output and reference say the same, by claims matched both ways, × scale.

    `recall` is the share of the reference's claims that the output states, `precision` the share of the output's
    claims that the reference supports, `f1` their harmonic mean (0 where both are 0).

    Args:
        kind: `answer_similarity` (f1 by default) or `answer_correctness` (precision by default: nothing said that the
            reference does not support).
        measure: Which of the three is the score.
        name: The name in the history; two of a kind in one suite need different ones.
        scale: The score of a perfect item; > 0.
        missing_reference: Whether an item without reference takes part in means with its 0 (`zero`) or not (`exclude`).

    Source: claim-level precision, recall and F1 of RAGChecker (Ru et al., 2024, https://arxiv.org/abs/2408.08067).
    RAGAS's namesakes add or are embedding similarity.
    """

    kind: str = "answer_similarity"
    measure: Measure = "f1"
    name: str = ""
    scale: Fraction = Fraction(1)
    missing_reference: str = "zero"
    version: str = "1"

    def __post_init__(self) -> None:
        if not self.name:
            object.__setattr__(self, "name", self.kind)

    async def judge(self, sample: Sample, *, judge: Judge, claims: ClaimSource) -> Judged:
        """At most four calls, of which most are shared with other scorers."""
        try:
            inquiry = Inquiry(sample, judge, claims)
            # Claims that a person gave are enough for recall; precision needs the reference itself.
            enough = self.measure == "recall" and claims.known(sample.item) is not None
            reference = "" if enough else inquiry.reference
            output = inquiry.output
            if self.measure != "precision":
                await inquiry.supported("recall", await inquiry.of_reference(), as_passage(output))
            if self.measure != "recall":
                await inquiry.supported("precision", await inquiry.of_output(), as_passage(reference))
            return inquiry.judged(against="reference")
        except Stopped as end:
            return end.judged

    def score(self, sample: Sample, judged: Judged) -> Score:
        """The measure, exactly."""
        if judged.status is not Status.OK:
            return outcome(self, sample, judged, missing_reference=self.missing_reference)
        findings = []
        shares: dict[str, Fraction] = {}
        for side, kind, prefix, texts in (
            ("recall", STATED_CLAIM, "c", judged.claims.claims if judged.claims else ()),
            ("precision", OUTPUT_CLAIM, "o", judged.output_claims),
        ):
            if side in judged.also:
                found = claim_findings(kind, texts, by_id(judged.also[side]), None, prefix=prefix)
                shares[side] = recall(yes(judged.also[side], len(found)))
                findings += found
        exact = shares[self.measure] if self.measure in shares else _harmonic(*shares.values())
        head = ", ".join(f"{side} {rounded(share):g}" for side, share in shares.items())
        reason = f"{head}\n{recall_reason(findings)}"
        return outcome(self, sample, judged, exact=exact, reason=reason, findings=findings)


def _harmonic(one: Fraction, other: Fraction) -> Fraction:
    return 2 * one * other / (one + other) if one + other else Fraction(0)
