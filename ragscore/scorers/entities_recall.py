"""context entities recall: which of the names, dates and amounts of the reference stand in the contexts?"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from ragscore.items import Finding, Score, Status, normalised
from ragscore.judges.claims import ClaimSource
from ragscore.judges.protocol import Judge
from ragscore.judges.tasks import ExtractEntities
from ragscore.scorers.arithmetic import recall
from ragscore.scorers.attribution import Inquiry, Stopped
from ragscore.scorers.outcome import outcome
from ragscore.scorers.protocol import Judged, Sample
from ragscore.scorers.reasons import recall_reason

#: Digits with points or commas between, and those of them that are one number; a date (1.5.2024) is several.
_RUN = re.compile(r"\d+(?:[.,]\d+)+")
_NUMBER = re.compile(r"\d{1,3}(?:[.,]\d{3})+(?:[.,]\d+)?|\d+\.\d+|\d+,\d{1,2}")


@dataclass(frozen=True, slots=True)
class ContextEntitiesRecall:
    """Entities of the reference that stand in the contexts ÷ all its entities × scale.

    The judge lists the entities, once per reference; whether they stand in the contexts is looked up, not judged
    (NFKC, case and white space folded, whole words), so that another retrieval costs no call.

    Args:
        name: The name in the history; two of a kind in one suite need different ones.
        scale: The score of a perfect item; > 0.
        missing_reference: Whether an item without reference takes part in means with its 0 (`zero`) or not (`exclude`).

    Source: context entities recall of RAGAS, which compares two sets that a model extracts.
    """

    name: str = "context_entities_recall"
    scale: Fraction = Fraction(1)
    missing_reference: str = "zero"
    kind: str = "context_entities_recall"
    version: str = "2"

    async def judge(self, sample: Sample, *, judge: Judge, claims: ClaimSource) -> Judged:
        """One call per reference."""
        try:
            inquiry = Inquiry(sample, judge, claims)
            reference = inquiry.reference
            inquiry.need_contexts()
            named = await inquiry.answer("entities", ExtractEntities(sample.item.input, reference))
            if not named.claims:
                raise inquiry.stop(Status.NO_CLAIMS, "the reference names no entity")
            return inquiry.judged(against="reference")
        except Stopped as end:
            return end.judged

    def score(self, sample: Sample, judged: Judged) -> Score:
        """The share of entities that stand in a context."""
        if judged.status is not Status.OK:
            return outcome(self, sample, judged, missing_reference=self.missing_reference)
        texts = [_folded(context.text) for context in sample.contexts.contexts]
        findings = []
        for number, entity in enumerate(judged.also["entities"].claims, start=1):
            ranks = tuple(rank for rank, text in enumerate(texts, start=1) if _stands_in(entity, text))
            quotes = tuple(entity for _ in ranks)
            findings.append(Finding("entity", f"e{number}", number, entity, bool(ranks), sources=ranks, quotes=quotes))
        exact = recall([bool(each.positive) for each in findings])
        return outcome(self, sample, judged, exact=exact, reason=recall_reason(findings), findings=findings)


def _folded(text: str) -> str:
    return normalised(text).casefold()


def _stands_in(entity: str, text: str) -> bool:
    """Whether the entity stands in the (folded) text by itself, not as a part of a longer word or number."""
    wanted = _folded(entity)
    # Scripts without spaces know no word boundaries: there the characters themselves must do.
    before = r"(?<!\w)" if re.match(r"[a-z0-9\u00c0-\u04ff]", wanted) else ""
    after = r"(?!\w)" if re.search(r"[a-z0-9\u00c0-\u04ff]$", wanted) else ""
    if not wanted:
        return False
    longer = [found.span() for found in _RUN.finditer(text) if _NUMBER.fullmatch(found[0])]
    return any(
        not any(start < edge < end for start, end in longer for edge in found.span())
        for found in re.finditer(before + re.escape(wanted) + after, text)
    )
