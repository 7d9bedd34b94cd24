"""What there is to say about one run, computed in the history: figures, faults, advice, worst items.

Nothing here is read item by item but the worst items: a summary takes the same memory for a run of any length.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ragscore.history import (
    History,
    ItemScore,
    RunRow,
    ScorerSummary,
    findings,
    item_scores,
    one_state,
    select,
    summaries,
    worst_items,
)
from ragscore.items import Status, Usage
from ragscore.report.advice import advice_of
from ragscore.scorers import band, rounded
from ragscore.scorers.arithmetic import as_fraction
from ragscore.scorers.reasons import shortened


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
        probe: The requests that made the judge ready, before any item: in no scorer's figures.
    """

    run: RunRow
    history: Path
    scorers: Sequence[ScorerSummary]
    worst: Sequence[WorstItem]
    faults: Sequence[str]
    advice: Sequence[str]
    unanswerable: tuple[int, int, int] | None
    latency: Latency | None
    probe: Usage = field(default_factory=Usage)
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
            "probe": {"calls": self.probe.calls, "cost_usd": self.probe.cost_usd},
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
    # Of one state: a run that is still being written has more rows at the end of this than at its beginning.
    with one_state(history.path, lock_timeout_s=history.lock_timeout_s):
        by_scorer = summaries(history, run.run_id)
        lowest = _worst(history, run.run_id, worst)
        return RunSummary(
            run=run,
            history=history.path,
            scorers=by_scorer,
            worst=lowest,
            faults=_faults(history, run, by_scorer),
            advice=advice_of(history, run),
            unanswerable=_unanswerable(history, run.run_id),
            latency=_latency(history, run.run_id),
            probe=_probe(history, run.run_id),
            any_item=None if lowest else _first_item(history, run.run_id),
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


def _worst(history: History, run_id: str, most: int) -> list[WorstItem]:
    ids = worst_items(history, run_id, most)
    scores: dict[str, list[ItemScore]] = {item_id: [] for item_id in ids}
    for score in item_scores(history, run_id, items=ids):
        if score.exact is not None and score.counted:
            scores[score.item_id].append(score)
    missing: dict[str, dict[str, None]] = {item_id: {} for item_id in ids}
    for found in findings(history, run_id, kind="claim", items=ids):
        if found.finding.positive is False:
            missing[found.item_id][found.finding.text] = None
    return [WorstItem(item_id, scores[item_id][0].input, scores[item_id], list(missing[item_id])) for item_id in ids]


def _faults(history: History, run: RunRow, by_scorer: Sequence[ScorerSummary]) -> list[str]:
    faults = []
    if run.status != "complete":
        query = "SELECT count(DISTINCT item_id) FROM latest_scores WHERE run_id = ?"
        left = run.items - int(select(history.path, query, [run.run_id]).rows[0][0])
        said = [f"{left} of {run.items} items are not done"] if left else []
        if not left and run.status == "cancelled" and not run.error:  # what was in flight was all that was left
            said.append("all items are done, but it was stopped before it ended")
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
        # By the rows and not by the statuses: where less is better, an item without contexts has no score.
        query = """
            SELECT status, count(*), min_by(item_id, (position, item_id)), min_by(reason, (position, item_id)),
                min(position) FROM latest_scores
            WHERE run_id = ? AND scorer = ? AND exact IS NULL AND status <> 'unanswerable'
            GROUP BY status ORDER BY count(*) DESC, status
        """
        lost = select(history.path, query, [run.run_id, each.scorer]).rows
        why = ", ".join(f"{n} {status}" for status, n, *_ in lost)
        first = min(lost, key=lambda row: (row[4], row[2]), default=None)
        told = "" if first is None else f"; first: {first[2]}: {shortened(first[3], 300)}"
        share = f"{_down(each.coverage):.3f}".removesuffix("0")
        low.setdefault(f"{share} is below {run.min_coverage:g}: {why}{told}", []).append(each.scorer)
    faults += [f"coverage of {' and '.join(names)} {said}" for said, names in low.items()]
    return faults


def _is_empty(scorer: ScorerSummary) -> bool:
    """Whether nothing was retrieved for any item, so that a mean of 0 would only look like a bad retriever."""
    present = {status for status, n in scorer.by_status.items() if n} - {Status.UNANSWERABLE}
    return Status.NO_CONTEXT in present and present <= {Status.NO_CONTEXT, Status.NO_REFERENCE}


def _unanswerable(history: History, run_id: str) -> tuple[int, int, int] | None:
    """Precision looks at the contexts: where it shows none, none was retrieved."""
    query = """
        WITH of_item AS (
            SELECT item_id, bool_or(kind = 'context_precision') AS is_looked_at FROM latest_scores
            WHERE run_id = $1 AND item_id IN
                (SELECT item_id FROM latest_scores WHERE run_id = $1 AND status = 'unanswerable')
            GROUP BY item_id
        ), shown AS (
            SELECT item_id, true AS is_shown, bool_or(positive) AS is_any FROM latest_verdicts
            WHERE run_id = $1 AND kind = 'context' GROUP BY item_id
        ), found AS (
            SELECT CASE WHEN is_shown THEN is_any WHEN is_looked_at THEN false END AS is_any
            FROM of_item LEFT JOIN shown USING (item_id)
        )
        SELECT count(*) FILTER (NOT is_any), count(is_any), count(*) FROM found
    """
    ((nothing_relevant, known, items),) = select(history.path, query, [run_id]).rows
    return (int(nothing_relevant), int(known), int(items)) if items else None


def _first_item(history: History, run_id: str) -> str | None:
    query = "SELECT item_id FROM latest_scores WHERE run_id = ? ORDER BY position, item_id LIMIT 1"
    return next((str(item_id) for (item_id,) in select(history.path, query, [run_id]).rows), None)


def _probe(history: History, run_id: str) -> Usage:
    columns = ("prompt_tokens", "completion_tokens", "cached_tokens", "cost_usd")
    sums = ", ".join(f"CASE WHEN count({each}) = count(*) THEN sum({each}) END" for each in columns)
    query = f"SELECT count(*), {sums} FROM judge_calls WHERE run_id = ? AND item_id = '' AND outcome = 'ok'"
    ((calls, *known),) = select(history.path, query, [run_id]).rows
    return Usage(int(calls), 0, *known) if calls else Usage()


def _latency(history: History, run_id: str) -> Latency | None:
    query = "SELECT median(latency_ms), quantile_cont(latency_ms, 0.95) FROM latest_items WHERE run_id = ?"
    ((p50, p95),) = select(history.path, query, [run_id]).rows
    return None if p50 is None else Latency(float(p50), float(p95))
