"""`ragscore show`: one run, or one item of it, with every verdict and its evidence."""

from __future__ import annotations

import dataclasses
import json as json_
import sys
from fractions import Fraction
from typing import Annotated, Any

from cyclopts import Parameter

from ragscore.cli.options import HistoryFile, Json


def show(
    run: str = "last",
    /,
    *,
    item: str | None = None,
    replies: Annotated[bool, Parameter(negative="")] = False,
    history: HistoryFile = None,
    json: Json = False,
) -> int:
    """Show the summary of a run, or one item: each claim and context with its verdict, evidence and why.

    Parameters
    ----------
    run
        The run's id, a beginning of it, or `last`.
    item
        The id of one item of the run.
    replies
        With `--item`: also each request to the judge's model, with its reply word for word.
    """
    from ragscore.errors import UsageError
    from ragscore.history import History, item_detail
    from ragscore.home import history_path
    from ragscore.report.layout import console
    from ragscore.report.replies import print_replies
    from ragscore.report.summary import summary_of
    from ragscore.report.terminal import print_item, print_summary

    if replies and item is None:
        raise UsageError("--replies shows those of one item", mend="say which with --item ID")
    store = History(history_path(history))
    row = store.run(run)
    if item is None:
        summary = summary_of(store, row, worst=10)
        if json:
            _write(summary.as_dict())
        else:
            print_summary(summary, console())
        return 0
    detail = item_detail(store, row.run_id, item, calls=replies)
    if json:
        shown = dataclasses.asdict(detail)
        shown["run"] = row.run_id
        _write(shown)
    else:
        out = console()
        print_item(detail, out)
        if replies:
            print_replies(detail, out)
    return 0


def _write(value: Any) -> None:
    def plain(each: Any) -> Any:
        return f"{each.numerator}/{each.denominator}" if isinstance(each, Fraction) else str(each)

    sys.stdout.write(json_.dumps(value, ensure_ascii=False, indent=2, default=plain) + "\n")
