"""Summaries, details and anybody's SQL."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import pytest

from ragscore.errors import UsageError
from ragscore.history import (
    History,
    findings,
    item_detail,
    item_hash,
    item_scores,
    select,
    summaries,
    worst_items,
)
from ragscore.items import Call, Record, Score, Status, Usage

from .records import PRECISION, RECALL, precision, recall, record, run_row, store

FROM_VERDICTS = """
WITH ranked AS (
    SELECT
        run_id, item_id, scorer, rank, positive,
        count(*) FILTER (positive) OVER (PARTITION BY run_id, item_id, scorer ORDER BY rank) AS so_far
    FROM latest_verdicts
), per_item AS (
    SELECT run_id, item_id, scorer, CASE scorer
        WHEN 'context_recall' THEN count(*) FILTER (positive) / count(*)
        ELSE sum(so_far / rank) FILTER (positive) / count(*) FILTER (positive) END AS value
    FROM ranked GROUP BY run_id, item_id, scorer
)
SELECT run_id, scorer, avg(coalesce(value, 0)) AS mean
FROM latest_scores LEFT JOIN per_item USING (run_id, item_id, scorer)
WHERE counted
GROUP BY ALL
"""


def many(history: History) -> None:
    """Two runs; in the second, statuses of all kinds and a second attempt."""
    for run_id in ("run-1", "run-2"):
        history.start_run(run_row(run_id, items=12))
        store(history, run_id, [record(number) for number in range(8)])
    zero = Score(RECALL, RECALL, Status.NO_REFERENCE, Fraction(0), 0.0)
    odd = [
        recall(8, Status.JUDGE_ERROR),
        replace(recall(9, Status.ABSTAINED), status=Status.UNANSWERABLE),
        zero,
        replace(zero, counted=False),
    ]
    store(history, "run-2", [record(8 + n).having(scores=(one, precision(8 + n))) for n, one in enumerate(odd)])
    history.reopen_run("run-2")
    retried = recall(11)
    history.store_scores("run-2", [record(8, attempt=2).having(scores=(retried,))])


def test_the_mean_is_what_the_verdicts_give(history: History) -> None:
    many(history)
    shown = select(history.path, "SELECT run_id, scorer, mean_exact, mean, scale FROM score_history ORDER BY 1, 2").rows
    again = select(history.path, f"SELECT * FROM ({FROM_VERDICTS}) ORDER BY 1, 2").rows
    assert [row[:2] for row in shown] == [row[:2] for row in again]
    assert len(shown) == 4
    for (_, _, exact, mean, scale), (_, _, value) in zip(shown, again, strict=True):
        assert exact == pytest.approx(value, abs=1e-12)
        assert mean == pytest.approx(value * scale, abs=5.1e-5)


def test_a_summary_counts_statuses_coverage_and_cost_over_the_latest_attempts(history: History) -> None:
    many(history)
    by_recall, by_precision = summaries(history, "run-2")
    exact = [Fraction(n % 4, 3) for n in range(8)] + [Fraction(11 % 4, 3), Fraction(0)]
    assert (by_recall.scorer, by_precision.scorer) == (RECALL, PRECISION)  # the order of the suite
    assert by_recall.mean == round(float(sum(exact) / 10), 4)
    assert (by_recall.n, by_recall.scored, by_recall.eligible, by_recall.items) == (10, 11, 11, 12)
    assert by_recall.coverage == 1
    assert by_recall.by_status == {Status.UNANSWERABLE: 1, Status.NO_REFERENCE: 2, Status.OK: 9}
    assert (by_recall.against, by_recall.against_mixed) == ("reference", False)
    assert (by_recall.calls, by_recall.cost_usd) == (10, 2.5)
    assert (by_precision.scale, by_precision.n, by_precision.remembered) == (10, 12, 36)


def test_a_scorer_without_any_score_has_no_mean_and_no_coverage_where_nothing_is_eligible(history: History) -> None:
    history.start_run(run_row(items=2))
    one = replace(recall(1, Status.ABSTAINED), status=Status.UNANSWERABLE)
    bad = recall(1, Status.JUDGE_ERROR)
    history.store_scores("run-1", [record(1).having(scores=(one, replace(bad, scorer="b")))])
    none, zero = sorted(summaries(history, "run-1"), key=lambda s: s.scorer, reverse=True)
    assert (none.mean, none.n, none.coverage, none.against) == (None, 0, None, None)
    assert (zero.mean, zero.n, zero.coverage) == (None, 0, 0)


def test_a_mean_over_two_kinds_of_expected_answer_says_so_and_unknown_cost_stays_unknown(history: History) -> None:
    history.start_run(run_row(items=2))
    first = precision(1)
    second = replace(precision(2), against="output", usage=Usage(calls=1, cost_usd=None, prompt_tokens=None))
    history.store_scores("run-1", [record(1).having(scores=(first,)), record(2).having(scores=(second,))])
    (summary,) = summaries(history, "run-1")
    assert (summary.against, summary.against_mixed, summary.cost_usd, summary.calls) == (None, True, None, 1)


def test_repeated_contexts_are_counted_in_the_summary(history: History) -> None:
    history.start_run(run_row(items=1))
    one = precision(1)
    twice = (*one.findings[:2], replace(one.findings[2], duplicate_of=1))
    history.store_scores("run-1", [record(1).having(scores=(replace(one, findings=twice),))])
    assert summaries(history, "run-1")[0].duplicates == 1


def test_a_run_without_scores_has_no_summary_and_an_unknown_run_is_an_error(history: History) -> None:
    history.start_run(run_row())
    assert summaries(history, "run-1") == []
    for ask in (summaries, item_scores, findings, worst_items):
        with pytest.raises(UsageError, match="no run 'nope'"):
            ask(history, "nope")


def test_an_item_comes_back_with_response_contexts_scores_and_findings(history: History) -> None:
    history.start_run(run_row())
    one = record(2)
    store(history, "run-1", [one, record(3)])
    detail = item_detail(history, "run-1", "item-2")
    assert detail.item == one.item
    assert detail.response == one.response
    assert detail.context_sets == one.context_sets
    assert detail.position == 2
    assert detail.scores == (precision(2), recall(2))
    with pytest.raises(UsageError, match=r"has no item 'item-22'.*near: item-2"):
        item_detail(history, "run-1", "item-22")


def test_an_item_comes_with_the_calls_of_its_latest_attempts_where_they_are_wanted(history: History) -> None:
    history.start_run(run_row())
    calls = (
        Call(
            "extract_claims", "m", "json_schema", "malformed", 9, 2, 0, 0.5, 12.5, "no JSON", 1.5, "I would rather not."
        ),
        Call("extract_claims", "m", "json_schema", "ok", reply='{"claims": []}'),
    )
    failed = replace(recall(2, Status.JUDGE_ERROR), calls=calls[:1])
    store(history, "run-1", [record(2).having(scores=(failed, precision(2)))])
    history.store_scores("run-1", [record(2, attempt=2).having(scores=(replace(recall(2), calls=calls),))])
    by_name = {score.scorer: score for score in item_detail(history, "run-1", "item-2", calls=True).scores}
    assert (by_name[RECALL].calls, by_name[PRECISION].calls) == (calls, ())
    assert all(score.calls == () for score in item_detail(history, "run-1", "item-2").scores)


def test_the_text_of_a_context_is_stored_once_and_of_one_that_no_set_holds_with_its_verdict(history: History) -> None:
    history.start_run(run_row())
    store(history, "run-1", [record(1)])
    history.store_scores("run-1", [Record(record(2).item, 2, scores=(precision(2),))])
    assert select(history.path, "SELECT count(text) FROM verdicts WHERE kind = 'context'").rows == [(3,)]
    texts = [one.finding.text for one in findings(history, "run-1", kind="context")]
    assert texts == [finding.text for number in (1, 2) for finding in precision(number).findings]


def test_scores_and_findings_of_a_run_come_in_the_order_of_the_dataset(history: History) -> None:
    history.start_run(run_row())
    store(history, "run-1", [record(3), record(1), record(2)])
    scores = item_scores(history, "run-1")
    assert [(score.item_id, score.scorer) for score in scores] == [
        (f"item-{number}", scorer) for number in (1, 2, 3) for scorer in (PRECISION, RECALL)
    ]
    assert [score.exact for score in scores if score.scorer == RECALL] == [Fraction(n, 3) for n in (1, 2, 3)]
    assert scores[0].item_hash == item_hash(record(1).item)
    assert scores[0].status is Status.OK
    missing = [
        (one.item_id, one.finding.text)
        for one in findings(history, "run-1", kind="claim")
        if one.finding.positive is False
    ]
    assert missing == [
        ("item-1", "fact 2 of item 1"),
        ("item-1", "fact 3 of item 1"),
        ("item-2", "fact 3 of item 2"),
    ]


def test_the_worst_items_have_the_lowest_means_and_the_first_in_the_dataset_comes_first(history: History) -> None:
    history.start_run(run_row(items=8))
    store(history, "run-1", [record(number) for number in range(8)])
    means: dict[str, list[Fraction]] = {}
    for one in item_scores(history, "run-1"):
        if one.exact is not None:
            means.setdefault(one.item_id, []).append(one.exact)
    low = {item_id: sum(each) / len(each) for item_id, each in means.items() if set(each) != {1}}
    assert worst_items(history, "run-1", 99) == sorted(low, key=lambda item_id: low[item_id])
    assert worst_items(history, "run-1", 3) == worst_items(history, "run-1", 99)[:3]


def test_scores_and_findings_of_some_items_only(history: History) -> None:
    history.start_run(run_row(items=8))
    store(history, "run-1", [record(number) for number in range(8)])
    ids = ["item-4", "item-1"]
    every, light = item_scores(history, "run-1", items=ids), item_scores(history, "run-1", items=ids, texts=False)
    assert every == [one for one in item_scores(history, "run-1") if one.item_id in ids]
    assert light == [replace(one, reason="", input=None) for one in every]
    found = findings(history, "run-1", kind="claim", items=ids)
    assert found == [one for one in findings(history, "run-1", kind="claim") if one.item_id in ids] != []
    assert item_scores(history, "run-1", items=[]) == []
    assert findings(history, "run-1", items=[]) == []


def test_a_selection_has_names_types_and_times_in_utc(history: History) -> None:
    moment = datetime(2026, 3, 29, 1, 30, 0, 123456, tzinfo=UTC)
    history.start_run(run_row(started_at=moment))
    found = select(history.path, "SELECT run_id, started_at AS t, 1.5::DOUBLE AS t FROM runs -- all;", ())
    assert found.columns == ("run_id", "t", "t")
    assert found.types == ("VARCHAR", "TIMESTAMP WITH TIME ZONE", "DOUBLE")
    assert found.rows == [("run-1", moment, 1.5)]
    assert select(history.path, "SELECT started_at FROM runs WHERE run_id = $1;", ["run-1"]).rows == [(moment,)]


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("selct 1", "syntax error"),
        ("select nope from runs", 'Referenced column "nope" not found'),
        ("delete from runs", "read-only"),
        ("create table t(a int)", "read-only"),
        ("select * from read_csv('/etc/passwd')", "disabled"),
        ("copy runs to 'out.csv'", "disabled"),
        ("attach 'other.duckdb'", "disabled"),
        ("set enable_external_access = true", "locked"),
        ("install httpfs", "disabled"),
        ("  ; ", "no SQL"),
    ],
)
def test_sql_that_is_wrong_or_reaches_out_is_one_line(
    history: History, sql: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    history.start_run(run_row())
    before = history.path.read_bytes()
    with pytest.raises(UsageError, match=message) as raised:
        select(history.path, sql)
    assert "\n" not in str(raised.value)
    assert history.path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == [".ragscore"]


def test_importing_the_history_does_not_import_duckdb() -> None:
    code = "import sys, ragscore.history; print('duckdb' in sys.modules or 'prefect' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
