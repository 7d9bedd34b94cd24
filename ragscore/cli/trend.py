"""`ragscore trend`: how the means went over runs, days or versions."""

from __future__ import annotations

import dataclasses
import json as json_
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from ragscore.cli.options import HistoryFile, Json

if TYPE_CHECKING:
    from rich.console import Console

    from ragscore.history.trends import Trend

BARS = "▁▂▃▄▅▆▇█"
#: For terminals that cannot draw them.
PLAIN_BARS = "_.-~=*#@"


def trend(
    suite: str | None = None,
    /,
    *,
    scorer: str | None = None,
    by: Literal["version", "day", "run"] = "run",
    where: str | None = None,
    limit: int = 20,
    history: HistoryFile = None,
    json: Json = False,
) -> int:
    """Show how the mean of each scorer went: a line of bars, and each point with its change and gate verdict.

    Parameters
    ----------
    suite
        Only this suite.
    scorer
        Only this scorer.
    by
        What a point is; a version or day (UTC) is represented by its last complete run.
    where
        A condition in SQL on the columns of score_history, such as "judge like 'openai%'".
    limit
        At most so many points, the latest.
    """
    from ragscore.errors import UsageError
    from ragscore.history import History
    from ragscore.history.trends import trends
    from ragscore.home import history_path
    from ragscore.report.layout import console

    if limit < 1:
        raise UsageError("--limit is less than 1")
    found = trends(History(history_path(history)), suite, scorer=scorer, by=by, where=where, limit=limit)
    if json:
        shown = [dataclasses.asdict(each) for each in found]
        sys.stdout.write(json_.dumps(shown, ensure_ascii=False, indent=2, default=str) + "\n")
    elif not found:
        sys.stdout.write("no run fits\n")
    else:
        for each in found:
            _print(each, by, console())
    return 0


def bars() -> str:
    """The eight bars of a sparkline, lowest first, in ASCII where the terminal or the locale knows no more."""
    from ragscore.report.drawable import ascii_only

    return PLAIN_BARS if ascii_only() else BARS


def sparkline(values: Sequence[float | None], bars: str = BARS) -> str:
    """One of `bars` per value, the lowest to the highest of them; `·` (in ASCII a space) where there is none."""
    gap = "·" if bars == BARS else " "
    known = [value for value in values if value is not None]
    low, high = (min(known), max(known)) if known else (0.0, 0.0)
    if low == high:
        return "".join(gap if value is None else bars[3] for value in values)
    steps = len(bars) - 1
    return "".join(gap if value is None else bars[round((value - low) / (high - low) * steps)] for value in values)


def _print(each: Trend, by: str, out: Console) -> None:
    from ragscore.report.layout import add_row, heading, print_table, table_of
    from ragscore.report.summary import coverage_shown

    # As the last run scales them: a suite may have changed it.
    means = [None if point.mean is None else point.mean / point.scale * each.scale for point in each.points]
    known = [value for value in means if value is not None]
    span = f"{min(known):.2f} to {max(known):.2f}" if known else "no mean"
    of = "" if each.scale == 1 else f" of {each.scale:g}"
    heading(out, each.scorer, f"{each.suite} · {each.retriever or 'no retriever'}")
    out.print(f"  {sparkline(means, bars())}  {span}{of}", soft_wrap=True)
    heads = {"run": ("run", "version"), "version": ("version", "runs"), "day": ("day", "version")}[by]
    table = table_of(*heads, "mean", "change", "n", "coverage", "gate", "note")
    for column in table.columns[2:6]:
        column.justify = "right"
    before = None
    for point in each.points:
        other = f"judge: {point.judge}" if before is not None and point.judge != before.judge else ""
        scaled = f"of {point.scale:g}" if point.scale != each.scale else ""
        counted = point.settings if before is not None and point.settings != before.settings else ""
        notes = [note for note in (other, scaled, counted, point.status if point.status != "complete" else "") if note]
        before = point
        add_row(
            table,
            point.label,
            str(point.runs) if by == "version" else point.version or "",
            "–" if point.mean is None else f"{point.mean:.2f}",
            "" if point.change is None else f"{point.change:+.2f}" if round(point.change, 2) else "0.00",
            str(point.n),
            "–" if point.coverage is None else coverage_shown(point.coverage),
            point.gate_verdict or "",
            ", ".join(notes),
        )
    print_table(out, table, stack=True)
