"""`ragscore run`: evaluate a suite."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ragscore.cli.options import Dask, Engine, HistoryFile, Json


def run(
    suite: Path,
    /,
    *,
    engine: Engine = "auto",
    dask: Dask = None,
    fresh: Annotated[bool, Parameter(negative="")] = False,
    frozen: Annotated[bool, Parameter(negative="")] = False,
    fail_under: Annotated[list[str] | None, Parameter(negative="")] = None,
    history: HistoryFile = None,
    json: Json = False,
) -> int:
    """Evaluate a suite: ask the target, judge, score, and keep every verdict in the history.

    Parameters
    ----------
    suite
        The suite file (YAML). With several `targets` it is one run each, then the comparison with the first.
    fresh
        Judge again instead of remembering (a resume of this run does remember); frozen claims stay.
    frozen
        Extract no claims: a reference without frozen claims is an error. For CI.
    fail_under
        The least mean of a scorer, in its scale, like context_recall=0.8: below it the gate fails, exit 1.
    """
    from ragscore.cli.compared import limits_of, with_floors
    from ragscore.cli.execution import run_suites
    from ragscore.flows.engine import choose
    from ragscore.history import History
    from ragscore.home import history_path
    from ragscore.suite_file import read_suites

    files = read_suites(suite)
    if fresh:
        files = [file.changed(judge__fresh=True) for file in files]
    if frozen:
        files = [file.changed(frozen_claims=True) for file in files]
    if fail_under:
        floors = limits_of(fail_under, option="--fail-under")
        files = [file.changed(gate=with_floors(file.document.get("gate"), floors)) for file in files]
    return run_suites(files, lambda: choose(engine, dask=dask), History(history_path(history)), json=json)
