"""`ragscore compare`: is B worse or better than A?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ragscore.cli.options import HistoryFile, Json

_Flag = Parameter(negative="")


def compare(
    before: str,
    after: str = "last",
    /,
    *,
    suite: str | None = None,
    max_drop: Annotated[list[str] | None, Parameter(negative="")] = None,
    items: int = 10,
    force: Annotated[bool, _Flag] = False,
    exit_code: Annotated[bool, _Flag] = False,
    markdown: Annotated[bool, _Flag] = False,
    junit: Path | None = None,
    history: HistoryFile = None,
    json: Json = False,
) -> int:
    """Compare two runs item by item: what got worse or better, for which facts, and whether that is more than chance.

    Parameters
    ----------
    before
        A run (id, a beginning of it, `last`), a version (its latest complete run), or `baseline`: what the gate of
        the later run's suite measures against.
    after
        A run or a version.
    suite
        Look for versions in this suite only.
    max_drop
        The drop that is tolerated, like context_recall=0.03; what the suite's gate says when left out, else none.
    items
        How many items are shown of each kind.
    force
        Compare runs that differ in judge, prompt or scorer version all the same; the output says so.
    exit_code
        Exit with 1 if a scorer fails, 4 if one is inconclusive; otherwise the exit is 0.
    markdown
        Print Markdown, for a comment on a pull request.
    junit
        Write JUnit XML to this file, too.
    """
    import json as json_

    from ragscore.cli.compared import limits_of, run_named
    from ragscore.gate import Verdict
    from ragscore.history import History
    from ragscore.home import history_path
    from ragscore.report.comparison import compare_runs, keep_comparison
    from ragscore.report.comparison_formats import as_junit, as_markdown
    from ragscore.report.layout import console
    from ragscore.report.terminal import print_means
    from ragscore.report.verdicts import print_items, print_verdicts

    store = History(history_path(history))
    later, _ = run_named(after, store, suite=suite)
    earlier, where = run_named(before, store, suite=suite or later.suite, than=later)
    comparison = compare_runs(
        store,
        earlier,
        later,
        max_drop=limits_of(max_drop) if max_drop else None,
        before_in=where,
        force=force,
    )
    keep_comparison(store, comparison)
    if junit is not None:
        junit.write_text(as_junit(comparison), encoding="utf-8")
    if json:
        sys.stdout.write(json_.dumps(comparison.as_dict(), ensure_ascii=False, indent=2) + "\n")
    elif markdown:
        sys.stdout.write(as_markdown(comparison))
    else:
        out = console()
        print_means(comparison, out)
        print_verdicts(comparison, out)
        print_items(comparison, out, most=items)
    verdicts = {answer.verdict for answer in comparison.answers.values()}
    if not exit_code:
        return 0
    return 1 if Verdict.FAIL in verdicts else 4 if Verdict.INCONCLUSIVE in verdicts else 0
