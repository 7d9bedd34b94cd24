"""What the Prefect UI is told about a run, as Markdown and as rows of a table; nothing of Prefect in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from ragscore.counting import counted
from ragscore.errors import UsageError
from ragscore.flows.trend import picture, trends
from ragscore.gate import LAST_PASSING, Baseline, Check, GateResult, find_baseline, pair_runs
from ragscore.history import History, RunRow, select
from ragscore.report.summary import RunSummary, coverage_shown, mean_shown
from ragscore.suite import Suite

#: How many of the worst items are shown in the table.
MOST_WORST = 50
_SIGNS = {"pass": "✓", "fail": "✗", "inconclusive": "?", "error": "!", "none": ""}
_WORDS = {
    "pass": "gate passed",
    "fail": "gate FAILED",
    "inconclusive": "gate inconclusive",
    "error": "could not be evaluated",
    "none": "no verdict",
}


@dataclass(frozen=True, slots=True)
class Change:
    """A run against another: mean before and after of the items in both, by scorer, within 0 and 1; and by item.

    Attributes:
        against: How the other run is named.
        by_scorer: Scorer to (before, after, pairs, worse, better).
        by_item: (item, scorer) to the change.
        note: Why there is no comparison; empty when there is one.
    """

    against: str = ""
    by_scorer: Mapping[str, tuple[Fraction, Fraction, int, int, int]] = field(default_factory=dict)
    by_item: Mapping[tuple[str, str], Fraction] = field(default_factory=dict)
    note: str = ""


def change_of(history: History, run: RunRow, suite: Suite) -> Change:
    """The run against its gate's baseline; without one against the complete run before it."""
    found = _other(history, run, suite)
    if found is None:
        return Change(note="There is no earlier run to compare with.")
    try:
        paired = pair_runs(history, found.run, run, before_in=found.history)
    except UsageError as error:
        return Change(note=f"Not compared with {found.said}: {error}.")
    return Change(
        against=found.said,
        by_scorer={
            each.scorer: (each.before, each.after, len(each.pairs), len(each.worse), len(each.better))
            for each in paired.scorers
            if each.before is not None and each.after is not None
        },
        by_item={(p.after.item_id, each.scorer): p.change for each in paired.scorers for p in each.pairs},
    )


def _other(history: History, run: RunRow, suite: Suite) -> Baseline | None:
    where = {"suite": run.suite, "retriever": run.retriever}
    if suite.gate.asks:
        base = Path(run.base_dir) if run.base_dir else None
        return find_baseline(suite.gate.baseline or LAST_PASSING, history, base_dir=base, than=run, **where)  # type: ignore[arg-type]
    rows = select(
        history.path,
        "SELECT run_id FROM runs WHERE status = 'complete' AND suite = ? AND retriever IS NOT DISTINCT FROM ?"
        " AND run_id <> ? AND started_at <= ? ORDER BY started_at DESC, run_id DESC LIMIT 1",
        [run.suite, run.retriever, run.run_id, run.started_at],
    ).rows
    if not rows:
        return None
    row = history.run(str(rows[0][0]))
    return Baseline(row, history, f"{row.version} (run {row.run_id})")


def headline(run: RunRow, verdict: str) -> str:
    """Retriever, version and verdict in one line."""
    return f"{_SIGNS[verdict]} {run.retriever} {run.version}: {_WORDS[verdict]}".strip()


