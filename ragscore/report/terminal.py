"""The look of the terminal: signs and words, colour never alone; narrow and pipeable."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ragscore.counting import counted
from ragscore.history import ItemDetail, RunRow, ScorerSummary
from ragscore.items import Context, Finding, Score, Status
from ragscore.report.comparison import Comparison, ScorerComparison
from ragscore.report.comparison_formats import left_out
from ragscore.report.hints import command
from ragscore.report.layout import (
    Words,
    add_row,
    hanging,
    heading,
    indented,
    labelled,
    print_table,
    table_of,
)
from ragscore.report.summary import RunSummary, WorstItem, coverage_shown, mean_shown
from ragscore.report.verdicts import print_gate
from ragscore.scorers import rounded
from ragscore.scorers.arithmetic import as_fraction
from ragscore.scorers.reasons import shortened

if TYPE_CHECKING:  # it imports what a run is made of, which few commands need
    from ragscore.forecast import Forecast

#: How wide output is where nobody looks at it through a terminal.
PIPED_WIDTH = 120
#: How many missing claims of one item a summary shows.
MOST_CLAIMS = 3
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def print_summary(summary: RunSummary, out: Console, *, footer: bool = True) -> None:
    """The summary of one run: the table, what is wrong, advice, worst items, and where to look next."""
    run = summary.run
    heading(
        out, f"{run.retriever} {run.version}", f"run {run.run_id} · {counted(run.items, 'item')} · judge: {run.judge}"
    )
    if summary.scorers:  # a run that was stopped at once has none
        print_table(out, _scorer_table(summary.scorers))
    for note in _notes(summary):
        out.print(Words(note, style="dim"), soft_wrap=True)
    for fault in summary.faults:
        out.print(Words(f"! {fault}", style="bold red"), soft_wrap=True)
    if run.gate:
        print_gate(run.gate, out)
    for line in summary.advice:
        out.print(Words(f"→ {line}"), soft_wrap=True)
    if summary.worst:
        out.print()
        out.print(Words("worst items", style="bold"))
        for worst in summary.worst:
            _print_worst(worst, out)
    if footer:
        out.print()
        if summary.faults:
            again = command("resume", run.run_id, history=summary.history)
            does = "tries again what failed" if run.status == "complete" else "does the rest"
            out.print(Words(again, style="dim").append(f"   {does}"), soft_wrap=True)
        item = ("--item", summary.first_item) if summary.first_item is not None else ()
        out.print(Words(command("show", run.run_id, *item, history=summary.history), style="dim"), soft_wrap=True)


def print_comparison(comparison: Comparison, out: Console, *, most: int = 5) -> None:
    """What changed from one run to the other: means over the pairs, items, facts."""
    print_means(comparison, out)
    for each in comparison.scorers:
        for line in left_out(each):
            out.print(Words(f"{each.scorer}: {line}", style="dim"), soft_wrap=True)
    for each in comparison.scorers:
        _print_worse(each, out, most)


def print_means(comparison: Comparison, out: Console) -> None:
    """The means of both runs over the pairs."""
    before, after = comparison.before, comparison.after
    heading(out, f"{before.version} → {after.version}", f"{after.retriever}, item by item")
    table = table_of(
        "scorer", "items", before.version or "before", after.version or "after", "change", "worse", "better"
    )
    for column in table.columns[1:]:
        column.justify = "right"
    for each in comparison.scorers:
        add_row(table, *_comparison_row(each))
    print_table(out, table)


def print_item(detail: ItemDetail, out: Console) -> None:
    """One item of a run: question, reference, and per scorer each claim or context with its verdict and why."""
    item = detail.item
    heading(out, item.id, f"run {detail.run.run_id} · {detail.run.retriever} {detail.run.version}")
    labelled(out, "question", item.input)
    if item.reference:
        labelled(out, "reference", item.reference)
    if detail.response.output:
        labelled(out, "output", detail.response.output)
    if detail.response.error:
        labelled(out, "target", f"failed: {detail.response.error}")
    for score in detail.scores:
        out.print()
        out.print(_score_line(score), soft_wrap=True)
        contexts = detail.context_sets.get(score.context_set or "")
        for finding in score.findings:
            _print_finding(finding, contexts.contexts if contexts is not None else (), out)
        if not score.findings and score.status is not Status.OK:
            indented(out, score.reason, 2)
    for name, contexts in detail.context_sets.items():
        out.print()
        out.print(Words(f"contexts ({name})", style="bold"))
        if contexts.error:
            indented(out, contexts.error, 2)
        for rank, context in enumerate(contexts.contexts, start=1):
            indented(out, _context_line(rank, context), 2, style="dim")


def print_forecast(title: str, judge: str, expected: Forecast, out: Console) -> None:
    """What a run will take: calls, tokens and cost per scorer, time, and what that rests on."""
    heading(out, title, f"{counted(expected.items, 'item')} · judge: {judge}")
    if expected.shares:
        table = table_of("", "calls", "prompt tokens", "completion tokens", "cost")
        for column in table.columns[1:]:
            column.justify = "right"
        for share in expected.shares:
            figures = (share.calls, share.prompt_tokens, share.completion_tokens)
            add_row(table, share.what, *map(_count, figures), _cost(share.cost_usd))
        totals = (expected.calls, expected.prompt_tokens, expected.completion_tokens)
        add_row(table, "first run", *map(_count, totals), _cost(expected.cost_usd))
        again = (_count(expected.remembered_calls), "0", "0", _cost(0.0))
        known = expected.remembered_calls is not None
        add_row(table, "re-run, same retrieval", *(again if known else ["unknown"] * 4))
        print_table(out, table)
        minutes, seconds = divmod(round(expected.seconds), 60)
        out.print(Words(f"time: about {minutes} min {seconds} s at this concurrency and these rates"), soft_wrap=True)
    for line in expected.assumed:
        out.print(Words(f"estimated from: {line}", style="dim"), soft_wrap=True)


def _count(number: int | None) -> str:
    return "unknown" if number is None else f"{number:,}"


def _cost(usd: float | None) -> str:
    return "unknown" if usd is None else f"${usd:.2f}" if usd >= 1 else f"${usd:.4f}"


def print_runs(runs: Sequence[RunRow], out: Console) -> None:
    """A list of runs, newest first."""
    table = table_of("run", "suite", "retriever", "version", "items", "judge", "status", "gate")
    table.columns[4].justify = "right"
    for run in runs:
        add_row(
            table,
            run.run_id,
            run.suite,
            run.retriever or "",
            run.version or "",
            str(run.items),
            run.judge,
            run.status,
            run.gate_verdict or "",
        )
    print_table(out, table, stack=True)


def _scorer_table(scorers: Sequence[ScorerSummary]) -> Table:
    table = table_of("scorer", "mean", "n", "coverage", "not scored")
    for column in table.columns[2:4]:
        column.justify = "right"
    for each in scorers:
        mean = "–" if each.mean_exact is None else mean_shown(each.mean_exact, each.scale)
        if each.against_mixed:
            mean += " (reference and output mixed)"
        coverage = "–" if each.coverage is None else coverage_shown(each.coverage)
        statuses = ", ".join(f"{n} {status}" for status, n in each.by_status.items() if status is not Status.OK)
        add_row(table, each.scorer, mean, str(each.n), coverage, statuses)
    return table


def _notes(summary: RunSummary) -> list[str]:
    notes = []
    calls = sum(each.calls for each in summary.scorers)
    remembered = sum(each.remembered for each in summary.scorers)
    costs = [summary.probe.cost_usd, *(each.cost_usd for each in summary.scorers)]
    if calls or remembered:
        calls += summary.probe.calls
        first = f" ({summary.probe.calls} before the first item)" if summary.probe.calls else ""
        cost = "unknown" if any(each is None for each in costs) else f"${sum(filter(None, costs)):.4f}"
        notes.append(f"judge: {counted(calls, 'call')}{first}, {remembered} remembered, cost {cost}")
    if repeated := sum(each.duplicates for each in summary.scorers):
        notes.append(f"{repeated} retrieved contexts repeat an earlier one of their item")
    if summary.unanswerable is not None:
        nothing, known, items = summary.unanswerable
        known_of = f"nothing relevant retrieved for {nothing} of {known}" if known else "not judged by this judge"
        notes.append(f"items marked as not answerable: {items}; {known_of}")
    if summary.latency is not None:
        notes.append(f"target: p50 {summary.latency.p50_ms:.0f} ms, p95 {summary.latency.p95_ms:.0f} ms")
    return notes


def _print_worst(worst: WorstItem, out: Console) -> None:
    head = Words(f"  {worst.item_id}", style="bold")
    for score in worst.scores:
        value = f"{score.score:.2f}" if score.status is Status.OK else f"{score.score:.2f} ({score.status})"
        head.append(f"  {score.scorer} {value}", style="not bold")
    out.print(head, soft_wrap=True)
    if worst.input:
        indented(out, shortened(worst.input, 200), 4)
    for claim in worst.missing[:MOST_CLAIMS]:
        indented(out, f"✗ {claim}", 4, style="dim", hang=2)
    if len(worst.missing) > MOST_CLAIMS:
        indented(out, f"… and {len(worst.missing) - MOST_CLAIMS} more missing", 4, style="dim")


def _scaled(value: Fraction | None, each: ScorerComparison) -> str:
    return "–" if value is None else f"{rounded(value, as_fraction(each.scale)):.2f}"


def _comparison_row(each: ScorerComparison) -> list[str]:
    change = "–"
    if each.before is not None and each.after is not None:
        difference = each.after - each.before
        size = rounded(abs(difference), as_fraction(each.scale))
        change = f"{'-' if difference < 0 else '+'}{size:.2f}" if size else "0.00"
    return [
        each.scorer,
        str(len(each.pairs)),
        _scaled(each.before, each),
        _scaled(each.after, each),
        change,
        str(len(each.worse)),
        str(len(each.better)),
    ]


def _print_worse(each: ScorerComparison, out: Console, most: int) -> None:
    if not each.worse:
        return
    out.print()
    out.print(Words(f"{each.scorer}: worse in {len(each.worse)}", style="bold"))
    for pair in each.worse[:most]:
        head = f"  {_scaled(pair.before.exact, each)} → {_scaled(pair.after.exact, each)}  {pair.after.item_id}"
        out.print(Words(head).append(f"  {shortened(pair.after.input or '', 90)}", style="dim"), soft_wrap=True)
        for claim in pair.lost:
            indented(out, f"lost: {claim}", 8, hang=6)
    if len(each.worse) > most:
        out.print(Words(f"  … and {len(each.worse) - most} more", style="dim"))


def _score_line(score: Score) -> Text:
    line = Words(score.scorer, style="bold")
    if score.exact is None or score.value is None:
        return line.append(f"  not scored: {score.status}", style="not bold")
    of = "" if score.scale == 1 else f" of {score.scale:g}"
    return line.append(f"  {score.value:.2f}{of}  {mean_shown(float(score.exact), 1).split(maxsplit=1)[1]}")


def _print_finding(finding: Finding, contexts: Sequence[Context], out: Console) -> None:
    sign, word, style = _sign(finding)
    place = f"#{finding.rank} " if finding.kind == "context" else ""
    head = Words(f"  {sign} {place}", style=style).append(f"{word}  ", style=style)
    text = finding.text
    if finding.kind == "context" and finding.rank <= len(contexts):
        context = contexts[finding.rank - 1]
        text = f"[{context.id}]" if context.id else shortened(context.text, 100)
    hanging(out, head.append(text, style="default"), 6)
    if finding.why:
        indented(out, finding.why, 6, style="dim")
    for rank, quote in zip(finding.sources, finding.quotes, strict=True):
        if finding.kind != "context" and quote:
            unverified = "" if finding.verified is not False else " (unverified: not found in the contexts)"
            indented(out, f"context #{rank}: “{shortened(quote, 300)}”{unverified}", 6)
    for warning in finding.warnings:
        indented(out, f"! {warning}", 6)


#: What a positive and a negative finding of each kind is called.
WORDS = {
    "claim": ("supported", "missing"),
    "context": ("relevant", "not relevant"),
    "output_claim": ("supported", "not supported"),
    "stated_claim": ("stated", "not stated"),
    "answering_claim": ("answers", "does not answer"),
    "contradicted_claim": ("contradicted", "not contradicted"),
    "noise_claim": ("wrong, from the contexts", "not from noise"),
    "entity": ("found", "missing"),
}
#: Kinds of findings of which the negative one is the good one.
BETTER_NOT = frozenset({"contradicted_claim", "noise_claim"})


def _sign(finding: Finding) -> tuple[str, str, str]:
    if finding.positive is None:
        return "?", "undecided", "yellow"
    yes, no = WORDS.get(finding.kind, ("yes", "no"))
    good = finding.positive != (finding.kind in BETTER_NOT)
    return "✓" if good else "✗", yes if finding.positive else no, "green" if good else "red"


def _context_line(rank: int, context: Context) -> str:
    named = f" [{context.id}]" if context.id else ""
    return f"#{rank}{named} {' '.join(context.text.split())}"
