"""The artifacts of a run in the Prefect UI: progress, summary, worst items, and a link to the report."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import re
import time
from typing import Any
from uuid import UUID

from prefect.artifacts import (
    acreate_link_artifact,
    acreate_markdown_artifact,
    acreate_progress_artifact,
    acreate_table_artifact,
    aupdate_progress_artifact,
)

from ragscore.flows import contact, telling
from ragscore.gate import GateResult
from ragscore.history import History, RunRow
from ragscore.report.summary import RunSummary
from ragscore.runs import Run
from ragscore.suite import Suite

#: Where HTML reports are served; `{run_id}` in it is filled in. Without it a report is linked where it lies.
REPORT_URL = "RAGSCORE_REPORT_URL"
#: Seconds between two updates of the progress, but for the last: each is a request.
BETWEEN_UPDATES_S = 2.0


def key_of(*parts: str) -> str:
    """An artifact's key, which may hold lower-case letters, digits and dashes; the same for the same suite over time,
    so that Prefect shows its versions side by side."""
    return "-".join(["ragscore", *map(_slug, parts)])


def _slug(part: str) -> str:
    slug = re.sub(r"[^a-z0-9]+", "-", part.lower()).strip("-")
    if slug and part.isascii():
        return slug
    # Names in other scripts would all be the same, and their artifacts versions of one another.
    return "-".join(filter(None, (slug, hashlib.sha256(part.encode()).hexdigest()[:8])))


class Progress:
    """The progress artifact of one flow run: the share of items that are stored.

    Updates go beside the run and at most one at a time, so that a slow server delays nothing; one that fails is left
    to the next.
    """

    def __init__(self, run: Run) -> None:
        self._suite = run.parts.suite.name
        self._total = max(1, len(run.parts.dataset.items))
        self._stored = self._total - len(run.pending)
        self._id: UUID | None = None
        self._told = 0.0
        self._update: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Show it."""
        created = await acreate_progress_artifact(
            self._percent, key=key_of(self._suite, "progress"), description=f"Items of {self._suite} that are stored"
        )
        self._id = created if isinstance(created, UUID) else created.id
        self._told = time.monotonic()

    def stored(self, items: int) -> None:
        """So many more are stored."""
        self._stored += items
        if contact.is_lost() or (self._update is not None and not self._update.done()):
            return
        if self._id is not None and time.monotonic() - self._told >= BETWEEN_UPDATES_S:
            self._update = asyncio.create_task(self._tell(self._id))

    async def end(self) -> None:
        """Show where it stands now."""
        if contact.is_lost():
            return
        if self._update is not None:
            await self._update
        if self._id is not None:
            await self._tell(self._id)

    async def _tell(self, artifact: UUID) -> None:
        self._told = time.monotonic()
        with contextlib.suppress(*contact.FAULTS):  # what becomes of the run is not decided here
            await aupdate_progress_artifact(artifact, progress=self._percent)

    @property
    def _percent(self) -> float:
        return round(100 * self._stored / self._total, 1)


async def tell(
    history: History, summary: RunSummary, gate: GateResult, suite: Suite, *, verdict: str
) -> telling.Change:
    """Write the summary, the table of the worst items, and the link to the report where there is one."""
    run = summary.run
    change = telling.change_of(history, run, suite)
    text = telling.summary_markdown(history, summary, gate, change, verdict=verdict)
    await acreate_markdown_artifact(text, key=key_of(run.suite, "summary"), description=telling.headline(run, verdict))
    rows: list[dict[str, Any]] = telling.worst_rows(summary, change)
    if rows:
        await acreate_table_artifact(
            rows,
            key=key_of(run.suite, "worst"),
            description=f"The {len(rows)} lowest items of {run.retriever} {run.version}",
        )
    if link := report_link(history, run):
        await acreate_link_artifact(link, link_text=f"Report of {run.run_id}", key=key_of(run.suite, "report"))
    return change


def report_link(history: History, run: RunRow) -> str | None:
    """Where the HTML report of a run is; None when there is none."""
    if served := os.environ.get(REPORT_URL):
        return served.replace("{run_id}", run.run_id)
    file = history.path.resolve().parent / "reports" / f"{run.run_id}.html"
    return file.as_uri() if file.exists() else None
