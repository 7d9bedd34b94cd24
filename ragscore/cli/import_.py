"""`ragscore import`: past results of other tools, taken into the history."""

from __future__ import annotations

import json as json_
import sys
from datetime import datetime
from pathlib import Path
from typing import Literal

from ragscore.cli.options import HistoryFile, Json
from ragscore.counting import counted


def import_(
    results: Path,
    /,
    *,
    suite: str,
    retriever: str = "retriever",
    version: str = "imported",
    tool: Literal["ragas", "deepeval", "promptfoo", "mlflow"] | None = None,
    at: datetime | None = None,
    history: HistoryFile = None,
    json: Json = False,
) -> int:
    """Take results of ragas, DeepEval, promptfoo or MLflow into the history, marked as foreign. Twice changes nothing.

    Parameters
    ----------
    results
        The file that the other tool wrote: JSON, JSONL or CSV.
    suite
        The suite that they continue; trends are by suite.
    retriever
        What was evaluated.
    version
        Which version of it.
    tool
        Which tool wrote the file; found by its shape when left out.
    at
        When the results were made; the file's time when left out. UTC where no zone is given.
    """
    from datetime import UTC

    from ragscore.foreign import import_results
    from ragscore.history import History
    from ragscore.home import history_path

    moment = at.replace(tzinfo=UTC) if at is not None and at.tzinfo is None else at
    store = History(history_path(history))
    done = import_results(results, store, suite=suite, retriever=retriever, version=version, tool=tool, at=moment)
    told = {
        "run_id": done.run_id,
        "is_new": done.is_new,
        "tool": done.results.tool,
        "items": len(done.results.items),
        "scorers": list(done.results.scorers),
        "skipped": list(done.results.skipped),
    }
    if json:
        sys.stdout.write(json_.dumps(told, ensure_ascii=False, indent=2) + "\n")
        return 0
    names = ", ".join(done.results.scorers)
    there = "" if done.is_new else " (it was there already)"
    sys.stdout.write(
        f"run {done.run_id}: {counted(len(done.results.items), 'item')} of {done.results.tool}: {names}{there}\n"
    )
    for skipped in done.results.skipped:
        sys.stderr.write(f"left out: {skipped}\n")
    return 0
