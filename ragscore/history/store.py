"""The history as the stages of a run use it: what is there already, and writing what is new, once."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ragscore.errors import UsageError
from ragscore.history import rows as rows_
from ragscore.history import runs, values
from ragscore.history.connection import LOCK_TIMEOUT_S, reading, writing
from ragscore.history.rows import CONTEXT_COLUMNS, RESPONSE_COLUMNS, RESPONSE_SET
from ragscore.history.runs import RunRow
from ragscore.history.tables import Row, append_new, missing
from ragscore.items import Context, ContextSet, Record, Response, Status

if TYPE_CHECKING:
    import duckdb


@dataclass(frozen=True, slots=True)
class Audit:
    """What the end of a run found: whether exactly one score stands for each item and scorer.

    Attributes:
        status: The run's status as it was stored.
        expected: Items x scorers.
        written: Cells (item, scorer) that have a score row.
        duplicated: Cells (item, scorer, attempt) that have more than one.
        reason: Why the run is not `complete` although that was asked for; else None.
    """

    status: str
    expected: int
    written: int
    duplicated: int
    reason: str | None = None

    @property
    def ok(self) -> bool:
        """Nothing is missing and nothing is there twice."""
        return self.written == self.expected and not self.duplicated


class History:
    """The history file at `path`. It is never kept open: each call opens it, does one transaction and closes it.

    Writing is idempotent: what is there already (the same run, item, attempt and scorer or context set) stays as it
    is. Every method may raise HistoryLocked, HistoryTooNew or HistoryUnreadable, and blocks while it waits.

    Args:
        path: The DuckDB file; made with its folder at the first write.
        lock_timeout_s: How long to wait for others who hold the file, in seconds.
    """

    def __init__(self, path: Path, *, lock_timeout_s: float = LOCK_TIMEOUT_S) -> None:
        self.path = Path(path)
        self.lock_timeout_s = lock_timeout_s

    def __repr__(self) -> str:
        return f"History({str(self.path)!r})"

    def exists(self) -> bool:
        """Whether there is a file at `path`."""
        return self.path.exists()

    # --- runs -----------------------------------------------------------------------------------------------------

    def start_run(self, row: RunRow) -> bool:
        """Write down that a run starts. False, and nothing written, when the history knows that id already."""
        with self._writing() as connection:
            return runs.insert(connection, row)

    def reopen_run(self, run_id: str) -> RunRow:
        """Set a run going again: status `running`, one attempt more, held by this process.

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
                host=platform.node(),
                pid=os.getpid(),
            )
            runs.update(connection, again)
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
        with self._writing() as connection:
            row = _known(connection, run_id)
            audit = _audited(connection, row, status)
            ended = row.ended(
                audit.status, ended_at=values.now(), written_scores=audit.written, error=error or audit.reason
            )
            runs.update(connection, ended)
            return audit

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
        with self._writing() as connection:
            rows = rows_.response_rows(_known(connection, run_id), records)
            return len(append_new(connection, rows, parent="items"))

    def store_contexts(self, run_id: str, records: Sequence[Record]) -> int:
        """Keep the context sets that were resolved, empty and failed ones too.

        Returns:
            How many sets were new.
        """
        with self._writing() as connection:
            rows = rows_.context_rows(_known(connection, run_id), records)
            _make_way(connection, run_id, records)
            return len(append_new(connection, rows, parent="context_sets"))

    def store_scores(self, run_id: str, records: Sequence[Record]) -> int:
        """Keep the scores with their verdicts and the calls that they took, all in one transaction.

        Returns:
            How many scores were new.
        """
        with self._writing() as connection:
            rows = rows_.score_rows(_known(connection, run_id), records)
            return len(append_new(connection, rows, parent="scores"))

    # --- what is there already ------------------------------------------------------------------------------------

    def responses(self, run_id: str, item_ids: Iterable[str]) -> dict[str, tuple[Response, int]]:
        """Per item what the target answered, and in which attempt: the latest; failed ones (`error`) too.

        Complete: with it, a resumed run need not ask the target again.
        """
        ids = {values.text(item_id): item_id for item_id in item_ids}
        with self._reading() as connection:
            return responses_of(connection, run_id, ids)

    def context_sets(self, run_id: str, item_ids: Iterable[str]) -> dict[str, dict[str, ContextSet]]:
        """Per item the context sets that were resolved, by name: the latest; empty and failed ones too."""
        ids = {values.text(item_id): item_id for item_id in item_ids}
        with self._reading() as connection:
            return context_sets_of(connection, run_id, ids)

    def scored(self, run_id: str, item_ids: Iterable[str]) -> dict[str, dict[str, tuple[Status, int]]]:
        """Per item and scorer the status and the attempt of the latest score row."""
        ids = {values.text(item_id): item_id for item_id in item_ids}
        with self._reading() as connection:
            found = _of_items(connection, "item_id, scorer, status, attempt", "latest_scores", run_id, ids)
        scored: dict[str, dict[str, tuple[Status, int]]] = {}
        for stored, scorer, status, attempt in found:
            scored.setdefault(ids[stored], {})[scorer] = (Status(status), attempt)
        return scored

    def _reading(self) -> AbstractContextManager[duckdb.DuckDBPyConnection]:
        return reading(self.path, lock_timeout_s=self.lock_timeout_s)

    def _writing(self) -> AbstractContextManager[duckdb.DuckDBPyConnection]:
        return writing(self.path, lock_timeout_s=self.lock_timeout_s)


