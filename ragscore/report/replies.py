"""What the judge's model replied about one item, on the terminal: word for word and not folded, as it can be copied."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console

from ragscore.history import ItemDetail
from ragscore.items import Call, Score
from ragscore.report.layout import Words, indented


def print_replies(detail: ItemDetail, out: Console) -> None:
    """Each request of each score with its reply, and why there is none where there is none.

    Args:
        detail: The item, read with its calls.
        out: Where to.
    """
    is_hashed = detail.run.store_text == "hash"
    for score in detail.scores:
        out.print()
        out.print(Words(f"replies ({score.scorer})", style="bold"), soft_wrap=True)
        for number, call in enumerate(score.calls, start=1):
            indented(out, f"{number}. {call.task}: {call.outcome} ({call.model}, {call.mode})", 2, hang=3)
            for line in call.reply.split("\n") if call.reply else ():
                out.print(Words("     ").append(line), soft_wrap=True)
            if not call.reply:
                indented(out, _why_none(call, is_hashed), 5, style="dim")
        for note in _notes(score):
            indented(out, note, 2, style="dim")


def _why_none(call: Call, is_hashed: bool) -> str:
    if call.reply is not None:
        return "the reply was empty"
    if is_hashed:
        return "not kept (store_text: hash)"
    return f"no reply is kept: {call.error}" if call.error else "no reply is kept"


def _notes(score: Score) -> Iterator[str]:
    if score.usage.remembered:
        yield f"remembered from earlier replies: {score.usage.remembered}"
    elif not score.calls:
        yield "no model was asked"
