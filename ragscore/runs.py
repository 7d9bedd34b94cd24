"""A run in progress: begun anew or taken up again, its state shared by the stages, and how it ends."""

from __future__ import annotations

import asyncio
import os
import platform
import secrets
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Literal, Protocol

from ragscore.assembly import Parts, assemble
from ragscore.contexts import nothing_found
from ragscore.errors import ConfigError, UsageError
from ragscore.history import History, RunRow
from ragscore.items import RETRYABLE, Batch, ContextSet, Item, Record, Response, Status
from ragscore.suite_file import SuiteFile, check_suite

#: One batch may have met one slow question; a second one tells that the target is not there.
BATCHES_BEFORE_GIVING_UP = 2

#: A resume asks the history about this many items at once.
ASKED_AT_ONCE = 10_000

#: What a resume does: what is missing, what ended in an error, or both.
Redo = Literal["all", "missing", "errors"]


class Observer(Protocol):
    """Is told how a run gets on, in its event loop."""

    def stage(self, name: str, batch: Batch) -> None: ...
    def asked(self, item: Item) -> None: ...
    def answered(self, item: Item) -> None: ...
    def judged(self, record: Record) -> None: ...
    def stored(self, batch: Batch) -> None: ...
    def note(self, text: str) -> None: ...


class Silent:
    """An observer that says nothing."""

    def stage(self, name: str, batch: Batch) -> None: ...
    def asked(self, item: Item) -> None: ...
    def answered(self, item: Item) -> None: ...
    def judged(self, record: Record) -> None: ...
    def stored(self, batch: Batch) -> None: ...
    def note(self, text: str) -> None: ...


class Kept(Protocol):
    """What the stages ask of the history, and tell it; see `History`. A worker of a cluster has one of its own."""

    def responses(self, run_id: str, item_ids: Iterable[str]) -> dict[str, tuple[Response, int]]: ...
    def context_sets(self, run_id: str, item_ids: Iterable[str]) -> dict[str, dict[str, ContextSet]]: ...
    def scored(self, run_id: str, item_ids: Iterable[str]) -> dict[str, dict[str, tuple[Status, int]]]: ...
    def store_responses(self, run_id: str, records: Sequence[Record]) -> int: ...
    def store_contexts(self, run_id: str, records: Sequence[Record]) -> int: ...
    def store_scores(self, run_id: str, records: Sequence[Record]) -> int: ...


class Pending:
    """The records that a run still has to take through the chain, in the order of the dataset.

    They are made from the dataset's items at each passage and not held: a run of any length takes no more memory than
    the batches that are open.

    Args:
        items: The items of the dataset.
        attempt: The number of the rows that this passage writes.
        wanted: One byte per item, 1 for those that are meant; all when left out.
    """

    def __init__(self, items: Sequence[Item], attempt: int, *, wanted: bytearray | None = None) -> None:
        self._items = items
        self._attempt = attempt
        self._wanted = wanted
        self._count = len(items) if wanted is None else wanted.count(1)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Record]:
        for position, item in enumerate(self._items):
            if self._wanted is None or self._wanted[position]:
                yield Record(item, position=position, attempt=self._attempt)

    def batches(self, size: int) -> Iterator[Batch]:
        """The records in lists of `size`, the last one shorter; one list is made at a time."""
        records = iter(self)
        while batch := list(islice(records, size)):
            yield batch


