"""`ragscore run`: evaluate a suite."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ragscore.cli.options import Engine, HistoryFile, Json


def run(
    suite: Path,
    /,
    *,
    engine: Engine = "auto",
    fresh: Annotated[bool, Parameter(negative="")] = False,
    frozen: Annotated[bool, Parameter(negative="")] = False,
    history: HistoryFile = None,
    json: Json = False,
) -> int:
    """Evaluate a suite: ask the target, judge, score, and keep every verdict in the history.

    Parameters
    ----------
    suite
        The suite file (YAML).
    fresh
        Judge again instead of remembering (a resume of this run does remember); frozen claims stay.
    frozen
        Extract no claims: a reference without frozen claims is an error. For CI.
    """
    from ragscore.assembly import assemble
    from ragscore.cli.execution import execute, report
    from ragscore.flows.engine import choose
    from ragscore.history import History
    from ragscore.home import history_path
    from ragscore.runs import begin, new_run_id
    from ragscore.suite_file import read_suite

    file = read_suite(suite)
    if fresh:
        file = file.changed(judge__fresh=True)
    if frozen:
        file = file.changed(frozen_claims=True)
    run_id = new_run_id()
    parts = assemble(file, run_id=run_id)
    chosen = choose(engine)
    store = History(history_path(history))
    ended = execute(
        parts,
        lambda observer: begin(parts, store, run_id=run_id, engine=chosen.name, observer=observer),
        chosen,
    )
    return report(store, ended, json=json)
