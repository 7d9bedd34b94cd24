"""`ragscore resume`: do what is missing of a run."""

from __future__ import annotations

from ragscore.cli.options import Dask, Engine, HistoryFile, Json


def resume(
    run: str = "last",
    /,
    *,
    missing_only: bool = False,
    errors_only: bool = False,
    engine: Engine = "auto",
    dask: Dask = None,
    history: HistoryFile = None,
    json: Json = False,
) -> int:
    """Take up a run again: do what is missing, try again what failed; nothing that is there is repeated.

    Parameters
    ----------
    run
        The run's id, a beginning of it, or `last`.
    missing_only
        Leave what failed as it is.
    errors_only
        Leave what is missing as it is.
    """
    from ragscore.cli.execution import execute, report
    from ragscore.errors import UsageError
    from ragscore.flows.engine import choose
    from ragscore.history import History
    from ragscore.home import history_path
    from ragscore.runs import Redo, may_be_taken_up, parts_of, take_up

    if missing_only and errors_only:
        raise UsageError("--missing-only and --errors-only exclude each other", mend="leave both out to do both")
    redo: Redo = "missing" if missing_only else "errors" if errors_only else "all"
    store = History(history_path(history))
    row = store.run(run)
    may_be_taken_up(row)
    parts = parts_of(row)
    chosen = choose(engine, dask=dask)
    ended = execute(parts, lambda observer: take_up(store, row, parts, redo=redo, observer=observer), chosen)
    return report(store, ended, json=json)