@dataclass
class Run:
    """What the stages of one run share."""

    run_id: str
    parts: Parts
    history: History
    kept: Kept = None  # type: ignore[assignment]  # the history, unless something stands in for it
    attempt: int = 1
    redo: Redo = "all"
    observer: Observer = field(default_factory=Silent)
    pending: Pending = field(default_factory=lambda: Pending((), 1))
    stopping: bool = False
    target_given_up: str | None = None
    target_answers: int = 0
    batches_down: int = 0
    has_extracted: bool = False
    _passing: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.kept = self.kept or self.history
        self.target_slots = asyncio.Semaphore(self.parts.suite.target.concurrency)

    def stop(self) -> None:
        """Begin no further batch; those in flight are finished and stored."""
        self.stopping = True

    def finished(self, scored: Mapping[str, tuple[Status, int]]) -> set[str]:
        """Of an item whose stored scores are `scored`, the scorers that this passage leaves alone."""
        done = finished(scored, before=self.attempt)
        if self.redo == "missing":
            done |= set(scored)
        elif self.redo == "errors":
            done |= {scorer.name for scorer in self.parts.scorers} - set(scored)
        return done

    def note_fault(self, item_id: str, *, passing: bool) -> None:
        """Remember whether the last call for that item failed in a way that may pass."""
        if passing:
            self._passing.add(item_id)
        else:
            self._passing.discard(item_id)

    def note_answer(self, item_id: str) -> None:
        """The target answered that item."""
        self._passing.discard(item_id)
        self.target_answers += 1

    def passing_fault(self, item_id: str) -> bool:
        """Whether the last call for that item failed in a way that may pass."""
        return item_id in self._passing

    def note_target_down(self, why: str) -> None:
        """A batch has used up its retries.

        When a second one does and the target never answered, it is given up: items are not asked any more and become
        `target_error`, which `resume` asks again.
        """
        self.batches_down += 1
        if self.batches_down == BATCHES_BEFORE_GIVING_UP and self.target_answers == 0:
            self.target_given_up = why
            self.observer.note(why)

    def note_extracted(self, records: Batch) -> None:
        """Say so, before any of them is judged, when the contexts of the first batch are empty throughout."""
        if not self.has_extracted and any(record.context_sets for record in records):
            self.has_extracted = True
            for said in nothing_found(records):
                self.observer.note(said)


def new_run_id(*, at: datetime | None = None, tail: str | None = None) -> str:
    """A run id that sorts by time and can be typed: 20261130-120314-a1b2c3.

    Args:
        at: The moment it names; now when left out.
        tail: What makes it unique; random when left out. Prefect runs derive both from the flow run.
    """
    moment = (at or datetime.now(UTC)).astimezone(UTC)
    return f"{moment:%Y%m%d-%H%M%S}-{tail or secrets.token_hex(3)}"


def begin(
    parts: Parts,
    history: History,
    *,
    run_id: str | None = None,
    trigger: str = "cli",
    engine: str = "local",
    flow_run_id: str | None = None,
    observer: Observer | None = None,
) -> Run:
    """Open a new run in the history; every item is pending. A run id that is there already is taken up again.

    Raises:
        HistoryError: the history cannot be written.
    """
    run_id = run_id or new_run_id()
    suite = parts.suite
    row = RunRow(
        run_id=run_id,
        suite=suite.name,
        suite_doc=dict(parts.file.document),
        suite_path=str(parts.file.path) if parts.file.path is not None else None,
        base_dir=str(parts.file.base_dir),
        dataset=parts.dataset.name,
        dataset_hash=parts.dataset.hash,
        items=len(parts.dataset.items),
        retriever=suite.target.retriever,
        version=suite.target.version,
        target=parts.target_name,
        judge=parts.judge.name,
        judge_params=parts.judging.params,
        scorers=tuple(
            part.as_written(told) | {"scale": float(made.scale)}
            for part, told, made in zip(suite.scorers, _written_scorers(parts), parts.scorers, strict=True)
        ),
        missing_reference=suite.missing_reference,
        duplicates=suite.duplicates,
        min_coverage=suite.gate.coverage,
        trigger=trigger,
        engine=engine,
        flow_run_id=flow_run_id,
        started_at=datetime.now(UTC),
        expected_scores=len(parts.dataset.items) * len(parts.scorers),
        store_text=suite.store_text,
        host=platform.node(),
        pid=os.getpid(),
    )
    if not history.start_run(row, probe=parts.judging.probe_calls):  # a flow that is tried again finds its own run
        return take_up(history, history.run(run_id), parts, observer=observer)
    run = Run(run_id, parts, history, observer=observer or Silent())
    run.pending = Pending(parts.dataset.items, run.attempt)
    return run