def summary_markdown(
    history: History, summary: RunSummary, gate: GateResult, change: Change, *, verdict: str, notes: Sequence[str] = ()
) -> str:
    """The run on one page: verdict, scores with their change, what the gate looked at, trend, advice, where to look."""
    run = summary.run
    blocks = [
        f"# {as_text(headline(run, verdict))}",
        f"Suite **{as_text(run.suite)}**, {counted(run.items, 'item')}, judge `{run.judge}`, run `{run.run_id}`.",
        *(f"**{as_text(fault)}**" for fault in summary.faults),
        _scores(summary, change),
        f"Change: against {as_text(change.against)}, over the items in both."
        if change.against
        else as_text(change.note),
    ]
    if gate.checks:
        blocks += ["## Gate", "\n".join(_checked(check) for check in gate.checks)]
    blocks += [f"> {as_text(note)}" for note in (*gate.notes, *notes)]
    if drawn := picture(trends(history, suite=run.suite, retriever=run.retriever, until=run.started_at), alt="trend"):
        blocks += ["## Trend", drawn, "Mean of each complete run, oldest first; ringed where the gate failed."]
    if summary.advice:
        blocks += ["## Advice", "\n".join(f"- {as_text(line)}" for line in summary.advice)]
    blocks += ["## Look closer", f"```sh\nragscore show {run.run_id}\n```"]
    return "\n\n".join(block for block in blocks if block) + "\n"


def _checked(check: Check) -> str:
    # A line and no row of a table: Prefect cuts off what is wider than its page.
    sign, of = _SIGNS[check.verdict.value], check.scorer or check.what.replace("_", " ")
    more = " ".join(filter(None, (check.slice, f"against {check.against}" if check.against else "")))
    return f"- {sign} **{check.verdict.value}** {as_text(' '.join(filter(None, (of, more))))}: {as_text(check.said)}"


def _scores(summary: RunSummary, change: Change) -> str:
    rows = []
    for each in summary.scorers:
        before_after = change.by_scorer.get(each.scorer)
        moved, counts = "", ""
        if before_after is not None:
            before, after, _, worse, better = before_after
            moved, counts = signed((after - before) * Fraction(str(each.scale))), f"{worse} / {better}"
        statuses = ", ".join(f"{count} {status}" for status, count in each.by_status.items() if status != "ok")
        rows.append(
            (
                each.scorer,
                "not scored" if each.mean_exact is None else mean_shown(each.mean_exact, each.scale),
                moved,
                counts,
                str(each.n),
                "" if each.coverage is None else coverage_shown(each.coverage),
                statuses,
            )
        )
    return table(("scorer", "mean", "change", "worse / better", "n", "coverage", "not ok"), rows)


def worst_rows(summary: RunSummary, change: Change) -> list[dict[str, Any]]:
    """The lowest items, at most `MOST_WORST`, as rows of a table artifact."""
    rows = []
    for each in summary.worst[:MOST_WORST]:
        row: dict[str, Any] = {"item": each.item_id}
        for score in each.scores:
            # Score and change in one cell: Prefect cuts off what is wider than its page.
            moved = change.by_item.get((each.item_id, score.scorer))
            told = "" if moved is None else f" ({signed(moved * Fraction(str(score.scale)))})"
            row[score.scorer] = "" if score.score is None else f"{score.score:.2f}{told}"
        row["question"] = _short(each.input or "", 90)
        row["missing facts"] = " · ".join(_short(claim) for claim in each.missing[:5])
        rows.append(row)
    return rows


def signed(value: Fraction | float) -> str:
    """A change with its sign and two decimals; 0.00 only when it is nothing."""
    number = float(value)
    shown = f"{number:+.2f}"
    if float(shown) == 0:
        shown = "0.00" if number == 0 else f"{number:+.1g}"
    return shown.replace("-", "−")


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; columns that are empty in all rows are left out."""
    kept = [place for place, _ in enumerate(head) if not rows or any(row[place] for row in rows)]
    lines = [[head[place] for place in kept], ["---"] * len(kept)]
    lines += [[as_text(row[place]) for place in kept] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def as_text(text: str) -> str:
    """Text from outside on one line of Markdown: it can end no cell, and open no link, picture or tag."""
    line = " ".join(text.split())
    return "".join(f"\\{char}" if char in "|\\`*_[]<>#" else char for char in line)


def _short(text: str, most: int = 160) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"
