"""Carries out a run under progress bars: signals, endings, and the summary with its exit code."""

from __future__ import annotations

import asyncio
import contextlib
import json as json_
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from ragscore.assembly import Parts, assemble
from ragscore.cli.progress import Progress
from ragscore.ending import carried_to_its_end
from ragscore.errors import RagscoreError
from ragscore.flows.engine import Engine
from ragscore.gate import kept_exit_code, require_baselines
from ragscore.history import History, RunRow
from ragscore.report.comparison import Comparison, compare_runs
from ragscore.report.hints import command
from ragscore.report.layout import console
from ragscore.report.summary import RunSummary, summary_of
from ragscore.report.terminal import print_comparison, print_summary
from ragscore.runs import Observer, Run, begin, new_run_id
from ragscore.suite_file import SuiteFile

#: Exit codes from the least to the gravest: of several runs, the gravest is the command's.
SEVERITY = (0, 4, 3, 1, 2)
#: What to look at after several runs.
MEANS = "select retriever, version, scorer, mean, n from score_history order by 1, 2, 3"


def run_suites(
    files: Sequence[SuiteFile],
    choose: Callable[[], Engine],
    history: History,
    *,
    trigger: str = "cli",
    json: bool = False,
) -> int:
    """Run suites one after another, print each summary, and compare every later one with the first.

    Args:
        files: The suites; all are assembled, so that what is wrong is found, before the first one runs.
        choose: Chooses the engine, once everything is found to be right.
        history: Where the runs go.
        trigger: What started them, for the history.
        json: Print JSON: one object, or a list where there are several suites.

    Returns:
        The gravest of their exit codes.
    """
    ids = [new_run_id() for _ in files]
    assembled = [assemble(file, run_id=run_id) for file, run_id in zip(files, ids, strict=True)]
    for file in files:
        require_baselines(history, file.suite, base_dir=file.base_dir)
    engine = choose()
    ended: list[RunRow] = []
    codes: list[int] = []
    shown: list[dict[str, Any]] = []
    for parts, run_id in zip(assembled, ids, strict=True):

        def opened(observer: Observer, parts: Parts = parts, run_id: str = run_id) -> Run:
            return begin(parts, history, run_id=run_id, trigger=trigger, engine=engine.name, observer=observer)

        row = execute(parts, opened, engine)
        summary = summary_of(history, row)
        shown.append(summary.as_dict())
        if not json:
            print_summary(summary, console(), footer=len(files) == 1)
        codes.append(exit_code(summary))
        ended.append(row)
        if row.status != "complete":
            _print_not_begun(row, files[len(ended) :], history)
            break
    if json:
        _write_json(shown[0] if len(files) == 1 else shown)
    elif len(ended) > 1:
        comparisons = [compare_runs(history, ended[0], later) for later in ended[1:]]
        for comparison in comparisons:
            print_comparison(comparison, console())
        _print_next(comparisons[-1], history)
    return max(codes, key=SEVERITY.index)


def _print_not_begun(row: RunRow, rest: Sequence[SuiteFile], history: History) -> None:
    """What the later runs of several would have been, and how to take up the one that did not come to its end."""
    if rest:
        named = ", ".join(f"{file.suite.target.retriever} {file.suite.target.version}" for file in rest)
        sys.stderr.write(
            f"not begun, since run {row.run_id} is {row.status}: {named}\n"
            f"{command('resume', row.run_id, history=history.path)}   does the rest of it; then run the suite again\n"
        )


def _print_next(comparison: Comparison, history: History) -> None:
    worse = [pair for each in comparison.scorers for pair in each.worse]
    item = worse[0].after.item_id if worse else "ID"
    sys.stdout.write(
        "\nWhere to look next:\n"
        f"  {command('show', comparison.after.run_id, '--item', item, history=history.path)}\n"
        f"  {command('sql', MEANS, history=history.path)}\n"
        f"Every verdict is kept in {history.path}.\n"
    )


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
        return await carried_to_its_end(run, partial(_carried_out, engine=engine))
    finally:
        await parts.judging.aclose()


def report(history: History, row: RunRow, *, json: bool = False) -> int:
    """Print the summary of a run that ended, and give its exit code (DESIGN §7)."""
    summary = summary_of(history, row)
    if json:
        _write_json(summary.as_dict())
    else:
        print_summary(summary, console())
    return exit_code(summary)


def _write_json(value: Any) -> None:
    sys.stdout.write(json_.dumps(value, ensure_ascii=False, indent=2) + "\n")


def exit_code(summary: RunSummary) -> int:
    """3 when the run is not complete or too few items have a score; else what the gate says."""
    return 3 if summary.faults else kept_exit_code(summary.run.gate)


async def _carried_out(run: Run, *, engine: Engine) -> None:
    try:
        await _interruptible(run, engine)
    except RagscoreError:
        run.observer.note(f"`{command('resume', run.run_id, history=run.history.path)}` does the rest")
        raise
    except (KeyboardInterrupt, asyncio.CancelledError):
        run.stop()
    for note in run.parts.judging.notes:
        run.observer.note(note)


async def _interruptible(run: Run, engine: Engine) -> None:
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
