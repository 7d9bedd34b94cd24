"""The reason of a score, composed from its findings without another judge call.

The frame is signs and numbers, so that the reason is in the language of the claims and of the judge's explanations.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from ragscore.items import Finding
from ragscore.scorers.arithmetic import rounded

QUOTE_LENGTH = 160


def shortened(text: str, length: int = QUOTE_LENGTH) -> str:
    """`text` on one line, cut with an ellipsis at `length` characters."""
    line = " ".join(text.split())
    return line if len(line) <= length else line[: length - 1].rstrip() + "…"


def recall_reason(findings: Sequence[Finding]) -> str:
    """One line per claim, missing ones first: `✗ claim — why`, `✓ claim [rank: “excerpt”]`."""
    supported = [f for f in findings if f.positive]
    missing = [f for f in findings if not f.positive]
    lines = [f"{len(supported)}/{len(findings)}"]
    for f in missing:
        lines.append(f"✗ {shortened(f.text)}" + (f" — {shortened(f.why)}" if f.why else ""))
    for f in supported:
        cited = "; ".join(f"{rank}: “{shortened(quote)}”" for rank, quote in zip(f.sources, f.quotes, strict=True))
        lines.append(f"✓ {shortened(f.text)}" + (f" [{cited}]" if cited else ""))
    return "\n".join(lines)


def precision_reason(findings: Sequence[Finding], exact: Fraction) -> str:
    """How the places made the score, then one line per rank: `#1 ✓ why`.

    The first line reads (1/1 + 2/3) / 2 = 0.83 for relevant contexts at ranks 1 and 3.
    """
    terms: list[str] = []
    for f in findings:
        if f.positive:
            terms.append(f"{len(terms) + 1}/{f.rank}")
    head = f"({' + '.join(terms)}) / {len(terms)} = {rounded(exact):g}" if terms else f"0/{len(findings)} = 0"
    lines = [head]
    for f in findings:
        mark = "✓" if f.positive else "✗"
        lines.append(f"#{f.rank} {mark} {shortened(f.why)}".rstrip())
    return "\n".join(lines)
