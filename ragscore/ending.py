"""How a run ends, whoever carried it out: what became of it is written down, and it is held against its gate."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from ragscore.errors import RagscoreError
from ragscore.gate import evaluate_gate
from ragscore.history import RunRow
from ragscore.runs import Run


async def carried_to_its_end(run: Run, carry_out: Callable[[Run], Awaitable[None]]) -> RunRow:
    """Carry out a run that was opened, and end it.

    Args:
        run: The run; what its judge holds stays open.
        carry_out: Takes it through the chain, e.g. `engine.evaluate_locally`.

    Returns:
        The run's row: `complete`, or `cancelled` where it was stopped, with the verdict of its gate.

    Raises:
        RagscoreError: it could not go on; its row says `failed` and why.
    """
    try:
        await carry_out(run)
    except RagscoreError as error:
        run.history.finish_run(run.run_id, status="failed", error=str(error))
        raise
    run.history.finish_run(run.run_id, status="cancelled" if run.stopping else "complete")
    row = run.history.run(run.run_id)
    if row.gate is not None and row.status == "complete":
        return row  # a flow that reports to a server has held it against its gate
    evaluate_gate(run.history, row, run.parts.suite)
    return run.history.run(run.run_id)