def _written_scorers(parts: Parts) -> Sequence[object]:
    """The suite's scorers as they stand in its document; None for each where it leaves them out."""
    return parts.file.document.get("scorers") or [None] * len(parts.suite.scorers)


def parts_of(row: RunRow) -> Parts:
    """The parts of a run that is in the history, from the suite as it was written there.

    Raises:
        ConfigError: a file that the suite names is not there any more, or is wrong now; or the run was made in Python,
            with data, a target or a judge that this process does not have.
    """
    try:
        return assemble(suite_of(row), run_id=row.run_id)
    except ConfigError as error:
        if row.trigger != "api":
            raise
        raise UsageError(
            f"run {row.run_id} was made by evaluate(…) in Python, and what it was given is not here ({error.what})",
            mend="call evaluate(…) there once more",
        ) from error


def suite_of(row: RunRow) -> SuiteFile:
    """The suite of a run as it was written into the history, with the variables of this environment.

    Raises:
        ConfigError: it is no suite here: a variable is not set.
    """
    path = Path(row.suite_path) if row.suite_path else None
    return check_suite(row.suite_doc, path=path, base_dir=Path(row.base_dir or ""))


def may_be_taken_up(row: RunRow) -> None:
    """Make sure that nobody is writing a run.

    Raises:
        UsageError: a living process of this host is.
    """
    if row.status == "running" and row.pid != os.getpid() and _is_alive(row.pid, row.host):
        raise UsageError(
            f"run {row.run_id} is still being written by process {row.pid}",
            mend="wait for it, or end that process",
        )


def take_up(
    history: History, row: RunRow, parts: Parts, *, redo: Redo = "all", observer: Observer | None = None
) -> Run:
    """Open a run again: what is missing is pending, and what failed is tried once more.

    Args:
        history: Where the run is.
        row: The run.
        parts: Its parts (`parts_of`), prepared.
        redo: Whether to do what is `missing`, what ended in `errors`, or both (`all`).
        observer: Is told how it gets on.

    Raises:
        UsageError: a living process is writing it.
        ConfigError: the dataset, version or judge is not what the run began with.
    """
    may_be_taken_up(row)
    for what, was, now in (
        ("the dataset", row.dataset_hash, parts.dataset.hash),
        ("the version", row.version, parts.suite.target.version),
        ("the judge", row.judge, parts.judge.name),
        ("what the judge depends on", row.judge_params, parts.judging.params),
    ):
        if was != now:
            raise ConfigError(
                f"{what} is not what run {row.run_id} began with ({was}, now {now})",
                mend="start a new run with `ragscore run`",
            )
    row = history.reopen_run(row.run_id, probe=parts.judging.probe_calls)
    run = Run(row.run_id, parts, history, attempt=row.attempt, redo=redo, observer=observer or Silent())
    run.pending = Pending(parts.dataset.items, run.attempt, wanted=_unfinished(run))
    return run


def _unfinished(run: Run) -> bytearray:
    """One byte per item of the dataset: 1 where a scorer still has to score it."""
    names = {scorer.name for scorer in run.parts.scorers}
    wanted = bytearray()
    for items in run.parts.dataset.batches(ASKED_AT_ONCE):
        scored = run.history.scored(run.run_id, [item.id for item in items])
        wanted.extend(not names <= run.finished(scored.get(item.id, {})) for item in items)
    return wanted


def finished(scored: Mapping[str, tuple[Status, int]], *, before: int) -> set[str]:
    """The scorers whose row stands: it is no failure, or it was written by this attempt already."""
    return {name for name, (status, attempt) in scored.items() if status not in RETRYABLE or attempt >= before}


def _is_alive(pid: int | None, host: str | None) -> bool:
    if pid is None or host != platform.node() or sys.platform == "win32":  # there, signal 0 would end it
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
