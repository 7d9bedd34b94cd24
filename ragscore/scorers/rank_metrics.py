"""Rank metrics: retrieval scored by ids alone, without a judge.

What is relevant comes from the item: `reference_context_ids`, or grades by id in `metadata["relevance"]` (qrels; a
grade of 0 or less is not relevant). What was retrieved are the ids of the contexts, in rank order. Of an id that comes
twice only the first occurrence counts: later ones keep their rank and are not relevant, so no repeat lifts a value.

Definitions are those of trec_eval (https://github.com/usnistgov/trec_eval), so that values are comparable with
ir-measures and pytrec_eval.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from ragscore.items import Context, Finding, Item, Score, Status
from ragscore.judges.claims import ClaimSource
from ragscore.judges.protocol import Judge
from ragscore.scorers.arithmetic import as_fraction
from ragscore.scorers.outcome import outcome
from ragscore.scorers.protocol import Judged, Sample

Metric = Literal["precision_at_k", "recall_at_k", "hit_rate", "mrr", "average_precision", "ndcg_at_k"]
#: Digits after the point to which nDCG, the one metric with logarithms, is kept.
NDCG_DIGITS = 12


@dataclass(frozen=True, slots=True)
class RankMetric:
    """One rank metric × scale.

    Args:
        kind: `precision_at_k` (relevant in the first k ÷ k), `recall_at_k` (relevant in the first k ÷ all relevant),
            `hit_rate` (1 if one of the first k is relevant), `mrr` (1 ÷ rank of the first relevant one),
            `average_precision` (Σ of precision at the relevant ranks ÷ all relevant) or `ndcg_at_k` (gain is the grade,
            discount log2(rank + 1), ÷ that of the ideal order).
        name: The name in the history; two of a kind in one suite need different ones.
        scale: The score of a perfect item; > 0.
        k: How many ranks are looked at; all that were retrieved when left out.
        missing_reference: Whether an item without relevant ids takes part in means with its 0 (`zero`) or not
            (`exclude`).

    Source: trec_eval's `P`, `recall`, `success`, `recip_rank`, `map` and `ndcg`; nDCG is Järvelin and Kekäläinen, 2002
    (https://doi.org/10.1145/582415.582418). Unlike `context_precision`, `average_precision` divides by *all* relevant
    ids, retrieved or not.
    """

    kind: Metric
    name: str = ""
    scale: Fraction = Fraction(1)
    k: int | None = None
    missing_reference: str = "zero"
    version: str = "1"

    def __post_init__(self) -> None:
        if not self.name:
            object.__setattr__(self, "name", self.kind)

    async def judge(self, sample: Sample, *, judge: Judge, claims: ClaimSource) -> Judged:
        """Nothing is asked of a judge."""
        if not sample.item.answerable:
            return Judged(Status.UNANSWERABLE)
        if not grades_of(sample.item):
            return Judged(Status.NO_REFERENCE)
        return Judged(Status.OK if sample.contexts.contexts else Status.NO_CONTEXT, against="reference_context_ids")

    def score(self, sample: Sample, judged: Judged) -> Score:
        """The metric.

        Raises:
            ValueError: contexts were retrieved and none of them has an id; becomes the item's `scorer_error`.
        """
        grades = grades_of(sample.item)
        contexts = sample.contexts.contexts
        if judged.status is Status.OK and all(context.id is None for context in contexts):
            raise ValueError("no retrieved context has an id to compare with reference_context_ids")
        exact = reason = None
        findings: list[Finding] = []
        if judged.status is Status.OK:
            findings = _findings(contexts, grades)
            found = [
                grades.get(context.id or "", 0) if f.positive else 0
                for context, f in zip(contexts, findings, strict=True)
            ]
            exact = measured(self.kind, found, list(grades.values()), k=self.k)
            reason = _reason(self.kind, contexts, findings, grades, self.k)
        judged_by_ids = outcome(
            self,
            sample,
            judged,
            missing_reference=self.missing_reference,
            exact=exact,
            reason=reason
            or ("the item has no reference_context_ids" if judged.status is Status.NO_REFERENCE else None),
            findings=findings,
        )
        return judged_by_ids


def grades_of(item: Item) -> dict[str, int]:
    """The relevant ids of an item with their grades (1 where it gives none), all > 0."""
    graded = item.metadata.get("relevance")
    if isinstance(graded, Mapping) and graded:
        return {str(id): int(grade) for id, grade in graded.items() if int(grade) > 0}
    return dict.fromkeys(item.reference_context_ids, 1)


def measured(metric: Metric, found: Sequence[int], relevant: Sequence[int], *, k: int | None = None) -> Fraction:
    """The value of `metric`, in 0..1.

    Args:
        metric: Which one.
        found: The grade at each rank, first rank first; 0 for what is not relevant. Each relevant id at most once.
        relevant: The grades of all relevant ids; not empty.
        k: How many ranks are looked at; all when left out.

    >>> measured("precision_at_k", [1, 0, 1], [1, 1, 1], k=5), measured("mrr", [0, 1], [1])
    (Fraction(2, 5), Fraction(1, 2))
    """
    depth = len(found) if k is None else k
    seen = list(found[:depth])
    hits = sum(grade > 0 for grade in seen)
    match metric:
        case "precision_at_k":
            return Fraction(hits, depth) if depth else Fraction(0)
        case "recall_at_k":
            return Fraction(hits, len(relevant))
        case "hit_rate":
            return Fraction(bool(hits))
        case "mrr":
            first = next((rank for rank, grade in enumerate(seen, start=1) if grade > 0), None)
            return Fraction(1, first) if first else Fraction(0)
        case "average_precision":
            total, so_far = Fraction(0), 0
            for rank, grade in enumerate(seen, start=1):
                if grade > 0:
                    so_far += 1
                    total += Fraction(so_far, rank)
            return total / len(relevant)
        case "ndcg_at_k":
            ideal = _dcg(sorted(relevant, reverse=True)[: depth if k is not None else None])
            return as_fraction(round(min(_dcg(seen) / ideal, 1.0), NDCG_DIGITS)) if ideal else Fraction(0)


def _dcg(grades: Sequence[int]) -> float:
    return math.fsum(grade / math.log2(rank + 1) for rank, grade in enumerate(grades, start=1))


def _findings(contexts: Sequence[Context], grades: Mapping[str, int]) -> list[Finding]:
    first: dict[str, int] = {}
    findings = []
    for rank, context in enumerate(contexts, start=1):
        if context.id is None:
            findings.append(Finding("context", str(rank), rank, context.text, False, why="the context has no id"))
            continue
        at = first.setdefault(context.id, rank)
        relevant = context.id in grades and at == rank
        if at != rank:
            why = f"{context.id} stands at rank {at} already"
        else:
            why = (
                f"{context.id}: grade {grades[context.id]}"
                if relevant
                else f"{context.id} is not among the reference ids"
            )
        findings.append(
            Finding(
                "context", str(rank), rank, context.text, relevant, why=why, duplicate_of=at if at != rank else None
            )
        )
    return findings


def _reason(
    metric: str, contexts: Sequence[Context], findings: Sequence[Finding], grades: Mapping[str, int], k: int | None
) -> str:
    shown = [f"#{f.rank} ✓ {f.why}" for f in findings if f.positive and (k is None or f.rank <= k)]
    there = {context.id for context in contexts[:k]}
    missing = [id for id in grades if id not in there]
    head = f"{metric}: {len(shown)}/{len(grades)} relevant ids in the first {k or len(contexts)}"
    return "\n".join([head, *shown, *(f"✗ {id}" for id in missing)])
