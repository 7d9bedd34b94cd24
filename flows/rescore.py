"""The flow `rescore`: what a run retrieved is judged again, under another judge or other scorers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from prefect import State, flow
from prefect.runtime import flow_run

from ragscore.assembly import assemble
from ragscore.errors import RagscoreError
from ragscore.flows.ending import error_state
from ragscore.flows.evaluate import carried_out, run_of_this_flow_run
from ragscore.flows.stored import stored_suite
from ragscore.history import History
from ragscore.home import history_path, home
from ragscore.runs import Run, begin, new_run_id, parts_of
from ragscore.suite_file import SuiteFile


@flow(name="rescore", flow_run_name="rescore {run}", validate_parameters=False, persist_result=False)
async def rescore(
    run: str = "last",
    judge: dict[str, Any] | str | None = None,
    scorers: Sequence[Any] | None = None,
    history: str | None = None,
    context_set: str | None = None,
    name: str | None = None,
) -> str | State[Any]:
    """Judge the stored retrievals of a run again, without calling its target; a new run, of a suite of its own.

    Args:
        run: The run's id, a beginning of it, or `last`.
        judge: The judge, as a suite writes it; the run's own when left out.
        scorers: The scorers, as a suite writes them; the run's own when left out.
        history: Path of the history file; the default place when left out.
        context_set: Which contexts, where scorers of the run had different ones.
        name: The new suite's name; the run's with “(rescored)” when left out.

    Returns:
        The new run's id; or the state that says how it ended.
    """
    try:
        store = History(history_path(Path(history) if history else None))
        row = store.run(run)
        given: dict[str, Any] = {"judge": judge, "scorers": scorers}
        changes = {key: value for key, value in given.items() if value is not None}
        file = stored_suite(
            store,
            row,
            home() / "rescored",
            name=name or f"{row.suite} (rescored)",
            context_set=context_set,
            **changes,
        )
        return await carried_out(await opened_for(file, store, trigger="rescore"))
    except RagscoreError as error:
        return error_state(error)


async def opened_for(file: SuiteFile, store: History, *, trigger: str, tail: str | None = None) -> Run:
    """A run of a suite that no file holds; a retry of the flow run finds it again.

    Args:
        file: The suite.
        store: Where the run goes.
        trigger: What started it, for the history.
        tail: The end of its id; of the flow run's id when left out.
    """
    begun = run_of_this_flow_run(store, suite=file.suite.name)
    if begun is not None:
        run_id = begun.run_id
        parts = parts_of(begun)
    else:
        run_id = new_run_id(at=flow_run.scheduled_start_time, tail=tail or str(flow_run.id)[-6:])
        parts = assemble(file, run_id=run_id)
    await parts.judging.prepare()
    return begin(parts, store, run_id=run_id, trigger=trigger, engine="prefect", flow_run_id=str(flow_run.id))
