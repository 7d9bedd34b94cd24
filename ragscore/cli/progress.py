"""Progress bars of a run: items, calls, remembered, cost, time left, and the oldest item in flight."""

from __future__ import annotations

import sys
import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bars

from ragscore.items import Batch, Item, Record, Usage
from ragscore.runs import Run
from ragscore.scorers import Judged

#: Seconds after which the bar names the item that is out longest.
SLOW_S = 5.0


class Progress:
    """An observer that draws to standard error: bars on a terminal, plain lines elsewhere."""

    def __init__(self) -> None:
        self._console = Console(stderr=True, highlight=False)
        self._bars = Bars(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[items]}"),
            TextColumn("{task.fields[spent]}"),
            TimeRemainingColumn(compact=True),
            TextColumn("{task.fields[waiting]}"),
            console=self._console,
            transient=True,
            disable=not sys.stderr.isatty(),
        )
        self._task: TaskID | None = None
        self._usage = Usage()
        self._out: dict[str, float] = {}
        self._total = self._answered = self._judged = 0

    def __enter__(self) -> Progress:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def begin(self, run: Run, title: str) -> None:
        """Show a bar for the items that are pending."""
        self._total, self._answered, self._judged = len(run.pending), 0, 0
        self._task = self._bars.add_task(title, total=self._total, items=f"0/{self._total}", spent="", waiting="")

    def stage(self, name: str, batch: Batch) -> None:
        """A batch has entered a stage."""
        self._draw()

    def asked(self, item: Item) -> None:
        """The target is being asked."""
        self._out[item.id] = time.monotonic()

    def answered(self, item: Item) -> None:
        """The target has answered, or failed."""
        self._out.pop(item.id, None)
        self._answered += 1
        self._draw()

    def judged(self, record: Record) -> None:
        """All scorers of an item are judged."""
        self._judged += 1
        self._draw()

    def stored(self, batch: Batch) -> None:
        """A batch is in the history."""
        for record in batch:
            for judged in (record.judged or {}).values():
                if isinstance(judged, Judged):
                    self._usage += judged.usage
        self._draw()

    def note(self, text: str) -> None:
        """A line that stays."""
        self._bars.console.print(text, style="dim", soft_wrap=True, markup=False)

    def _draw(self) -> None:
        if self._task is None:
            return
        usage = self._usage
        spent = f"{usage.calls} calls"
        if usage.remembered:
            spent += f", {usage.remembered} remembered"
        if usage.cost_usd:
            spent += f", ${usage.cost_usd:.4f}"
        waiting = ""
        if self._out:
            item_id, since = min(self._out.items(), key=lambda each: each[1])
            if (seconds := time.monotonic() - since) > SLOW_S:
                waiting = f"waiting {seconds:.0f} s for {item_id}"
        # Half of an item is its answer, half the judging; an answer from an earlier attempt is there already.
        done = (max(self._answered, self._judged) + self._judged) / 2
        items = f"{self._judged}/{self._total}"
        self._bars.update(self._task, completed=done, items=items, spent=spent, waiting=waiting)