def _known(connection: duckdb.DuckDBPyConnection, run_id: str) -> RunRow:
    row = runs.find(connection, run_id)
    if row is None:
        raise UsageError(f"the history holds no run {run_id!r}", mend="`ragscore runs` lists those that it holds")
    return row


def _audited(connection: duckdb.DuckDBPyConnection, row: RunRow, status: str) -> Audit:
    found = connection.execute(
        "SELECT count(DISTINCT (item_id, scorer)), count(*) - count(DISTINCT (item_id, scorer, attempt))"
        " FROM scores WHERE run_id = ?",
        [values.text(row.run_id)],
    ).fetchone()
    written, duplicated = found if found else (0, 0)
    faults = []
    if written < row.expected_scores:
        faults.append(f"{row.expected_scores - written} of {row.expected_scores} scores are missing")
    if written > row.expected_scores:
        faults.append(f"{written} scores were written where {row.expected_scores} were expected")
    if duplicated:
        faults.append(f"{duplicated} scores are there twice")
    if status == runs.COMPLETE and faults:
        return Audit(runs.INCOMPLETE, row.expected_scores, written, duplicated, "; ".join(faults))
    return Audit(status, row.expected_scores, written, duplicated)


def _make_way(connection: duckdb.DuckDBPyConnection, run_id: str, records: Sequence[Record]) -> None:
    """Take out what the target returned where the set of that name is resolved to something else.

    The contexts of a response are written with it; as a rule they are the set `response`, and stand there once.
    """
    changed = []
    for record in records:
        found = (record.context_sets or {}).get(RESPONSE_SET)
        if found and record.response and (record.response.contexts or ()) != found.contexts:
            changed.append(
                (values.text(run_id), values.text(record.item.id), values.text(RESPONSE_SET), record.attempt)
            )
    for cell in missing(connection, "context_sets", changed):
        connection.execute(
            "DELETE FROM contexts WHERE run_id = ? AND item_id = ? AND context_set = ? AND attempt = ?", list(cell)
        )


def responses_of(
    connection: duckdb.DuckDBPyConnection, run_id: str, ids: Mapping[str, str]
) -> dict[str, tuple[Response, int]]:
    """As `History.responses`; `ids` gives for each id as it is stored the id that the result has."""
    found = _of_items(connection, f"item_id, attempt, {RESPONSE_COLUMNS}", "latest_items", run_id, ids)
    # Those of the very attempt, whatever has been resolved since.
    contexts = _contexts(connection, run_id, ids, "contexts", f"AND context_set = '{RESPONSE_SET}'")
    return {
        ids[stored]: (rows_.to_response(tuple(row), contexts.get((stored, RESPONSE_SET, attempt), [])), attempt)
        for stored, attempt, *row in found
    }


def context_sets_of(
    connection: duckdb.DuckDBPyConnection, run_id: str, ids: Mapping[str, str]
) -> dict[str, dict[str, ContextSet]]:
    """As `History.context_sets`; `ids` as for `responses_of`."""
    found = _of_items(connection, "item_id, context_set, attempt, error", "latest_context_sets", run_id, ids)
    contexts = _contexts(connection, run_id, ids, "contexts")
    sets: dict[str, dict[str, ContextSet]] = {}
    for stored, name, attempt, error in found:
        held = tuple(contexts.get((stored, name, attempt), ()))
        sets.setdefault(ids[stored], {})[name] = ContextSet(name, held, error)
    return sets


def _of_items(
    connection: duckdb.DuckDBPyConnection, columns: str, table: str, run_id: str, ids: Iterable[str], more: str = ""
) -> list[Row]:
    asked = """item_id IN (SELECT unnest(from_json(?, '["VARCHAR"]')))"""
    return connection.execute(
        f"SELECT {columns} FROM {table} WHERE run_id = ? AND {asked} {more}",
        [values.text(run_id), values.to_json(list(ids))],
    ).fetchall()


def _contexts(
    connection: duckdb.DuckDBPyConnection, run_id: str, ids: Iterable[str], table: str, more: str = ""
) -> dict[tuple[str, str, int], list[Context]]:
    """Contexts in rank order by (item, set, attempt)."""
    found = _of_items(
        connection, f"item_id, context_set, attempt, {CONTEXT_COLUMNS}", table, run_id, ids, f"{more} ORDER BY rank"
    )
    contexts: dict[tuple[str, str, int], list[Context]] = {}
    for item_id, name, attempt, *row in found:
        contexts.setdefault((item_id, name, attempt), []).append(rows_.to_context(tuple(row)))
    return contexts
