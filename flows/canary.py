"""The flow `canary`: does the judge still decide as it did? Hosted models change behind their names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from prefect import State, flow
from prefect.artifacts import acreate_markdown_artifact
from prefect.events import emit_event
from prefect.runtime import flow_run
from prefect.states import Completed, Failed

from ragscore.errors import RagscoreError
from ragscore.flows import events
from ragscore.flows.artifacts import key_of
from ragscore.flows.ending import error_state, shortened, tell_failed
from ragscore.flows.evaluate import carried_out, deploy_tail
from ragscore.flows.rescore import opened_for
from ragscore.flows.stored import stored_suite
from ragscore.flows.suites import suite_paths
from ragscore.flows.telling import table
from ragscore.history import History, RunRow, findings, select
from ragscore.home import history_path, home
from ragscore.suite_file import read_suites

#: The end of the names of the suites under which the canary's runs stand in the history.
SUFFIX = " (canary)"


@flow(name="canary", flow_run_name="canary of the judges", validate_parameters=False, persist_result=False)
async def canary(
    suites: Sequence[str] = ("suites",),
    history: str | None = None,
    items: int = 20,
    min_agreement: float = 0.95,
) -> State[Any]:
    """Ask each suite's judge again what it decided in its first run here, and compare the decisions.

    The same contexts, claims and questions go to the judge as then, past everything that is remembered. Always against
    the first complete run under that judge, so that a slow drift adds up instead of hiding.

    Args:
        suites: Suite files and folders of them.
        history: Path of the history file; the default place when left out.
        items: How many items of each suite; each costs the calls of a first run.
        min_agreement: The least share of decisions that must be as they were.

    Returns:
        Failed when a judge has drifted (exit 1) or could not be asked (exit 3).
    """
    try:
        store = History(history_path(Path(history) if history else None))
        rows = []
        for path in suite_paths(suites):
            for name in sorted({each.suite.name for each in read_suites(path)}):
                rows.append(await _asked_again(store, name, items, min_agreement))
    except RagscoreError as error:
        return error_state(error)
    shown = [(name, verdict, said) for name, verdict, said in rows]
    text = f"# Do the judges decide as before?\n\n{table(('suite', 'verdict', 'found'), shown)}\n"
    await acreate_markdown_artifact(text, key=key_of("canary"), description=f"{items} items per suite")
    for verdict, code, word in (("error", 3, "could not be evaluated"), ("drifted", 1, "the judge has drifted")):
        if told := [f"{name}: {said}" for name, each, said in rows if each == verdict]:
            return Failed(message=shortened(f"{word} (exit {code}): {'; '.join(told)}"))
    return Completed(message=shortened("; ".join(f"{name}: {said}" for name, _, said in rows)) or "no suite")


async def _asked_again(store: History, suite: str, items: int, least: float) -> tuple[str, str, str]:
    first = _first_run(store, suite) if store.exists() else None
    if first is None:
        return suite, "none", "no complete run yet"
    file = stored_suite(store, first, home() / "canary", name=suite + SUFFIX, most=items, judge__fresh=True)
    run = await opened_for(file, store, trigger="canary", tail=deploy_tail(str(flow_run.id), suite))
    ended = await carried_out(run)
    if isinstance(ended, State) and ended.is_failed():
        return suite, "error", ended.message or "the run failed"
    same, both = agreement(store, first, store.run(run.run_id))
    if not both:
        said = f"nothing to compare with run {first.run_id}"
        tell_failed(f"could not be evaluated (exit 3): {suite}: {said}")
        return suite, "error", said
    said = f"{same} of {both} decisions of {first.judge} are as in run {first.run_id} ({same / both:.1%})"
    if same / both >= least:
        return suite, "steady", said
    emit_event(
        events.DRIFTED,
        resource={
            "prefect.resource.id": f"ragscore.judge.{first.judge}",
            "prefect.resource.name": first.judge,
            "ragscore.suite": suite,
        },
        payload={"run_id": run.run_id, "first_run_id": first.run_id, "same": same, "decisions": both, "said": said},
        id=events.event_id(events.DRIFTED, run.run_id),
    )
    return suite, "drifted", f"{said}, less than {least:.0%}"


def agreement(history: History, before: RunRow, after: RunRow) -> tuple[int, int]:
    """How many decisions (a claim supported, a context useful) are the same in both runs, of how many that are in
    both."""
    then, now = _decisions(history, before), _decisions(history, after)
    both = then.keys() & now.keys()
    return sum(then[key] == now[key] for key in both), len(both)


def _decisions(history: History, run: RunRow) -> dict[tuple[str, str, str, str], bool]:
    return {
        (each.item_id, each.scorer, each.finding.kind, each.finding.text): each.finding.positive
        for each in findings(history, run.run_id)
        if each.finding.positive is not None
    }


def _first_run(history: History, suite: str) -> RunRow | None:
    """The first complete run under the judge, with the parameters, of the suite's latest one."""
    rows = select(
        history.path,
        """
        SELECT run_id FROM runs
        JOIN (
            SELECT judge, judge_params FROM runs WHERE suite = $1 AND status = 'complete'
            ORDER BY started_at DESC, run_id DESC LIMIT 1
        ) AS latest USING (judge, judge_params)
        WHERE suite = $1 AND status = 'complete' AND store_text = 'full' ORDER BY started_at, run_id LIMIT 1
        """,
        [suite],
    ).rows
    return history.run(str(rows[0][0])) if rows else None
