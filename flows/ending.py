"""How a flow run ends: the state that Prefect shows, and the exit code that it stands for (DESIGN §7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from prefect import State
from prefect.runtime import flow_run
from prefect.states import Cancelled, Completed, Failed

from ragscore.errors import RagscoreError
from ragscore.flows import events
from ragscore.gate import GateResult, Verdict
from ragscore.history import RunRow
from ragscore.report.summary import RunSummary

#: The most characters of the message of a state: it is read in one line of the UI.
LONGEST = 500
#: The verdict of a run that could not be evaluated.
ERROR = "error"


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run ended: its exit code and the one line that says why.

    Attributes:
        code: 0 pass, 1 gate failed, 3 could not be evaluated, 4 inconclusive where the suite asks for that.
        verdict: `pass`, `fail`, `inconclusive`, `error` (could not be evaluated) or `none` (no gate).
        said: The line, with the code in it unless it is 0.
    """

    code: int
    verdict: str
    said: str

    def state(self, run_id: str) -> State[Any]:
        """Failed for 1 and 3, so that Prefect's automations see it; else Completed, with the run's id as its value."""
        return Failed(message=self.said) if self.code in (1, 3) else Completed(message=self.said, data=run_id)


def ending_of(summary: RunSummary, gate: GateResult) -> Ending:
    """How a run that went through the chain ended."""
    if summary.faults:
        return Ending(3, ERROR, shortened(f"could not be evaluated (exit 3): {'; '.join(summary.faults)}"))
    if gate.verdict is None:
        return Ending(
            0, "none", shortened(f"evaluated; no verdict: {'; '.join(gate.notes) or 'the suite has no gate'}")
        )
    reasons = "; ".join(
        " ".join(filter(None, (check.scorer or check.what, check.slice, check.said)))
        for check in gate.checks
        if check.verdict is gate.verdict
    )
    if gate.verdict is Verdict.PASS:
        against = f" against {gate.baseline}" if gate.baseline else ""
        return Ending(0, "pass", f"gate passed{against}")
    word = "failed" if gate.verdict is Verdict.FAIL else "inconclusive"
    code = f" (exit {gate.exit_code})" if gate.exit_code else ""
    return Ending(gate.exit_code, gate.verdict.value, shortened(f"gate {word}{code}: {reasons}"))


def error_state(error: RagscoreError) -> State[Any]:
    """The Failed state of a run that could not go on, told as an event too; whoever waits for the flow in this process
    gets the error."""
    message = shortened(f"could not be evaluated (exit {error.exit_code}): {error}")
    tell_failed(message)
    return Failed(data=error, message=message)


def tell_failed(said: str, run: RunRow | None = None) -> None:
    """Tell the server that this flow run could not evaluate (`run`), so that somebody can be notified."""
    events.emit_failed(
        said,
        name=str(flow_run.name),
        flow_run_id=str(flow_run.id),
        count=flow_run.run_count or 1,
        labels={} if run is None else events.labels_of(run, ERROR),
    )


def cancelled_state(run_id: str) -> State[Any]:
    """The state of a run that was told to stop, and has kept what it has."""
    return Cancelled(message=f"stopped; `ragscore resume {run_id}` does the rest")


def shortened(text: str) -> str:
    """One line of at most `LONGEST` characters."""
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"
