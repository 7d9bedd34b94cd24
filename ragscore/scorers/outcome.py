"""From a judged sample to a `Score`: the parts that every judged scorer shares."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction

from ragscore.items import Finding, Judgement, Score, Status, Verdict
from ragscore.scorers.arithmetic import rounded
from ragscore.scorers.protocol import Judged, Passages, Sample, Scorer

#: Statuses that have a score of 0 by definition, without asking a judge (DESIGN §4).
ZEROS = frozenset({Status.NO_REFERENCE, Status.NO_CONTEXT})

WHY_UNSCORED = {
    Status.UNANSWERABLE: "marked as not answerable",
    Status.NO_REFERENCE: "nothing to judge against: the item has no reference",
    Status.NO_CLAIMS: "the reference states no claim",
    Status.NO_CONTEXT: "no context was retrieved",
    Status.ABSTAINED: "the judge cannot say",
    Status.BUDGET: "the budget was spent before this item",
    Status.JUDGE_ERROR: "the judge failed",
}


def unscored(scorer: Scorer, status: Status, reason: str, *, error: str | None = None) -> Score:
    """A row that says why there is no score, for failures outside the judge part."""
    return Score(
        scorer=scorer.name,
        kind=scorer.kind,
        status=status,
        scale=float(scorer.scale),
        reason=reason,
        counted=False,
        error=error,
        scorer_version=scorer.version,
    )


def outcome(
    scorer: Scorer,
    sample: Sample,
    judged: Judged,
    *,
    missing_reference: str = "zero",
    exact: Fraction | None = None,
    reason: str | None = None,
    findings: Iterable[Finding] = (),
    error: str | None = None,
    zeros: frozenset[Status] = ZEROS,
) -> Score:
    """The score row of a judged sample.

    With `exact` the status is OK unless `judged.status` says otherwise; statuses that are zero by definition
    get their 0; every other one stays without a score. Scorers of which less is better have no `zeros`: there a 0
    would be praise.
    """
    status = judged.status
    if status is Status.OK and exact is None:
        status = Status.JUDGE_ERROR
    if status in zeros:
        exact = Fraction(0)
    elif status is not Status.OK:
        exact = None
    last = _decisive(judged)
    said = error or (last.error if last is not None else None)
    if reason is None:
        reason = judged.why or WHY_UNSCORED.get(status, status.value)
        if said:
            reason = f"{reason}: {said}"
    excluded = status is Status.NO_REFERENCE and missing_reference == "exclude"
    return Score(
        scorer=scorer.name,
        kind=scorer.kind,
        status=status,
        exact=exact,
        value=None if exact is None else rounded(exact, scorer.scale),
        scale=float(scorer.scale),
        reason=reason,
        against=judged.against,
        findings=tuple(findings),
        counted=exact is not None and not excluded,
        error=said if status is not Status.OK else None,
        raw=last.raw if last is not None and status is not Status.OK else None,
        context_set=sample.contexts.source,
        claim_set=judged.claims.hash if judged.claims is not None else None,
        judge=last.judge if last is not None else "",
        judge_params=last.params if last is not None else "{}",
        prompt_version=last.prompt_version if last is not None else "",
        scorer_version=scorer.version,
        usage=judged.usage,
        calls=judged.calls,
    )


def decided(
    scorer: Scorer,
    sample: Sample,
    judged: Judged,
    findings: Sequence[Finding],
    *,
    missing_reference: str,
    exact: Callable[[Sequence[bool]], Fraction],
    reason: Callable[[Sequence[Finding], Fraction], str],
    named: str = "",
) -> Score:
    """The score row that follows from a decision per finding; a missing decision is a judge error, and no "no".

    Args:
        scorer: Whose row it is.
        sample: What was judged.
        judged: What the judge part gave.
        findings: One per claim or context, in order.
        missing_reference: `zero` or `exclude`.
        exact: The score by the decisions.
        reason: What is said about it.
        named: What the ids of findings are, before they are named as undecided.
    """
    undecided = [each.id for each in findings if each.positive is None]
    found = said = error = None
    if judged.status is Status.OK and undecided:
        error = f"no verdict for {named}{', '.join(undecided)}"
    elif judged.status is Status.OK:
        found = exact([bool(each.positive) for each in findings])
        said = reason(findings, found)
    return outcome(
        scorer,
        sample,
        judged,
        missing_reference=missing_reference,
        exact=found,
        reason=said,
        findings=findings,
        error=error,
    )


def _decisive(judged: Judged) -> Judgement | None:
    """The judgement that decided the status: the one that failed, else the last one."""
    asked = judged.judgements
    failed = next((each for each in asked if each.status is not Status.OK), None)
    return failed or judged.judgement or (asked[-1] if asked else None)


def by_id(judgement: Judgement | None) -> dict[str, Verdict]:
    """The verdicts by the id they echo; of several for one id the first counts."""
    verdicts: dict[str, Verdict] = {}
    for verdict in judgement.verdicts if judgement is not None else ():
        verdicts.setdefault(verdict.id, verdict)
    return verdicts


def finding(
    kind: str,
    *,
    id: str,
    rank: int,
    text: str,
    verdict: Verdict | None,
    passages: Passages | None,
    positive: bool | None = None,
    why: str = "",
    duplicate_of: int | None = None,
) -> Finding:
    """One row of a score's evidence; without a verdict, `positive` and `why` say what is known."""
    if verdict is None:
        return Finding(kind, id, rank, text, positive, why=why, duplicate_of=duplicate_of)
    located = [(passages.rank_of(e.passage) if passages is not None else None, e) for e in verdict.evidence]
    return Finding(
        kind,
        id,
        rank,
        text,
        verdict.positive if positive is None else positive,
        why=why or verdict.why,
        sources=tuple(rank for rank, _ in located if rank is not None),
        quotes=tuple(e.quote for rank, e in located if rank is not None),
        verified=all(e.verified for _, e in located) if located else None,
        warnings=verdict.warnings,
        confidence=verdict.confidence,
        remembered=verdict.remembered,
        duplicate_of=duplicate_of,
    )
