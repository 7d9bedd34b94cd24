"""`ragscore resume`: do what is missing of a run."""

from __future__ import annotations

from ragscore.cli.options import Engine, HistoryFile, Json


def resume(run: str = "last", /, *, engine: Engine = "auto", history: HistoryFile = None, json: Json = False) -> int:
    """Take up a run again: do what is missing, try again what failed; nothing that is there is repeated.

    Parameters
    ----------
    run
        The run's id, a beginning of it, or `last`.
    """
    from ragscore.cli.execution import execute, report
    from ragscore.flows.engine import choose
    from ragscore.history import History
    from ragscore.home import history_path
    from ragscore.runs import take_up

    store = History(history_path(history))
    chosen = choose(engine)
    ended = execute(lambda observer: take_up(store, run, observer=observer), chosen, json=json)
    return report(store, ended, json=json)
