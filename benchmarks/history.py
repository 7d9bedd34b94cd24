"""How fast a large history is read and written: the views against SQL written by hand, and appends as the file grows.

    python benchmarks/history.py [--scores 10000000] [--folder DIR]

A history of 10 million scores (10 suites of 200 runs in a year, 2,500 items, 2 scorers) and as many verdicts is
generated, in the order in which runs would have written it. Each query is measured `REPEATS` times, view and
hand-written in turns, so that both meet the same machine; the fastest of each are compared. Exit 1 when a ratio is
above what DESIGN §10 allows.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import duckdb

from ragscore.history import History, RunRow
from ragscore.history.connection import reading, writing
from ragscore.items import Context, ContextSet, Finding, Item, Record, Response, Score, Status, Usage

SUITES, ITEMS, SCORERS = 10, 2500, ("context_recall", "context_precision")
REPEATS = 9
BATCHES = 40
MOST = 1.3
YEAR = datetime(2025, 1, 1, tzinfo=UTC)
#: The usual filter: one suite, the last 90 days.
USUAL = "suite = 'suite-3' AND started_at >= TIMESTAMPTZ '2025-10-03 00:00:00+00'"

RUNS = """
INSERT INTO runs (run_id, suite, dataset, dataset_hash, items, retriever, version, judge, judge_params, scorers,
    missing_reference, duplicates, min_coverage, status, started_at, ended_at, expected_scores, written_scores, attempt,
    ragscore_version, store_text)
