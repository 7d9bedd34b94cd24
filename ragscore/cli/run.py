"""`ragscore run`: evaluate a suite."""

from __future__ import annotations

from pathlib import Path

from ragscore.cli.options import Engine, HistoryFile, Json


def run(suite: Path, /, *, engine: Engine = "auto", history: HistoryFile = None, json: Json = False) -> int:
    """Evaluate a suite: ask the target, judge, score, and keep every verdict in the history.

    Parameters
    ----------
    suite
        The suite file (YAML).
    """
    from ragscore.assembly import assemble
    from ragscore.cli.execution import execute, report
    from ragscore.flows.engine import choose
    from ragscore.history import History
    from ragscore.home import history_path
    from ragscore.runs import begin
    from ragscore.suite_file import read_suite

    parts = assemble(read_suite(suite))
    chosen = choose(engine)
    store = History(history_path(history))
    ended = execute(lambda observer: begin(parts, store, engine=chosen.name, observer=observer), chosen, json=json)
    return report(store, ended, json=json)
