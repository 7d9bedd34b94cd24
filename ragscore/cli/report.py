"""`ragscore report`: one HTML file about a suite, a run or two runs."""

from __future__ import annotations

import json as json_
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from ragscore.cli.options import HistoryFile, Json

if TYPE_CHECKING:
    from ragscore.history import History, RunRow

_Flag = Parameter(negative="")


def report(
    what: str = "last",
    /,
    *,
    compare: tuple[str, str] | None = None,
    output: Annotated[Path, Parameter(name=["--output", "-o"])] = Path("report.html"),
    open_it: Annotated[bool, Parameter(name="--open", negative="")] = False,
    force: Annotated[bool, _Flag] = False,
    history: HistoryFile = None,
    json: Json = False,
) -> int:
    """Write a report as one HTML file that needs no network: overview, run, items, comparison, judge.

    Parameters
    ----------
    what
        A suite (its latest run), a run (id, a beginning of it, `last`) or a version.
    compare
        Two runs or versions, the earlier one first; the first may be `baseline`. When left out, the run is compared
        with its baseline, or with the run before.
    output
        The file.
    open_it
        Open it in the browser.
    force
        Compare runs that differ in judge, prompt or scorer version all the same; the report says so.
    """
    from ragscore.cli.compared import run_named
    from ragscore.errors import UsageError
    from ragscore.history import History
    from ragscore.home import history_path
    from ragscore.report.html import contents_of, write_report

    store = History(history_path(history))
    if compare is not None:
        if what != "last":
            raise UsageError(f"{what!r} and --compare name two things", mend="--compare A B names both runs")
        earlier, later = compare
        row, _ = run_named(later, store)
        against, where = run_named(earlier, store, suite=row.suite, than=row)
        contents = contents_of(store, row, suite=row.suite, against=against, against_in=where, force=force)
    else:
        row = _run_of(what, store)
        contents = contents_of(store, row, suite=None if what == "last" else row.suite, force=force)
    try:
        size = write_report(contents, output)
    except OSError as error:
        raise UsageError(
            f"the report cannot be written: {error.strerror}", where=str(output), mend="name another file with -o"
        ) from error
    if json:
        told = {"file": str(output), "bytes": size, "run_id": row.run_id, "items": len(contents.entries)}
        sys.stdout.write(json_.dumps(told, ensure_ascii=False, indent=2) + "\n")
    else:
        sys.stdout.write(f"{output}: {row.suite} {row.version or ''}, run {row.run_id} ({size / 1e6:.1f} MB)\n")
    if open_it:
        import webbrowser

        webbrowser.open(output.resolve().as_uri())
    return 0


def _run_of(what: str, store: History) -> RunRow:
    """The latest run of the suite of that name, complete where there is one; else the run or version of that name."""
    from ragscore.cli.compared import run_named

    of_suite = store.runs(suite=what)
    if of_suite:
        return next((row for row in of_suite if row.status == "complete"), of_suite[0])
    return run_named(what, store)[0]
