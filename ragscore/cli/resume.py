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
    from ragscore.runs import may_be_taken_up, parts_of, take_up

    store = History(history_path(history))
    row = store.run(run)
    may_be_taken_up(row)
    parts = parts_of(row)
    chosen = choose(engine)
    ended = execute(parts, lambda observer: take_up(store, row, parts, observer=observer), chosen)
    return report(store, ended, json=json)
