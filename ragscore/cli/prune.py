"""`ragscore prune`: take old runs out of the history."""

from __future__ import annotations

import json as json_
import re
import sys
from datetime import UTC, datetime, timedelta

from ragscore.cli.options import HistoryFile, Json
from ragscore.counting import counted

_AGE = re.compile(r"(\d+)([dwy])")
_DAYS = {"d": 1, "w": 7, "y": 365}


def prune(
    *, keep: str, suite: str | None = None, yes: bool = False, history: HistoryFile = None, json: Json = False
) -> int:
    """Say which runs are older than what is to be kept, and with --yes take them out.

    Runs in progress, the last run of each suite and retriever, the last that passed its gate, the last that did not
    fail it, and runs that a gate names always stay.

    Parameters
    ----------
    keep
        How many runs of each suite (20), or how long (90d, 12w, 2y).
    suite
        Only runs of this suite.
    yes
        Do it. Without, nothing is changed.
    """
    from ragscore.history import History
    from ragscore.history.pruning import plan_pruning
    from ragscore.history.pruning import prune as carry_out
    from ragscore.home import history_path
    from ragscore.report.layout import console
    from ragscore.report.terminal import print_runs

    count, since = _kept(keep)
    store = History(history_path(history))
    plan = plan_pruning(store, keep_runs=count, keep_since=since, suite=suite)
    gone = carry_out(store, plan) if yes and plan.going else plan.rows
    if json:
        told = {
            "done": yes,
            "runs": [row.run_id for row in plan.going],
            "rows": dict(gone),
            "held": dict(plan.held),
            "kept": plan.kept,
        }
        sys.stdout.write(json_.dumps(told, ensure_ascii=False, indent=2) + "\n")
        return 0
    if plan.going:
        print_runs(plan.going, console())
    for run_id, why in plan.held.items():
        sys.stdout.write(f"stays: {run_id}, {why}\n")
    rows = ", ".join(f"{n} {table}" for table, n in gone.items() if n and table != "runs")
    done = "gone" if yes else "would go; nothing was changed — add --yes to do it"
    with_them = f", with {rows}" if rows else ""
    what = f"{counted(len(plan.going), 'run')}{with_them}: {done}" if plan.going else "nothing to take out"
    sys.stdout.write(f"{what}. {counted(plan.kept, 'run')} {'stays' if plan.kept == 1 else 'stay'}.\n")
    return 0


def _kept(keep: str) -> tuple[int | None, datetime | None]:
    from ragscore.errors import UsageError

    if keep.isdecimal() and int(keep) > 0:
        return int(keep), None
    found = _AGE.fullmatch(keep)
    if found is None or int(found[1]) == 0:
        raise UsageError(f"--keep {keep} is not understood", mend="a number of runs (20) or a time (90d, 12w, 2y)")
    try:
        return None, datetime.now(UTC) - timedelta(days=int(found[1]) * _DAYS[found[2]])
    except OverflowError as error:
        raise UsageError(f"--keep {keep} is longer than there are dates", mend="a time such as 2y") from error
