"""The end of a run: whether exactly one score stands for each item and scorer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragscore.history import runs, values
from ragscore.history.runs import RunRow

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


def audited(connection: duckdb.DuckDBPyConnection, row: RunRow, status: str) -> Audit:
    """Count the rows of a run that is to end with `status`; `complete` becomes `incomplete` where they do not fit."""
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


def settle(connection: duckdb.DuckDBPyConnection, run_id: str) -> None:
    """Audit a run that has ended once more, after rows of it came from elsewhere."""
    row = runs.find(connection, run_id)
    if row is not None and row.status in (runs.COMPLETE, runs.INCOMPLETE):
        audit = audited(connection, row, runs.COMPLETE)
        runs.update(connection, row.ended(audit.status, written_scores=audit.written, error=audit.reason))
