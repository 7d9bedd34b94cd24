"""What the gate and the rule about drops say, on the terminal: said loudly, with the numbers beside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console

from ragscore.gate import Pair, ScorerComparison, Verdict, said_of
from ragscore.report.comparison import Comparison
from ragscore.report.comparison_formats import left_out, moved
from ragscore.report.layout import Words, indented
from ragscore.scorers import rounded
from ragscore.scorers.arithmetic import as_fraction
from ragscore.scorers.reasons import shortened

_STYLES = {Verdict.PASS: "green", Verdict.FAIL: "bold red", Verdict.INCONCLUSIVE: "bold yellow"}
_SIGNS = {Verdict.PASS: "✓", Verdict.FAIL: "✗", Verdict.INCONCLUSIVE: "?"}


def print_gate(gate: Mapping[str, Any], out: Console) -> None:
    """The gate of a run, as it is kept with it: its verdict, every check, and what to know about it."""
    out.print()
    found = gate.get("verdict")
    if found is None:
        out.print(Words("gate: no verdict", style="bold yellow"), soft_wrap=True)
    else:
        verdict = Verdict(found)
        out.print(Words(f"{_SIGNS[verdict]} gate: {verdict.upper()}", style=_STYLES[verdict]), soft_wrap=True)
    for name in ("baseline", "anchor"):
        if gate.get(name):
            out.print(Words(f"  {name}: {gate[name]}", style="dim"), soft_wrap=True)
    for check in gate.get("checks", ()):
        verdict = Verdict(check["verdict"])
        about = " ".join(str(check[key]) for key in ("scorer", "slice") if check.get(key)) or check["what"]
        against = f" vs {check['against']}" if check.get("against") else ""
        noise = f" (the judge's noise is {check['noise_floor']:.3g})" if check.get("noise_floor") else ""
        indented(
            out,
            f"{_SIGNS[verdict]} {verdict.value}  {about}{against}: {check['said']}{noise}",
            2,
            style=_STYLES[verdict] if verdict is not Verdict.PASS else "",
            hang=4,
        )
    for note in gate.get("notes", ()):
        indented(out, f"! {note}", 2, style="yellow", hang=2)


def print_verdicts(comparison: Comparison, out: Console) -> None:
    """Per scorer what the rule about drops says, and what was left out."""
    for reason in comparison.not_whole:
        out.print(Words(f"! {reason}", style="bold yellow"), soft_wrap=True)
    for reason in comparison.unlike:
        out.print(Words(f"! compared by force: {reason}", style="bold yellow"), soft_wrap=True)
    out.print()
    for each in comparison.scorers:
        answer = comparison.answers[each.scorer]
        noise = comparison.noise.get(each.scorer)
        of = f"; the judge's noise is {noise * each.scale:.3g}" if noise is not None else ""
        indented(
            out,
            f"{_SIGNS[answer.verdict]} {each.scorer}: {answer.verdict.value}: {said_of(answer, each.scale)}{of}",
            0,
            style=_STYLES[answer.verdict],
            hang=2,
        )
        for line in left_out(each):
            indented(out, line, 2, style="dim", hang=2)


def print_items(comparison: Comparison, out: Console, *, most: int) -> None:
    """Per scorer the items that got worse and better, worst first, with facts lost and won, and moved contexts."""
    for each in comparison.scorers:
        for word, pairs in (("worse", each.worse), ("better", each.better)):
            if not pairs:
                continue
            out.print()
            out.print(Words(f"{each.scorer}: {word} in {len(pairs)}", style="bold"))
            for pair in pairs[:most]:
                _print_pair(each, pair, out)
            if len(pairs) > most:
                out.print(Words(f"  … and {len(pairs) - most} more", style="dim"))


def _print_pair(each: ScorerComparison, pair: Pair, out: Console) -> None:
    scale = as_fraction(each.scale)
    before, after = (rounded(score.exact, scale) for score in (pair.before, pair.after) if score.exact is not None)
    head = Words(f"  {before:.2f} → {after:.2f}  {pair.after.item_id}")
    out.print(head.append(f"  {shortened(pair.after.input or '', 90)}", style="dim"), soft_wrap=True)
    for word, claims in (("lost", pair.lost), ("won", pair.won)):
        for claim in claims:
            indented(out, f"{word}: {claim}", 8, hang=6)
    for move in pair.moves if not pair.lost and not pair.won else ():
        indented(out, f"{moved(move)}: {shortened(move.text, 90)}", 8, hang=6)
