"""Counts in sentences: one item, two items."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    """`count` with its noun: "1 item", "0 items", "2 batches"."""
    if count == 1:
        return f"1 {noun}"
    return f"{count} {noun}es" if noun.endswith(("ch", "sh", "s", "x")) else f"{count} {noun}s"