SELECT
    printf('2025-%06d', run), 'suite-' || (run % $suites), 'data-' || (run % $suites), 'd', $items, 'search',
    'v' || (run // ($suites * 4)), 'judge', '{}', '[]', 'zero', 'count', 0.95, 'complete', began,
    began + INTERVAL 9 MINUTE, $items * 2, $items * 2, 1, '0.1.0', 'full'
FROM (
    SELECT run, TIMESTAMPTZ '2025-01-01 00:00:00+00' + run * INTERVAL 8760 HOUR / $runs AS began
    FROM range($runs) AS t(run)
)
"""
SCORES = """
INSERT INTO scores (run_id, item_id, position, scorer, kind, attempt, status, score, exact, exact_fraction, scale,
    counted, reason, against, n, n_positive, context_set, claim_set, calls, remembered, prompt_tokens,
    completion_tokens, cost_usd, created_at, suite, retriever, version, dataset_hash, judge, judge_params,
    prompt_version, scorer_version, ragscore_version, item_hash)
SELECT
    run_id, 'q' || item, item, scorer, scorer, 1, CASE WHEN die = 0 THEN 'judge_error' ELSE 'ok' END,
    CASE WHEN die > 0 THEN round(positive / 4, 2) END, CASE WHEN die > 0 THEN positive / 4 END,
    CASE WHEN die > 0 THEN positive || '/4' END, 1, die > 0, 'found ' || positive || ' of 4 in the retrieved contexts',
    'reference', 4, positive, 'response', CASE WHEN scorer = 'context_recall' THEN md5(suite || item) END, 1, 0, 900,
    120, 0.0004, started_at, suite, retriever, version, 'd', judge, '{}', 'p1', '1', '0.1.0', md5(suite || item)
FROM (
    SELECT *, hash(run_id, item, scorer) % 200 AS die, (hash(run_id, item, scorer, 1) % 5)::INTEGER AS positive
    FROM (SELECT run_id, suite, retriever, version, judge, started_at FROM runs WHERE run_id BETWEEN $first AND $last),
        range($items) AS i(item), (SELECT unnest($scorers) AS scorer)
    ORDER BY run_id, item, scorer
)
"""
VERDICTS = """
INSERT INTO verdicts (run_id, item_id, scorer, attempt, kind, verdict_id, rank, text, positive, why, sources, quotes,
    warnings, remembered)
SELECT run_id, item_id, scorer, 1, 'claim', 'c' || rank, rank, 'fact ' || rank || ' of ' || suite || ' ' || item_id,
    hash(item_id, rank, version) % 4 > 0, 'because', [1], ['quote'], [], false
FROM scores, range(1, 3) AS r(rank)
WHERE scorer = 'context_recall' AND status = 'ok' AND run_id BETWEEN $first AND $last
ORDER BY run_id, item_id, rank
"""

BY_STATUS = ", ".join(f"count(*) FILTER (s.status = '{each}')" for each in Status)

#: Name, the view's SQL, and the same meaning on the tables.
PAIRS: tuple[tuple[str, str, str], ...] = (
    (
        "score_history, one suite, last 90 days",
        f"SELECT run_id, scorer, mean, n, coverage FROM score_history WHERE {USUAL}",
        f"SELECT run_id, scorer, avg(exact) FILTER (counted), count(exact) FILTER (counted),"
        " count(exact) / count(*) FILTER (status <> 'unanswerable')"
        f" FROM scores JOIN (SELECT run_id FROM runs WHERE {USUAL}) USING (run_id) GROUP BY run_id, scorer",
    ),
    (
        "score_history, all columns, the same filter",
        f"SELECT * FROM score_history WHERE {USUAL}",
        "SELECT run_id, scorer, avg(exact) FILTER (counted), count(exact) FILTER (counted), count(exact) / count(*),"
        " min(against), max(against), sum(calls), sum(remembered), sum(cost_usd), count(cost_usd), any_value(kind),"
        f" any_value(s.judge), any_value(scale), {BY_STATUS}"
        f" FROM scores AS s JOIN (SELECT run_id FROM runs WHERE {USUAL}) USING (run_id) GROUP BY run_id, scorer",
    ),
    (
        "score_history, everything",
        "SELECT run_id, scorer, mean, n, coverage FROM score_history",
        "SELECT run_id, scorer, avg(exact) FILTER (counted), count(exact) FILTER (counted),"
        " count(exact) / count(*) FILTER (scores.status <> 'unanswerable')"
        " FROM scores JOIN runs USING (run_id) GROUP BY run_id, scorer",
    ),
    (
        "item_history, one suite",
        "SELECT count(change), sum(change) FROM item_history WHERE suite = 'suite-3'",
        """
        SELECT count(change), sum(change) FROM (
            SELECT CASE
                WHEN lag(s.claim_set) OVER w IS NOT DISTINCT FROM s.claim_set
                    AND lag(s.against) OVER w IS NOT DISTINCT FROM s.against
                THEN exact - lag(exact) OVER w END AS change
            FROM scores AS s JOIN runs AS r USING (run_id)
            WHERE r.suite = 'suite-3' AND s.exact IS NOT NULL
            WINDOW w AS (
                PARTITION BY r.suite, r.dataset, s.judge, s.scorer, s.item_id, s.item_hash, s.judge_params,
                    s.prompt_version, s.scorer_version ORDER BY r.started_at, s.run_id
            )
        )
        """,
    ),
    (
        "regressions, one suite, last 90 days",
        f"SELECT item_id, scorer, version, change FROM regressions WHERE {USUAL}",
        f"""
        SELECT item_id, scorer, version, change FROM (
            SELECT r.suite, r.started_at, s.item_id, s.scorer, r.version, CASE
                WHEN lag(s.claim_set) OVER w IS NOT DISTINCT FROM s.claim_set
                    AND lag(s.against) OVER w IS NOT DISTINCT FROM s.against
                THEN exact - lag(exact) OVER w END AS change
            FROM scores AS s JOIN runs AS r USING (run_id)
            WHERE r.suite = 'suite-3' AND s.exact IS NOT NULL
            WINDOW w AS (
                PARTITION BY r.suite, r.dataset, s.judge, s.scorer, s.item_id, s.item_hash, s.judge_params,
                    s.prompt_version, s.scorer_version ORDER BY r.started_at, s.run_id
            )
        ) WHERE change < 0 AND {USUAL}
        """,
    ),
    (
        "missing_claims, one suite",
        "SELECT claim, since_version, runs_missing FROM missing_claims WHERE suite = 'suite-3'",
        """
        SELECT text, arg_min(version, started_at) FILTER (NOT positive AND started_at > coalesce(found, '-infinity')),
            count(*) FILTER (NOT positive)
        FROM (
            SELECT v.text, v.positive, v.item_id, v.scorer, r.dataset, r.judge, r.version, r.started_at,
                max(CASE WHEN v.positive THEN r.started_at END)
                    OVER (PARTITION BY r.suite, r.dataset, r.judge, v.scorer, v.item_id, v.text) AS found
            FROM verdicts AS v JOIN runs AS r USING (run_id)
            WHERE r.suite = 'suite-3' AND v.kind = 'claim' AND v.positive IS NOT NULL AND NOT v.superseded
        )
        GROUP BY dataset, judge, scorer, item_id, text
        HAVING NOT arg_max(positive, started_at)
        """,
    ),
    (
        "retriever_versions, one suite",
        "SELECT version, scorer, runs, mean FROM retriever_versions WHERE suite = 'suite-3'",
        """
        SELECT version, scorer, count(*), arg_max(mean, started_at) FROM (
            SELECT run_id, any_value(version) AS version, any_value(started_at) AS started_at, scorer,
                avg(exact) FILTER (counted) AS mean
            FROM scores JOIN (SELECT run_id, started_at FROM runs WHERE suite = 'suite-3') USING (run_id)
            GROUP BY run_id, scorer
        ) GROUP BY version, scorer
        """,
    ),
)


def main() -> int:
    """Generate, measure, print a table; 1 when a bound is not kept."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scores", type=int, default=10_000_000)
    parser.add_argument("--folder", type=Path, help="where the history is made and left; reused when it is there")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        small, large = folder / "small.duckdb", folder / "large.duckdb"
        for path, scores in ((small, given.scores // 100), (large, given.scores)):
            if not path.exists():
                fill(path, scores)
        return 0 if all([*views(large), appends(small, large)]) else 1


def fill(path: Path, scores: int) -> None:
    """Make a history of so many scores."""
    runs = max(SUITES, scores // (ITEMS * len(SCORERS)))
    started = time.perf_counter()
    with writing(path) as connection:
        connection.execute(RUNS, {"runs": runs, "suites": SUITES, "items": ITEMS})
    step = 100
    for start in range(0, runs, step):
        span = {"first": f"2025-{start:06}", "last": f"2025-{start + step - 1:06}"}
        with writing(path) as connection:
            connection.execute(SCORES, {**span, "items": ITEMS, "scorers": list(SCORERS)})
            connection.execute(VERDICTS, span)
    took = time.perf_counter() - started
    size = path.stat().st_size / 2**20
    print(f"{runs * ITEMS * 2:,} scores generated in {took:.0f} s; the file has {size:,.0f} MiB", flush=True)


def appends(small: Path, large: Path) -> bool:
    """Append batches of 25 items to a history that is 1 % full and to one that is full, in turns."""
    times: dict[Path, list[float]] = {small: [], large: []}
    run_id = f"append-{time.time_ns()}"
    for path in times:
        row = RunRow(run_id, "appended", "d", "d", 1, "judge", 1, ({"name": "context_recall"},))
        History(path).start_run(replace(row, started_at=YEAR))
    for batch in range(BATCHES):
        records = [record(batch * 25 + number) for number in range(25)]
        for path, own in times.items():
            history = History(path)
            start = time.perf_counter()
            history.store_responses(run_id, records)
            history.store_contexts(run_id, records)
            history.store_scores(run_id, records)
            own.append(time.perf_counter() - start)
    first, last = (statistics.median(own) for own in times.values())
    print(f"append of 25 items: {first * 1e3:.0f} ms at 1 %, {last * 1e3:.0f} ms at 100 %, ratio {last / first:.2f}")
    return last / first <= MOST


def record(number: int) -> Record:
    """One item with five contexts and two scores of five verdicts."""
    contexts = tuple(Context(f"passage {rank} of {number} " * 12) for rank in range(5))
    scores = tuple(
        Score(
            name,
            name,
            Status.OK,
            Fraction(number % 6, 5) if number % 6 < 5 else Fraction(1),
            0.5,
            reason="found some of the facts",
            findings=tuple(
                Finding("claim", f"c{rank}", rank, f"fact {rank} of {number}", rank % 2 == 0, "because", (1,), ("q",))
                for rank in range(1, 6)
            ),
            context_set="response",
            claim_set=f"{number:032}",
            usage=Usage(calls=1, prompt_tokens=9),
        )
        for name in SCORERS
    )
    return Record(
        Item(f"a{number}", f"question {number}?", f"answer {number}"),
        number,
        response=Response("said", contexts, {"hits": 5}, 9.0),
        context_sets={"response": ContextSet("response", contexts)},
        scores=scores,
    )


def views(path: Path) -> list[bool]:
    """Measure each view against SQL by hand; whether each ratio is within its bound."""
    kept = []
    with reading(path) as connection:
        print(f"{'':<46}{'view':>10}{'by hand':>10}{'ratio':>8}")
        for name, view, by_hand in PAIRS:
            ours, theirs = fastest(lambda v=view: run(connection, v), lambda h=by_hand: run(connection, h))  # type: ignore[misc]
            print(f"{name:<46}{ours * 1e3:>8.0f}ms{theirs * 1e3:>8.0f}ms{ours / theirs:>8.2f}", flush=True)
            kept.append(ours / theirs <= MOST)
    return kept


def run(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    connection.execute(sql).fetchall()


def fastest(*calls: Callable[[], None]) -> list[float]:
    """The least seconds of each call, which other work on the machine disturbs least; the calls in turns."""
    times: list[list[float]] = [[] for _ in calls]
    for turn in range(REPEATS + 1):
        for call, own in zip(calls, times, strict=True):
            start = time.perf_counter()
            call()
            if turn:
                own.append(time.perf_counter() - start)
    return [min(own) for own in times]


if __name__ == "__main__":
    sys.exit(main())
