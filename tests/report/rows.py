"""Rows of datasets whose scores by the offline judge are known beforehand."""

from __future__ import annotations

from typing import Any

FACTS = (
    "The lighthouse stands on the northern cliff.",
    "Its lamp was lit in 1874.",
    "Keepers climbed two hundred steps.",
)
NOISE = "Bananas ripen faster beside apples."


def item(number: int | str, *found: str, facts: tuple[str, ...] = FACTS, **more: Any) -> dict[str, Any]:
    """An item that asks for `facts` and retrieved `found`."""
    row = {"id": f"q{number}", "input": f"What of lighthouse {number}?", "reference": " ".join(facts)}
    return {**row, "contexts": list(found), **more}
