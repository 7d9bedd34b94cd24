"""Carries out a run under progress bars: signals, endings, and the summary with its exit code."""

from __future__ import annotations

import asyncio
import contextlib
import json as json_
import signal
import sys
from collections.abc import Callable, Iterator

from ragscore.assembly import Parts
from ragscore.cli.progress import Progress
from ragscore.errors import RagscoreError
from ragscore.flows.engine import Engine
from ragscore.history import History, RunRow
from ragscore.report.summary import RunSummary, summary_of
from ragscore.report.terminal import console, print_summary
from ragscore.runs import Observer, Run


def execute(parts: Parts, open_run: Callable[[Observer], Run], engine: Engine) -> RunRow:
    """Open a run, carry it out, and write down how it ended.

    Args:
        parts: What the run is made of; prepared before the run is opened and closed at the end.
        open_run: Opens the run in the history, given who is told of its progress.
        engine: What carries it out.

    Returns:
        The run's row as it ended.

    Raises:
        RagscoreError: the judge or the history cannot be used, and nothing was begun; or the run could not go on, and
            its row says so too.
    """
    with Progress() as progress:
        return asyncio.run(_executed(parts, open_run, engine, progress))


async def _executed(parts: Parts, open_run: Callable[[Observer], Run], engine: Engine, progress: Progress) -> RunRow:
    try:
        await parts.judging.prepare()
        run = open_run(progress)
        target = parts.suite.target
        progress.begin(run, f"{target.retriever} {target.version}")
        progress.note(f"engine: {engine.said} · judge: {parts.judge.name} · run {run.run_id}")
        try:
            await _carried_out(run, engine)
        except RagscoreError as error:
            run.history.finish_run(run.run_id, status="failed", error=str(error))
            progress.note(f"`ragscore resume {run.run_id}` does the rest")
            raise
        except (KeyboardInterrupt, asyncio.CancelledError):
            run.stop()
        for note in parts.judging.notes:
            progress.note(note)
        run.history.finish_run(run.run_id, status="cancelled" if run.stopping else "complete")
        return run.history.run(run.run_id)
    finally:
        await parts.judging.aclose()


def report(history: History, row: RunRow, *, json: bool = False) -> int:
    """Print the summary of a run that ended, and give its exit code (DESIGN §7)."""
    summary = summary_of(history, row)
    if json:
        sys.stdout.write(json_.dumps(summary.as_dict(), ensure_ascii=False, indent=2) + "\n")
    else:
        print_summary(summary, console())
    return exit_code(summary)


def exit_code(summary: RunSummary) -> int:
    """0, or 3 when the run is not complete or too few items have a score."""
    return 3 if summary.faults else 0


async def _carried_out(run: Run, engine: Engine) -> None:
    task = asyncio.current_task()
    assert task is not None

    def interrupted() -> None:
        if run.stopping:
            task.cancel()
        else:
            run.stop()
            run.observer.note("finishing what is in flight; Ctrl-C again stops now")

    with _on_interrupt(interrupted):
        await engine.carry_out(run)


@contextlib.contextmanager
def _on_interrupt(act: Callable[[], None]) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    try:
        loop.add_signal_handler(signal.SIGINT, act)
    except (NotImplementedError, RuntimeError):  # Windows, or not the main thread: Ctrl-C stops at once there
        yield
        return
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)
