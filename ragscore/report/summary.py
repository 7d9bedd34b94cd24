"""What there is to say about one run, computed from the history: figures, faults, advice, worst items."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragscore.history import (
    History,
    ItemFinding,
    ItemScore,
    RunRow,
    ScorerSummary,
    findings,
    item_scores,
    select,
    summaries,
)
from ragscore.items import Status, normalised
from ragscore.judges.agreement import krippendorff_alpha
from ragscore.scorers import band, mean, rounded
from ragscore.scorers.arithmetic import as_fraction
from ragscore.scorers.reasons import shortened

#: A claim that is missing in this many items at least is named in the advice.
OFTEN = 3
#: From this share of items on, a pattern is worth a line of advice.
MUCH = 0.2


@dataclass(frozen=True, slots=True)
class Latency:
    """Milliseconds that the target took per item: the median and the 95th percentile."""

    p50_ms: float
    p95_ms: float


@dataclass(frozen=True, slots=True)
class WorstItem:
    """An item with low scores: its scores by scorer, and the claims that its contexts do not support."""

    item_id: str
    input: str | None
    scores: Sequence[ItemScore]
    missing: Sequence[str]


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One run as it is shown.

    Attributes:
        run: The run's row.
        history: The file that it is in.
        scorers: Per scorer mean, n, coverage and counts by status.
        worst: The items with the lowest scores, over all scorers, lowest first; full scores never.
        faults: Why the run cannot be relied on; not empty means exit 3.
        advice: At most a few lines on what the verdicts point to.
        unanswerable: Of the items marked as not answerable, where nothing relevant was retrieved, and of how many
            that is known; None when there are none.
        latency: Of the target; None when it was never measured.
    """

    run: RunRow
    history: Path
    scorers: Sequence[ScorerSummary]
    worst: Sequence[WorstItem]
    faults: Sequence[str]
    advice: Sequence[str]
    unanswerable: tuple[int, int, int] | None
    latency: Latency | None
    any_item: str | None = None

    @property
    def first_item(self) -> str | None:
        """The item to look at first: the worst one, else the first that has a row."""
        return self.worst[0].item_id if self.worst else self.any_item

    def as_dict(self) -> dict[str, Any]:
        """The summary as JSON."""
        run = self.run
        return {
            "run_id": run.run_id,
            "suite": run.suite,
            "retriever": run.retriever,
            "version": run.version,
            "status": run.status,
            "judge": run.judge,
            "items": run.items,
            "faults": list(self.faults),
            "gate": run.gate,
            "advice": list(self.advice),
            "unanswerable": dict(zip(("nothing_relevant", "known", "items"), self.unanswerable, strict=True))
            if self.unanswerable
            else None,
            "latency_ms": {"p50": self.latency.p50_ms, "p95": self.latency.p95_ms} if self.latency else None,
            "scorers": [
                {
                    "scorer": each.scorer,
                    "mean": each.mean,
                    "scale": each.scale,
                    "n": each.n,
                    "coverage": each.coverage,
                    "against": each.against,
                    "against_mixed": each.against_mixed,
                    "duplicates": each.duplicates,
                    "by_status": {str(status): count for status, count in each.by_status.items()},
                    "calls": each.calls,
                    "remembered": each.remembered,
                    "cost_usd": each.cost_usd,
                }
                for each in self.scorers
            ],
            "worst": [
                {
                    "item_id": each.item_id,
                    "scores": {score.scorer: score.score for score in each.scores},
                    "missing": list(each.missing),
                }
                for each in self.worst
            ],
        }


