"""What reports, `show` and comparisons take from the history: always the latest attempts."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from ragscore.errors import UsageError
from ragscore.history import restoring, runs, values
from ragscore.history.connection import reading
from ragscore.history.restoring import CALL_COLUMNS, FINDING_COLUMNS, ITEM_COLUMNS, SCORE_COLUMNS
from ragscore.history.runs import RunRow
from ragscore.history.store import History
from ragscore.history.stored import context_sets_of, responses_of
from ragscore.items import Call, ContextSet, Finding, Item, Response, Score, Status
from ragscore.scorer_kinds import LESS_IS_BETTER

if TYPE_CHECKING:
    import duckdb

#: Rows that are made into records at once.
FETCHED_AT_ONCE = 10_000


@dataclass(frozen=True, slots=True)
class ScorerSummary:
    """One row of `score_history`: how one scorer judged one run.

    Attributes:
        mean: In the scorer's scale, to 4 decimals; None when nothing counts.
        mean_exact: The same within 0 and 1, not rounded.
        n: Scores in the mean.
        scored: Items with a score, those that do not count in the mean too.
        eligible: Items with a row, all but the `unanswerable`.
        items: Items that the run is to score.
        coverage: `scored` / `eligible`; None when nothing is eligible.
        by_status: How many items have each status; those that occur, in the order of `Status`.
        against: What the contexts were judged against, when it is one thing.
        against_mixed: The mean mixes scores against the reference and against the output.
        calls, remembered, cost_usd: What judging cost; the cost is None when a part of it is unknown.
        duplicates: Contexts that repeat an earlier one of their item.
    """

    run_id: str
    suite: str
    retriever: str | None
    version: str | None
    scorer: str
    kind: str
    judge: str
    mean: float | None
    mean_exact: float | None
    scale: float
    n: int
    scored: int
    eligible: int
    items: int
    coverage: float | None
    by_status: Mapping[Status, int]
    against: str | None
    against_mixed: bool
    calls: int
    remembered: int
    cost_usd: float | None
    duplicates: int


@dataclass(frozen=True, slots=True)
class ItemScore:
    """One score without its verdicts, as two runs are compared: what it is, and what it depends on."""

    item_id: str
    position: int
    scorer: str
    kind: str
    attempt: int
    status: Status
    exact: Fraction | None
    score: float | None
    scale: float
    counted: bool
    reason: str
    against: str | None
    item_hash: str | None
    claim_set: str | None
    judge: str
    judge_params: str
    prompt_version: str
    scorer_version: str
    input: str | None


@dataclass(frozen=True, slots=True)
class ItemFinding:
    """One verdict with the item and scorer that it belongs to."""

    item_id: str
    scorer: str
    finding: Finding


@dataclass(frozen=True, slots=True)
class ItemDetail:
    """All that a run knows about one item; scores with their findings, in the order of their names."""

    run: RunRow
    item: Item
    position: int
    response: Response
    context_sets: Mapping[str, ContextSet]
    scores: tuple[Score, ...]


def summaries(history: History, run_id: str) -> list[ScorerSummary]:
    """One summary per scorer of the run, in the order of the suite; empty when nothing is scored yet.

    Raises:
        UsageError: There is no such run.
    """
    plain = [name for name in ScorerSummary.__slots__ if name not in ("by_status", "duplicates")]
    with reading(history.path, lock_timeout_s=history.lock_timeout_s) as connection:
        run = _known(connection, run_id)
        found = connection.execute(
            f"SELECT {', '.join(plain)}, {', '.join(Status)} FROM score_history WHERE run_id = ? ORDER BY scorer",
            [run.run_id],
        ).fetchall()
        repeated = dict(
            connection.execute(
                "SELECT scorer, count(*) FROM latest_verdicts"
                " WHERE run_id = ? AND kind = 'context' AND duplicate_of IS NOT NULL GROUP BY scorer",
                [run.run_id],
            ).fetchall()
        )
    made = []
    for row in found:
        fields: dict[str, Any] = dict(zip(plain, row, strict=False))
        counts = dict(zip(Status, row[len(plain) :], strict=True))
        by_status = {status: count for status, count in counts.items() if count}
        made.append(ScorerSummary(**fields, by_status=by_status, duplicates=repeated.get(fields["scorer"], 0)))
    places = {str(scorer.get("name")): place for place, scorer in enumerate(run.scorers)}
    return sorted(made, key=lambda summary: (places.get(summary.scorer, len(places)), summary.scorer))


def worst_items(history: History, run_id: str, limit: int = 5) -> list[str]:
    """The ids of the items with the lowest mean over the scores that count, lowest first; full scores never.

    Of a scorer of which less is better, 1 - score is taken. Of items with the same mean the first in the dataset comes
    first.

    Raises:
        UsageError: There is no such run.
    """
    with reading(history.path, lock_timeout_s=history.lock_timeout_s) as connection:
        run = _known(connection, run_id)
        found = connection.execute(
            """
            SELECT item_id FROM latest_scores WHERE run_id = $1 AND exact IS NOT NULL AND counted
            GROUP BY item_id
            HAVING round(avg(CASE WHEN list_contains($2, kind) THEN 1 - exact ELSE exact END), 12) < 1
            ORDER BY round(avg(CASE WHEN list_contains($2, kind) THEN 1 - exact ELSE exact END), 12),
                min(position), item_id
            LIMIT $3
            """,
            [run.run_id, sorted(LESS_IS_BETTER), limit],
        ).fetchall()
    return [str(item_id) for (item_id,) in found]


def item_scores(
    history: History, run_id: str, *, items: Sequence[str] | None = None, texts: bool = True
) -> list[ItemScore]:
    """Every score of the run, in the order of the dataset and then of the scorers' names.

    Args:
        history: Where the run is.
        run_id: The run.
        items: Only those of these items.
        texts: Whether `reason` and `input` are asked for; else they are empty and None, and a large run takes a
            fraction of the memory.

    Raises:
        UsageError: There is no such run.
    """
    columns = []
    for name in ItemScore.__slots__:
        of_item = name in ("item_hash", "input")
        column = ("i." if of_item else "s.") + ("exact_fraction" if name == "exact" else name)
        columns.append({"reason": "''", "input": "NULL"}.get(name, column) if not texts else column)
    with reading(history.path, lock_timeout_s=history.lock_timeout_s) as connection:
        run = _known(connection, run_id)
        connection.execute(
            f"SELECT {', '.join(columns)} FROM latest_scores AS s"
            " LEFT JOIN (SELECT item_id, item_hash, input FROM latest_items WHERE run_id = $1) AS i USING (item_id)"
            " WHERE s.run_id = $1 AND ($2::VARCHAR[] IS NULL OR list_contains($2::VARCHAR[], s.item_id))"
            " ORDER BY s.position, s.item_id, s.scorer",
            [run.run_id, None if items is None else list(items)],
        )
        made = []
        shared: dict[str, str] = {}  # the same few names and hashes stand in all rows
        while chunk := connection.fetchmany(FETCHED_AT_ONCE):
            for row in chunk:
                taken = (shared.setdefault(each, each) if isinstance(each, str) else each for each in row)
                fields: dict[str, Any] = dict(zip(ItemScore.__slots__, taken, strict=True))
                fields |= {"status": Status(fields["status"]), "exact": values.to_fraction(fields["exact"])}
                made.append(ItemScore(**fields))
    return made


def findings(
    history: History, run_id: str, *, kind: str | None = None, items: Sequence[str] | None = None
) -> list[ItemFinding]:
    """Every verdict of the run, or those of one `kind` (`claim`, `context`), or of some items: by item, scorer, rank.

    Raises:
        UsageError: There is no such run.
    """
    with reading(history.path, lock_timeout_s=history.lock_timeout_s) as connection:
        run = _known(connection, run_id)
        wanted = None if items is None else list(items)
        where = "v.kind = coalesce($2, v.kind) AND ($3::VARCHAR[] IS NULL OR list_contains($3::VARCHAR[], v.item_id))"
        return _findings(connection, run.run_id, where, kind, wanted)


def item_detail(history: History, run_id: str, item_id: str, *, calls: bool = False) -> ItemDetail:
    """All about one item of a run.

    Args:
        history: Where the run is.
        run_id: The run.
        item_id: The item.
        calls: Whether the scores have the requests to the judge, with its replies; else they have none.

    Raises:
        UsageError: There is no such run, or no such item in it; the message names near ones.
    """
    key = values.text(item_id)
    with reading(history.path, lock_timeout_s=history.lock_timeout_s) as connection:
        run = _known(connection, run_id)
        found = connection.execute(
            f"SELECT position, {ITEM_COLUMNS} FROM latest_items WHERE run_id = ? AND item_id = ?", [run.run_id, key]
        ).fetchone()
        if found is None:
            raise _no_item(connection, run.run_id, item_id)
        scores = connection.execute(
            f"SELECT {SCORE_COLUMNS} FROM latest_scores WHERE run_id = ? AND item_id = ? ORDER BY scorer",
            [run.run_id, key],
        ).fetchall()
        decided = _findings(connection, run.run_id, "v.item_id = $2", key)
        asked: dict[str, list[Call]] = {}
        for scorer, *row in _calls(connection, run.run_id, key) if calls else ():
            asked.setdefault(scorer, []).append(restoring.to_call(tuple(row)))
        response, _ = responses_of(connection, run.run_id, {key: key})[key]
        context_sets = context_sets_of(connection, run.run_id, {key: key}).get(key, {})
    position, *columns = found
    return ItemDetail(
        run=run,
        item=restoring.to_item(tuple(columns)),
        position=position,
        response=response,
        context_sets=context_sets,
        scores=tuple(
            restoring.to_score(row, [one.finding for one in decided if one.scorer == row[0]], asked.get(row[0], ()))
            for row in scores
        ),
    )


def _findings(connection: duckdb.DuckDBPyConnection, run_id: str, where: str, *params: Any) -> list[ItemFinding]:
    columns = ", ".join(
        "coalesce(v.text, c.text)" if name == "text" else f"v.{name}" for name in FINDING_COLUMNS.split(", ")
    )
    found = connection.execute(
        f"""
        SELECT v.item_id, v.scorer, {columns}
        FROM latest_verdicts AS v
        JOIN latest_scores AS s
            ON s.run_id = v.run_id AND s.item_id = v.item_id AND s.scorer = v.scorer AND s.attempt = v.attempt
        LEFT JOIN latest_contexts AS c
            ON v.text IS NULL AND v.kind = 'context'
            AND c.run_id = v.run_id AND c.item_id = v.item_id AND c.context_set = s.context_set AND c.rank = v.rank
        WHERE v.run_id = $1 AND s.run_id = v.run_id AND {where}
        ORDER BY s.position, v.item_id, v.scorer, v.kind, v.rank, v.verdict_id
        """,
        [run_id, *params],
    ).fetchall()
    return [ItemFinding(item_id, scorer, restoring.to_finding(tuple(row))) for item_id, scorer, *row in found]


def _calls(connection: duckdb.DuckDBPyConnection, run_id: str, item_id: str) -> list[tuple[Any, ...]]:
    """Of each call of the latest attempts its scorer and `CALL_COLUMNS`."""
    return connection.execute(
        f"SELECT scorer, {CALL_COLUMNS} FROM judge_calls"
        " SEMI JOIN (SELECT scorer, attempt FROM latest_scores WHERE run_id = $1 AND item_id = $2) AS latest"
        " USING (scorer, attempt) WHERE run_id = $1 AND item_id = $2 ORDER BY scorer, number",
        [run_id, item_id],
    ).fetchall()


def _known(connection: duckdb.DuckDBPyConnection, run_id: str) -> RunRow:
    row = runs.find(connection, run_id)
    return runs.resolve(connection, run_id) if row is None else row


def _no_item(connection: duckdb.DuckDBPyConnection, run_id: str, item_id: str) -> UsageError:
    ids = [
        str(known)
        for (known,) in connection.execute(
            "SELECT DISTINCT item_id FROM items WHERE run_id = ? ORDER BY item_id", [run_id]
        ).fetchall()
    ]
    near = difflib.get_close_matches(item_id, ids, n=3, cutoff=0.5) or ids[:3]
    return UsageError(f"run {run_id} has no item {item_id!r}", mend=f"near: {', '.join(near)}" if near else None)
