"""Everything that a report shows, gathered from the history and its functions; nothing is computed anew in a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ragscore.errors import UsageError
from ragscore.gate.pairs import metadata_of
from ragscore.history import History, ItemScore, RunRow, findings, item_scores
from ragscore.report.comparison import Comparison, compare_runs
from ragscore.report.html.charts import Bar, histogram
from ragscore.report.html.entries import Entry, entries_of, scores_over_time
from ragscore.report.html.intervals import mean_intervals
from ragscore.report.html.judging import Judging, judging_of
from ragscore.report.html.overview import SuiteStanding, baseline_of, overview_of
from ragscore.report.html.slices import SliceRow, slices_compared, slices_of
from ragscore.report.html.texts import Texts
from ragscore.report.summary import RunSummary, summary_of
from ragscore.stats import Interval


@dataclass(frozen=True, slots=True)
class Contents:
    """A report.

    Attributes:
        overview: Every suite that is looked at.
        summary: Of the run that is shown in detail.
        intervals: By scorer, of the mean, within 0 and 1.
        bars: By scorer, how its scores are distributed.
        slices: The run by metadata.
        entries: Its items, those with the lowest scores first; `left_out` more are not in the page.
        over_time: The items' earlier scores.
        comparison: The run against an earlier one; None where there is none, and then `compared_why` says why.
        compared_slices: The two runs by metadata.
        texts: The long texts of the entries.
    """

    overview: Sequence[SuiteStanding]
    summary: RunSummary
    intervals: Mapping[str, Interval | None]
    bars: Mapping[str, Sequence[Bar]]
    slices: Sequence[SliceRow]
    entries: Sequence[Entry]
    left_out: int
    over_time: Mapping[str, Any]
    comparison: Comparison | None
    compared_why: str | None
    compared_slices: Sequence[SliceRow]
    judging: Judging
    texts: Texts

    @property
    def run(self) -> RunRow:
        """The run that is shown in detail."""
        return self.summary.run


def contents_of(
    history: History,
    run: RunRow,
    *,
    suite: str | None = None,
    against: RunRow | None = None,
    against_in: History | None = None,
    force: bool = False,
) -> Contents:
    """Gather a report about a run.

    Args:
        history: Where the run is.
        run: What is shown in detail.
        suite: The overview shows this suite only; all when left out.
        against: The earlier run to compare with; when left out, the baseline or the run before, where there is one.
        against_in: Where `against` is, if that is another history.
        force: Compare runs that are unlike all the same.

    Raises:
        UsageError: Nothing is scored yet; or `against` cannot be compared with the run.
    """
    scores = item_scores(history, run.run_id)
    decided = findings(history, run.run_id)
    texts = Texts()
    entries = entries_of(history, run, scores, decided, texts)
    comparison, why = _compared(history, run, against, against_in, force)
    by_scorer: dict[str, list[ItemScore]] = {}
    for score in scores:
        by_scorer.setdefault(score.scorer, []).append(score)
    return Contents(
        overview=overview_of(history, suite),
        summary=summary_of(history, run),
        intervals={name: span for (_, name), span in mean_intervals(history, [run.run_id]).items()},
        bars={name: histogram(own) for name, own in by_scorer.items()},
        slices=slices_of(scores, metadata_of(history, run.run_id)),
        entries=entries,
        left_out=len({score.item_id for score in scores}) - len(entries),
        over_time=scores_over_time(history, run, [entry.item_id for entry in entries]),
        comparison=comparison,
        compared_why=why,
        compared_slices=slices_compared(comparison) if comparison is not None else [],
        judging=judging_of(history, run),
        texts=texts,
    )


def _compared(
    history: History, run: RunRow, against: RunRow | None, against_in: History | None, force: bool
) -> tuple[Comparison | None, str | None]:
    if against is not None:
        return compare_runs(history, against, run, before_in=against_in, force=force), None
    before, _ = baseline_of(history, run)
    if before is None:
        return None, "There is no earlier complete run of this suite and retriever to compare with."
    try:
        return compare_runs(history, before, run), None
    except UsageError as error:
        return None, f"Not compared with run {before.run_id} ({before.version}): {error}"