def summary_of(history: History, run: RunRow, *, worst: int = 3) -> RunSummary:
    """Compute the summary of a run.

    Args:
        history: Where the run is.
        run: The run's row.
        worst: How many of the items with the lowest scores.
    """
    by_scorer = summaries(history, run.run_id)
    decided = findings(history, run.run_id)
    scores = item_scores(history, run.run_id)
    return RunSummary(
        run=run,
        history=history.path,
        scorers=by_scorer,
        worst=_worst(scores, decided, worst),
        faults=_faults(run, by_scorer, scores),
        advice=[*_advice(decided, scores), *_agreement(run, decided)],
        unanswerable=_unanswerable(decided, scores),
        latency=_latency(history, run.run_id),
        any_item=scores[0].item_id if scores else None,
    )


def mean_shown(mean_exact: float, scale: float) -> str:
    """A mean in its scale, with 2 decimals and the field's word for it."""
    # The mean comes as a double, and 0.7 may be a hair less there: within 12 decimals it is what it should be.
    exact = as_fraction(round(mean_exact, 12))
    return f"{rounded(exact, as_fraction(scale)):.2f} {band(exact)}"


def coverage_shown(coverage: float) -> str:
    """A share in per cent, rounded down: what is not complete never reads 100 %, and 94.96 % not as 95 %."""
    return f"{_down(coverage) * 100:.3g}%"


def _down(share: float) -> float:
    return math.floor(share * 1000 + 1e-9) / 1000


def _worst(scores: Sequence[ItemScore], decided: Sequence[ItemFinding], most: int) -> list[WorstItem]:
    of_item: dict[str, list[ItemScore]] = {}
    for score in scores:
        if score.exact is not None and score.counted:
            of_item.setdefault(score.item_id, []).append(score)
    low = [(mean([s.exact for s in each if s.exact is not None]), item_id) for item_id, each in of_item.items()]
    lowest = sorted((pair for pair in low if pair[0] is not None and pair[0] < 1), key=lambda pair: pair[0] or 0)
    missing: dict[str, dict[str, None]] = {}
    for found in decided:
        if found.finding.kind == "claim" and found.finding.positive is False:
            missing.setdefault(found.item_id, {})[found.finding.text] = None
    return [
        WorstItem(item_id, of_item[item_id][0].input, of_item[item_id], list(missing.get(item_id, ())))
        for _, item_id in lowest[:most]
    ]


def _faults(run: RunRow, by_scorer: Sequence[ScorerSummary], scores: Sequence[ItemScore]) -> list[str]:
    faults = []
    if run.status != "complete":
        left = run.items - len({score.item_id for score in scores})
        said = [f"{left} of {run.items} items are not done"] if left else []
        said += [shortened(run.error, 300)] if run.error else []
        faults.append(f"the run is {run.status}" + (f": {'; '.join(said)}" if said else ""))
    if not by_scorer and run.status == "complete":
        faults.append("nothing was scored")
    empty = [each.scorer for each in by_scorer if _is_empty(each)]
    if empty:
        faults.append(
            f"no contexts for any item of {' and '.join(empty)}: this measures no retriever — is the index empty, or "
            "do `contexts:` look in the wrong place?"
        )
    low: dict[str, list[str]] = {}
    for each in by_scorer:
        if each.coverage is None or each.coverage >= run.min_coverage:
            continue
        lost = {status: n for status, n in each.by_status.items() if status not in SCORED and n}
        first = next((s for s in scores if s.scorer == each.scorer and s.status in lost), None)
        why = ", ".join(f"{n} {status}" for status, n in lost.items())
        told = f"; first: {first.item_id}: {shortened(first.reason, 300)}" if first is not None else ""
        share = f"{_down(each.coverage):.3f}".removesuffix("0")
        low.setdefault(f"{share} is below {run.min_coverage:g}: {why}{told}", []).append(each.scorer)
    faults += [f"coverage of {' and '.join(names)} {said}" for said, names in low.items()]
    return faults


def _is_empty(scorer: ScorerSummary) -> bool:
    """Whether nothing was retrieved for any item, so that a mean of 0 would only look like a bad retriever."""
    present = {status for status, n in scorer.by_status.items() if n} - {Status.UNANSWERABLE}
    return Status.NO_CONTEXT in present and present <= {Status.NO_CONTEXT, Status.NO_REFERENCE}


