"""`ragscore runs`: which runs the history holds."""

from __future__ import annotations

import json as json_
import sys

from ragscore.cli.options import HistoryFile, Json


def runs(*, suite: str | None = None, limit: int = 20, history: HistoryFile = None, json: Json = False) -> int:
    """List the runs of the history, newest first.

    Parameters
    ----------
    suite
        Only runs of this suite.
    limit
        At most so many.
    """
    from ragscore.errors import UsageError
    from ragscore.history import History
    from ragscore.home import history_path
    from ragscore.report.layout import console
    from ragscore.report.terminal import print_runs

    if limit < 1:
        raise UsageError("--limit is less than 1")
    rows = History(history_path(history)).runs(limit=limit, suite=suite)
    if json:
        fields = [
            "run_id",
            "suite",
            "retriever",
            "version",
            "items",
            "judge",
            "status",
            "gate_verdict",
            "started_at",
            "ended_at",
        ]
        fields += ["attempt", "expected_scores", "written_scores", "trigger", "engine", "error"]
        listed = [{name: getattr(row, name) for name in fields} for row in rows]
        sys.stdout.write(json_.dumps(listed, ensure_ascii=False, indent=2, default=str) + "\n")
    else:
        print_runs(rows, console())
    return 0
