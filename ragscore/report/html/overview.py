"""Where every suite stands: its trends, and the run that stands for it now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from ragscore.errors import UsageError
from ragscore.gate import find_baseline
from ragscore.gate.baselines import LAST_PASSING
from ragscore.history import History, RunRow, ScorerSummary, summaries
from ragscore.history.trends import By, trends
from ragscore.report.html.charts import TrendChart, trend_chart
from ragscore.report.html.intervals import mean_intervals
from ragscore.stats import Interval

#: Points of a trend that are drawn: the latest.
MOST_POINTS = 30
WAYS: tuple[By, ...] = ("run", "version", "day")


@dataclass(frozen=True, slots=True)
class Standing:
    """One scorer now: its figures, its interval (within 0 and 1), the change, its trends by run, version and day."""

    summary: ScorerSummary
    interval: Interval | None
    change: float | None
    charts: dict[By, TrendChart]


@dataclass(frozen=True, slots=True)
class SuiteStanding:
    """One suite and retriever.

    `change` of each standing is against `baseline`, in the scorer's scale; None where there is none, or another judge
    judged it.
    """

    run: RunRow
    baseline: RunRow | None
    baseline_said: str | None
    standings: Sequence[Standing]


def overview_of(history: History, suite: str | None = None) -> list[SuiteStanding]:
    """Every suite and retriever that has scores, or those of one suite.

    Raises:
        UsageError: There is no such suite, or nothing is scored yet.
    """
    found = {way: trends(history, suite, by=way, limit=MOST_POINTS) for way in WAYS}
    wanted = {point.run_id for way in WAYS for each in found[way] for point in each.points}
    shown = []
    for _, group in groupby(found["run"], lambda each: (each.suite, each.retriever)):
        latest = max((trend.points[-1] for trend in group), key=lambda point: (point.started_at, point.run_id))
        run = history.run(latest.run_id)
        shown.append((run, *baseline_of(history, run)))
    intervals = mean_intervals(history, sorted(wanted))
    made = []
    for run, base, said in shown:
        means = {each.scorer: each for each in summaries(history, base.run_id)} if base is not None else {}
        standings = []
        for summary in summaries(history, run.run_id):
            before = means.get(summary.scorer)
            alike = before is not None and (before.judge, before.scale) == (summary.judge, summary.scale)
            line = before.mean if before is not None and alike else None
            charts = {
                way: trend_chart(trend, intervals, baseline_mean=line)
                for way in WAYS
                for trend in found[way]
                if (trend.suite, trend.retriever, trend.scorer) == (run.suite, run.retriever, summary.scorer)
            }
            change = round(summary.mean - line, 4) if line is not None and summary.mean is not None else None
            standings.append(Standing(summary, intervals.get((run.run_id, summary.scorer)), change, charts))
        made.append(SuiteStanding(run, base, said, standings))
    return sorted(made, key=lambda each: each.run.started_at, reverse=True)


def baseline_of(history: History, run: RunRow) -> tuple[RunRow | None, str | None]:
    """The run of this history that `run` is measured against, and how that is said.

    It is what the gate of its suite names, else the complete run before it of the same suite and retriever, of another
    version where there is one.
    """
    gate = run.suite_doc.get("gate") if isinstance(run.suite_doc, dict) else None
    named = str(gate.get("baseline", LAST_PASSING)) if isinstance(gate, dict) else None
    if named is not None and not named.startswith("file:"):
        try:
            found = find_baseline(named, history, suite=run.suite, retriever=run.retriever, than=run)
        except UsageError:
            found = None  # it was pruned since
        if found is not None and found.run.run_id != run.run_id:
            return found.run, f"baseline {found.said}"
    earlier = [
        row
        for row in history.runs(suite=run.suite)
        if row.status == "complete"
        and row.retriever == run.retriever
        and (row.started_at, row.run_id) < (run.started_at, run.run_id)
    ]
    other = next((row for row in earlier if row.version != run.version), None)
    chosen = other or next(iter(earlier), None)
    return chosen, None if chosen is None else f"{chosen.version or 'the run before'} (run {chosen.run_id})"