#: Statuses whose rows have a score, or of which none is expected.
SCORED = frozenset({Status.OK, Status.NO_REFERENCE, Status.NO_CONTEXT, Status.UNANSWERABLE})


def _advice(decided: Sequence[ItemFinding], scores: Sequence[ItemScore]) -> list[str]:
    advice = []
    facts = {
        (each.item_id, normalised(each.finding.text))
        for each in decided
        if each.finding.kind == "claim" and each.finding.positive is False
    }
    missing = Counter(claim for _, claim in sorted(facts))
    for claim, count in missing.most_common(1):
        if count >= OFTEN:
            advice.append(f"one fact is missing in {count} items: “{claim}” — is it in the index?")
    # By item: several scorers may judge the same contexts, in which case the first of them speaks for the item.
    scored = {(s.item_id, s.scorer) for s in scores if s.status is Status.OK}
    speaker: dict[str, str] = {}
    ranks: dict[str, list[bool]] = {}
    for each in decided:
        if each.finding.kind != "context" or (each.item_id, each.scorer) not in scored:
            continue
        if speaker.setdefault(each.item_id, each.scorer) == each.scorer:
            ranks.setdefault(each.item_id, []).append(bool(each.finding.positive))
    judged = list(ranks)
    late = [item for item in judged if any(ranks[item]) and not ranks[item][0]]
    none = [item for item in judged if not any(ranks[item])]
    if judged and len(late) >= max(OFTEN, MUCH * len(judged)):
        advice.append(
            f"in {len(late)} of {len(judged)} items the first useful context stands behind useless ones — "
            "look at the ranking (a reranker, the query's words)"
        )
    if judged and len(none) >= max(OFTEN, MUCH * len(judged)):
        advice.append(
            f"in {len(none)} of {len(judged)} items no context is useful — the index lacks it, or chunks are too small"
        )
    return advice


def _agreement(run: RunRow, decided: Sequence[ItemFinding]) -> list[str]:
    """How far the members of a jury agree: Krippendorff's alpha over the verdicts that all of them voted on."""
    try:
        seats = len(json.loads(run.judge_params)["jury"])
    except (ValueError, KeyError, TypeError):
        return []
    units = []
    for each in decided:
        finding = each.finding
        if finding.confidence is None or finding.positive is None or any("voted" in said for said in finding.warnings):
            continue
        agree = round(finding.confidence * seats)
        units.append([finding.positive] * agree + [not finding.positive] * (seats - agree))
    alpha = krippendorff_alpha(units)
    if alpha is None:
        return []
    return [f"the {seats} judges agree by Krippendorff's alpha {float(alpha):.2f} over {len(units)} verdicts"]


def _unanswerable(decided: Sequence[ItemFinding], scores: Sequence[ItemScore]) -> tuple[int, int, int] | None:
    items = {s.item_id for s in scores if s.status is Status.UNANSWERABLE}
    if not items:
        return None
    found: dict[str, bool] = {}
    for each in decided:
        if each.item_id in items and each.finding.kind == "context" and each.finding.positive is not None:
            found[each.item_id] = found.get(each.item_id, False) or each.finding.positive
    shown = {each.item_id for each in decided if each.finding.kind == "context"}
    for score in scores:  # precision looks at the contexts: where it shows none, none was retrieved
        if score.item_id in items - shown and score.kind == "context_precision":
            found[score.item_id] = False
    return sum(not any_ for any_ in found.values()), len(found), len(items)


def _latency(history: History, run_id: str) -> Latency | None:
    query = "SELECT median(latency_ms), quantile_cont(latency_ms, 0.95) FROM latest_items WHERE run_id = ?"
    ((p50, p95),) = select(history.path, query, [run_id]).rows
    return None if p50 is None else Latency(float(p50), float(p95))
