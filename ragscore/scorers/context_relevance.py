"""context relevance: how much of what was retrieved is relevant, graded, and was it used?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from ragscore.items import Finding, Score, Status
from ragscore.judges.claims import ClaimSource
from ragscore.judges.protocol import Judge
from ragscore.judges.tasks import GradeContexts
from ragscore.scorers.attribution import Inquiry, Stopped, claim_findings, yes
from ragscore.scorers.outcome import by_id, finding, outcome
from ragscore.scorers.protocol import Judged, Sample
from ragscore.scorers.reasons import shortened

#: What a grade counts, and what is taken off (the defaults; settings of the scorer).
WEIGHTS: Mapping[str, Fraction] = {
    "high": Fraction(1),
    "medium": Fraction(7, 10),
    "low": Fraction(3, 10),
    "none": Fraction(0),
}
UNUSED, MISSING, MOST_MISSING = Fraction(1, 10), Fraction(15, 100), Fraction(1, 2)


@dataclass(frozen=True, slots=True)
class ContextRelevance:
    """Mean weight of the contexts' grades, less penalties, × scale; never below 0.

    Each distinct context is graded high, medium, low or none for the question, and whether the output uses it. Off go
    `unused` for each highly relevant context that the output does not use (only where there is an output), and
    `missing` for each claim of the reference that no context supports (only where there is a reference), the latter up
    to `most_missing`. Ranks play no part.

    Args:
        name: The name in the history; two of a kind in one suite need different ones.
        scale: The score of a perfect item; > 0.
        weights: What a grade counts, 0..1: high 1, medium 0.7, low 0.3, none 0.
        unused: Taken off per unused context of grade high: 0.1.
        missing: Taken off per missing claim: 0.15.
        most_missing: Taken off for missing claims at most: 0.5.

    Source: the graded, use-aware context relevance of Mastra, with its defaults; missing information is not invented
    by the judge but counted from the claims of the reference, which `context_recall` asks about, too.
    """

    name: str = "context_relevance"
    scale: Fraction = Fraction(1)
    weights: Mapping[str, Fraction] = field(default_factory=lambda: WEIGHTS)
    unused: Fraction = UNUSED
    missing: Fraction = MISSING
    most_missing: Fraction = MOST_MISSING
    kind: str = "context_relevance"
    version: str = "1"

    async def judge(self, sample: Sample, *, judge: Judge, claims: ClaimSource) -> Judged:
        """One call for the grades, and one for missing information where there is a reference."""
        try:
            inquiry = Inquiry(sample, judge, claims)
            inquiry.need_contexts()
            said = sample.output if sample.output and sample.output.strip() else None
            against = "output" if said is not None else "question"
            task = GradeContexts(sample.item.input, said, "output" if said else "question", inquiry.passages.passages)
            graded = await judge.ask(task)
            inquiry.made["grades"] = graded
            if graded.status is not Status.OK:
                raise inquiry.stop(graded.status)
            undecided = [p.id for p in task.passages if p.id not in by_id(graded)]
            if undecided:
                raise inquiry.stop(Status.JUDGE_ERROR, f"no grade for {', '.join(undecided)}")
            known = claims.known(sample.item)
            if known is not None or (sample.item.reference and sample.item.reference.strip()):
                try:
                    texts = await inquiry.of_reference()
                except Stopped as end:
                    if end.judged.status is not Status.NO_CLAIMS:  # a reference without claims misses nothing
                        raise
                else:
                    await inquiry.supported("found", texts, inquiry.passages.passages)
            return inquiry.judged(against=against)
        except Stopped as end:
            return end.judged

    def score(self, sample: Sample, judged: Judged) -> Score:
        """The mean weight less penalties."""
        if judged.status is not Status.OK or judged.passages is None:
            return outcome(self, sample, judged)
        verdicts = by_id(judged.also["grades"])
        grades = {p.id: (verdicts[p.id].label or "none").partition(" ") for p in judged.passages.passages}
        total = sum((self.weights[grade] for grade, _, _ in grades.values()), Fraction(0)) / len(grades)
        left = sum(grade == "high" and used != "used" for grade, _, used in grades.values())
        unused = self.unused * left if judged.against == "output" else Fraction(0)
        findings = _context_findings(sample, judged, grades)
        lacking: list[Finding] = []
        if "found" in judged.also and judged.claims is not None:
            texts = judged.claims.claims
            found = by_id(judged.also["found"])
            claims = claim_findings("claim", texts, found, judged.passages)
            there = yes(judged.also["found"], len(texts))
            lacking = [each for each, yes_ in zip(claims, there, strict=True) if not yes_]
            findings += claims
        missing = min(self.missing * len(lacking), self.most_missing)
        exact = max(Fraction(0), total - unused - missing)
        lines = [f"{float(total):.4g} − {float(unused):g} (unused) − {float(missing):g} (missing)"]
        lines += [f"#{f.rank} {f.why}" for f in findings if f.kind == "context"]
        lines += [f"✗ {shortened(f.text)}" for f in lacking]
        return outcome(self, sample, judged, exact=exact, reason="\n".join(lines), findings=findings)


def _context_findings(sample: Sample, judged: Judged, grades: Mapping[str, tuple[str, str, str]]) -> list[Finding]:
    assert judged.passages is not None
    verdicts = by_id(judged.also["grades"])
    found = []
    for id, ranks in judged.passages.ranks.items():
        for rank in ranks:
            grade, _, used = grades[id]
            told = f"{grade}, {'used' if used else 'not used'}" if judged.against == "output" else grade
            found.append(
                finding(
                    "context",
                    id=str(rank),
                    rank=rank,
                    text=sample.contexts.contexts[rank - 1].text,
                    verdict=verdicts[id],
                    passages=judged.passages,
                    why=f"{told}: {verdicts[id].why}".removesuffix(": "),
                    duplicate_of=ranks[0] if rank != ranks[0] else None,
                )
            )
    return sorted(found, key=lambda each: each.rank)
