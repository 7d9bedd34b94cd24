"""The flow `digest`: how all suites have moved over a period, as one artifact."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from prefect import State, flow
from prefect.artifacts import acreate_markdown_artifact
from prefect.states import Completed

from ragscore.counting import counted
from ragscore.errors import RagscoreError
from ragscore.flows.artifacts import key_of
from ragscore.flows.ending import error_state
from ragscore.flows.telling import as_text, signed, table
from ragscore.flows.trend import picture, trends
from ragscore.history import History, select
from ragscore.home import history_path

_BY_SCORER = """
    SELECT scorer, count(*), arg_min(version, started_at), arg_max(version, started_at),
        arg_min(mean, started_at), arg_max(mean, started_at), min(mean), count(DISTINCT judge), count(DISTINCT scale)
    FROM score_history
    WHERE status = 'complete' AND suite = ? AND retriever IS NOT DISTINCT FROM ? AND started_at BETWEEN ? AND ?
    GROUP BY scorer ORDER BY scorer
"""
_RUNS = """
    SELECT suite, retriever, count(*), count(*) FILTER (status = 'complete'),
        count(*) FILTER (gate_verdict = 'fail'), count(*) FILTER (gate_verdict = 'inconclusive')
    FROM runs WHERE started_at BETWEEN ? AND ? GROUP BY suite, retriever ORDER BY suite, retriever
"""


@flow(name="digest", flow_run_name="digest of {days} days", validate_parameters=False, persist_result=False)
async def digest(history: str | None = None, days: float = 7) -> State[Any]:
    """Show the trends of all suites over the last `days` days.

    Args:
        history: Path of the history file; the default place when left out.
        days: The period, up to now.
    """
    until = datetime.now(UTC)
    since = until - timedelta(days=days)
    try:
        text, count = digest_markdown(History(history_path(Path(history) if history else None)), since, until)
    except RagscoreError as error:
        return error_state(error)
    await acreate_markdown_artifact(text, key=key_of("digest"), description=f"{since:%Y-%m-%d} to {until:%Y-%m-%d}")
    return Completed(message=f"{counted(count, 'run')} in {days:g} days")


def digest_markdown(history: History, since: datetime, until: datetime) -> tuple[str, int]:
    """The digest, and how many runs it is about.

    Raises:
        HistoryError: the history cannot be read; UsageError: there is none.
    """
    runs = select(history.path, _RUNS, [since, until]).rows
    blocks = [f"# Retrieval, {since:%Y-%m-%d} to {until:%Y-%m-%d}"]
    if not runs:
        blocks.append("No run in this time.")
    for suite, retriever, count, complete, failed, inconclusive in runs:
        counts = [counted(count, "run"), f"{failed} failed their gate", f"{inconclusive} inconclusive"]
        if count - complete:
            counts.append(f"**{count - complete} not complete**")
        rows = select(history.path, _BY_SCORER, [suite, retriever, since, until]).rows
        drawn = trends(history, suite=suite, retriever=retriever, since=since, until=until)
        blocks += [
            f"## {as_text(suite)}: {as_text(retriever or '')}",
            ", ".join(counts) + ".",
            table(("scorer", "runs", "first", "last", "change", "lowest", "note"), [_row(row) for row in rows])
            if rows
            else "",
            picture(drawn, alt=f"trend of {suite}"),
        ]
    return "\n\n".join(filter(None, blocks)) + "\n", sum(int(row[2]) for row in runs)


def _row(row: Sequence[Any]) -> tuple[str, ...]:
    scorer, count, first_version, last_version, first, last, lowest, judges, scales = row
    known = first is not None and last is not None
    return (
        str(scorer),
        str(count),
        f"{first:.2f} ({first_version})" if first is not None else "not scored",
        f"{last:.2f} ({last_version})" if last is not None else "not scored",
        signed(last - first) if known and judges == scales == 1 else "",
        f"{lowest:.2f}" if lowest is not None and scales == 1 else "",
        ", ".join(f"{n} {what}: not comparable" for n, what in ((judges, "judges"), (scales, "scales")) if n != 1),
    )
