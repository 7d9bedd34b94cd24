"""The history as the stages of a run use it: what is there already, and writing what is new, once."""

from __future__ import annotations

import logging
import os
import platform
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragscore.errors import HistoryError, HistoryLocked, UsageError
from ragscore.history import inbox, measurements, runs, values
from ragscore.history import rows as rows_
from ragscore.history.audit import Audit, audited, settle
from ragscore.history.connection import LOCK_TIMEOUT_S, reading, writing
from ragscore.history.inbox import Waiting
from ragscore.history.rows import RESPONSE_SET
from ragscore.history.runs import RunRow
from ragscore.history.stored import context_sets_of, keeps_text, of_items, responses_of
from ragscore.history.tables import Row, Rows, append_new, mark_superseded
from ragscore.items import Call, ContextSet, Record, Response, Status

if TYPE_CHECKING:
    import duckdb

_LOG = logging.getLogger("ragscore.history")


@dataclass(frozen=True, slots=True)
class Ingested:
    """What was taken in: batches, rows that were new (items, context sets, scores), and the runs that they are of."""

    batches: int
    rows: int
    run_ids: tuple[str, ...]


class History:
    """The history file at `path`. It is never kept open: each call opens it, does one transaction and closes it.

    Writing is idempotent: what is there already (the same run, item, attempt and scorer or context set) stays as it
    is. Every method may raise HistoryLocked, HistoryTooNew or HistoryUnreadable, and blocks while it waits. Rows of a
    run that cannot be written because others hold the file too long go to the inbox instead.

    Args:
        path: The DuckDB file; made with its folder at the first write.
        lock_timeout_s: How long to wait for others who hold the file, in seconds.
    """

    def __init__(self, path: Path, *, lock_timeout_s: float = LOCK_TIMEOUT_S) -> None:
        self.path = Path(path)
        self.lock_timeout_s = lock_timeout_s
        self._known: dict[str, RunRow] = {}
        self._begun_here: set[str] = set()
        self._is_locked_out = False

    def __repr__(self) -> str:
        return f"History({str(self.path)!r})"

    def exists(self) -> bool:
        """Whether there is a file at `path`."""
        return self.path.exists()

    # --- runs -----------------------------------------------------------------------------------------------------

    def start_run(self, row: RunRow, *, probe: Sequence[Call] = ()) -> bool:
        """Write down that a run starts, and the requests that made its judge ready.

        Returns:
            False, and nothing written, when the history knows that id already.
        """
        with self._writing() as connection:
            is_new = runs.insert(connection, row)
            if is_new:
                _append_probe(connection, row, probe)
        if is_new:
            self._known[row.run_id] = row
            self._begun_here.add(row.run_id)
        return is_new

    def reopen_run(self, run_id: str, *, probe: Sequence[Call] = ()) -> RunRow:
        """Set a run going again: status `running`, one attempt more, held by this process.

        Args:
            run_id: The run.
            probe: The requests that made its judge ready this time.

        Raises:
            UsageError: There is no such run.
        """
        with self._writing() as connection:
            row = _known(connection, run_id)
            again = row.ended(
                runs.RUNNING,
                attempt=row.attempt + 1,
                ended_at=None,
                error=None,
                gate_verdict=None,  # it was about another set of scores
                gate=None,
                host=platform.node(),
                pid=os.getpid(),
            )
            runs.update(connection, again)
            _append_probe(connection, again, probe)
        self._known[run_id] = again
        return again

    def finish_run(self, run_id: str, *, status: str, error: str | None = None) -> Audit:
        """Audit a run and write down how it ended.

        Args:
            run_id: The run.
            status: `complete`, `incomplete`, `failed` or `cancelled`. `complete` becomes `incomplete`, with the
                reason as the run's error, when a score is missing or there twice.
            error: Why it ended so.

        Raises:
            UsageError: There is no such run, or no such status.
        """
        if status not in runs.STATUSES or status == runs.RUNNING:
            raise UsageError(f"a run cannot end with the status {status!r}")
        ending: dict[str, Any] = {"ended_at": values.now(), "error": error}
        try:
            with self._writing() as connection:
                row = _known(connection, run_id)
                audit = audited(connection, row, status)
                ending |= {"written_scores": audit.written, "error": error or audit.reason}
                runs.update(connection, row.ended(audit.status, **ending))
                return audit
        except HistoryLocked as locked:
            known = self._known.get(run_id)
            if known is None:
                raise
            inbox.leave(self.inbox, Waiting(known.ended(status, **ending), {}))
            raise HistoryLocked(
                f"{locked.what}; all that is done waits in {self.inbox}",
                where=str(self.path),
                mend="close what holds it, then `ragscore ingest`",
            ) from locked

    def run(self, ref: str) -> RunRow:
        """The run that `ref` names: its id, a beginning of it that no other run shares, or `last`.

        Raises:
            UsageError: None, or several, fit; the message names near ones.
        """
        with self._reading() as connection:
            return runs.resolve(connection, ref)

    def runs(self, limit: int | None = None, suite: str | None = None) -> list[RunRow]:
        """The runs, newest first; only those of `suite`, and at most `limit`, where these are given."""
        with self._reading() as connection:
            return runs.listed(connection, limit=limit, suite=suite)

    # --- writing --------------------------------------------------------------------------------------------------

    def store_responses(self, run_id: str, records: Sequence[Record]) -> int:
        """Keep what the target answered; records without a response are left out.

        Returns:
            How many items were new.
        """
        return self._store(run_id, "items", lambda run: rows_.response_rows(run, records))

    def store_contexts(self, run_id: str, records: Sequence[Record]) -> int:
        """Keep the context sets that were resolved, empty and failed ones too.

        Returns:
            How many sets were new.
        """
        displaced = _displaced(run_id, records)
        return self._store(run_id, "context_sets", lambda run: rows_.context_rows(run, records), displaced)

    def store_scores(self, run_id: str, records: Sequence[Record]) -> int:
        """Keep the scores with their verdicts and the calls that they took, all in one transaction.

        Returns:
            How many scores were new.
        """
        return self._store(run_id, "scores", lambda run: rows_.score_rows(run, records))

    def _store(self, run_id: str, parent: str, rows_of: Callable[[RunRow], Rows], displaced: Sequence[Row] = ()) -> int:
        try:
            with self._writing() as connection:
                run = self._known[run_id] = _known(connection, run_id)
                inbox.make_way(connection, displaced)
                return len(append_new(connection, rows_of(run), parent=parent))
        except HistoryLocked:
            known = self._known.get(run_id)
            if known is None:
                raise
            rows = rows_of(known)
            inbox.leave(self.inbox, Waiting(known, {parent: rows}, displaced))
            return len(rows[parent])

    # --- the inbox ------------------------------------------------------------------------------------------------

    @property
    def inbox(self) -> Path:
        """The folder beside the history where batches wait that could not be written."""
        return inbox.folder_of(self.path)

    def ingest(self, folder: Path, *, strict: bool = True) -> Ingested:
        """Take in the batches that wait in `folder`, and remove them once they are committed.

        Args:
            folder: An inbox of this or of another host; one that is not there holds nothing.
            strict: A file that is no batch is an error, and nothing is taken in; else it stays, with a warning.

        Raises:
            UsageError: As said.
        """
        files = inbox.waiting(folder)
        if not files:
            return Ingested(0, 0, ())
        new, run_ids, taken = 0, dict[str, None](), []
        # Read before the transaction: a file that cannot be read would abort it.
        batches = list(inbox.readable(files, strict=strict))
        with writing(self.path, lock_timeout_s=self._patience()) as connection:
            for file, batch in batches:
                new += inbox.take_in(connection, batch)
                run_ids[batch.run.run_id] = None
                taken.append(file)
            mark_superseded(connection, run_ids)  # attempts may arrive in any order
            for run_id in run_ids:
                settle(connection, run_id)
        inbox.remove(taken)
        return Ingested(len(taken), new, tuple(run_ids))

    # --- what is found out about runs -----------------------------------------------------------------------------

    def store_gate(self, run_id: str, verdict: str | None, gate: Any) -> None:
        """Keep the verdict of the gate (`pass`, `fail`, `inconclusive`) and its numbers, a JSON-able value.

        Raises:
            UsageError: There is no such run.
        """
        with self._writing() as connection:
            row = _known(connection, run_id)
            runs.update(connection, replace(row, gate_verdict=verdict, gate=gate))

    def store_comparison(self, rows: Sequence[Mapping[str, Any]]) -> int:
        """Keep the rows of a comparison, one per scorer, by the columns of the table `comparisons`.

        Returns:
            How many were new; a row is known by `comparison_id` and `scorer`.
        """
        with self._writing() as connection:
            return measurements.insert(connection, "comparisons", rows)

    def store_noise(self, rows: Sequence[Mapping[str, Any]]) -> int:
        """Keep how much a judge differs from itself, one row per scorer, by the columns of the table `noise`."""
        with self._writing() as connection:
            return measurements.insert(connection, "noise", rows)

    def store_calibration(self, rows: Sequence[Mapping[str, Any]]) -> int:
        """Keep how far a judge agrees with people, by the columns of the table `calibrations`."""
        with self._writing() as connection:
            return measurements.insert(connection, "calibrations", rows)

    # --- what is there already ------------------------------------------------------------------------------------

    def responses(self, run_id: str, item_ids: Iterable[str]) -> dict[str, tuple[Response, int]]:
        """Per item what the target answered, and in which attempt: the latest; failed ones (`error`) too.

        Complete: with it, a resumed run need not ask the target again. Empty for a run that keeps no text
        (`store_text: hash`): the target has to be asked again.
        """
        ids = {values.text(item_id): item_id for item_id in item_ids}
        with self._reading_of(run_id) as connection:
            if connection is None or not keeps_text(connection, run_id):
                return {}
            return responses_of(connection, run_id, ids)

    def context_sets(self, run_id: str, item_ids: Iterable[str]) -> dict[str, dict[str, ContextSet]]:
        """Per item the context sets that were resolved, by name: the latest; empty and failed ones too.

        Empty, like `responses`, for a run that keeps no text.
        """
        ids = {values.text(item_id): item_id for item_id in item_ids}
        with self._reading_of(run_id) as connection:
            if connection is None or not keeps_text(connection, run_id):
                return {}
            return context_sets_of(connection, run_id, ids)

    def scored(self, run_id: str, item_ids: Iterable[str]) -> dict[str, dict[str, tuple[Status, int]]]:
        """Per item and scorer the status and the attempt of the latest score row."""
        ids = {values.text(item_id): item_id for item_id in item_ids}
        with self._reading_of(run_id) as connection:
            if connection is None:
                return {}
            found = of_items(connection, "item_id, scorer, status, attempt", "latest_scores", run_id, ids)
        scored: dict[str, dict[str, tuple[Status, int]]] = {}
        for stored, scorer, status, attempt in found:
            scored.setdefault(ids[stored], {})[scorer] = (Status(status), attempt)
        return scored

    def _reading(self) -> AbstractContextManager[duckdb.DuckDBPyConnection]:
        return reading(self.path, lock_timeout_s=self.lock_timeout_s)

    @contextmanager
    def _reading_of(self, run_id: str) -> Iterator[duckdb.DuckDBPyConnection | None]:
        """A connection to ask what is there of a run; None when others hold the file and nothing can be there.

        A run that this very object began is written by nobody else, and what it wrote the stages still have in hand.
        To judge something twice is the worst that can come of it, and what was stored first stands.
        """
        try:
            with reading(self.path, lock_timeout_s=self._patience()) as connection:
                self._is_locked_out = False
                yield connection
                return
        except HistoryLocked:
            if run_id not in self._begun_here:
                raise
            self._is_locked_out = True
        yield None

    @contextmanager
    def _writing(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection inside a transaction. What waits in the inbox is taken in first, in a transaction of its own."""
        try:
            if inbox.waiting(self.inbox):
                self._take_in_what_waits()
            with writing(self.path, lock_timeout_s=self._patience()) as connection:
                self._is_locked_out = False
                yield connection
        except HistoryLocked:
            self._is_locked_out = True
            raise

    def _take_in_what_waits(self) -> None:
        try:
            self.ingest(self.inbox, strict=False)
        except HistoryLocked:
            raise
        except HistoryError as error:  # what is to be written now must not suffer from it
            _LOG.warning("%s", error)

    def _patience(self) -> float:
        # Who waited in vain once waits shorter until the file is free again: there are many batches in a run.
        return self.lock_timeout_s / 10 if self._is_locked_out else self.lock_timeout_s


def _known(connection: duckdb.DuckDBPyConnection, run_id: str) -> RunRow:
    row = runs.find(connection, run_id)
    if row is None:
        raise UsageError(f"the history holds no run {run_id!r}", mend="`ragscore runs` lists those that it holds")
    return row


def _append_probe(connection: duckdb.DuckDBPyConnection, row: RunRow, calls: Sequence[Call]) -> None:
    if calls:
        append_new(connection, {"judge_calls": rows_.probe_rows(row, calls)}, parent="judge_calls")


def _displaced(run_id: str, records: Sequence[Record]) -> list[Row]:
    """The cells of what the target returned where the set of that name is resolved to something else.

    The contexts of a response are written with it; as a rule they are the set `response`, and stand there once.
    """
    changed = []
    for record in records:
        found = (record.context_sets or {}).get(RESPONSE_SET)
        if found and record.response and (record.response.contexts or ()) != found.contexts:
            changed.append(
                (values.text(run_id), values.text(record.item.id), values.text(RESPONSE_SET), record.attempt)
            )
    return changed
