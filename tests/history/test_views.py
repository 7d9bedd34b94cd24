"""What the views say of a history whose figures are known."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from ragscore.history import History, select
from ragscore.items import Item

from .example import JUDGE, START, example
from .records import PRECISION, RECALL, record, run_row, store


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return example(tmp_path_factory.mktemp("views") / "history.duckdb").path


def ask(path: Path, sql: str) -> list[tuple[Any, ...]]:
    return select(path, sql).rows


def test_an_item_is_followed_over_its_runs_with_the_change_against_the_one_before(filled: Path) -> None:
    found = ask(
        filled,
        f"SELECT run_id, previous_run_id, previous_version, round(change * 3), comparable FROM item_history"
        f" WHERE item_id = 'refund' AND scorer = '{RECALL}' ORDER BY started_at",
    )
    assert found == [
        ("run-1", None, None, None, None),
        ("run-2", "run-1", "v1", 0, True),
        ("run-3", "run-2", "v1", -1, True),
        ("run-4", "run-3", "v2", 1, True),
    ]


def test_regressions_are_the_drops(filled: Path) -> None:
    assert ask(filled, "SELECT run_id, item_id, scorer FROM regressions ORDER BY ALL") == [
        ("run-3", "refund", PRECISION),
        ("run-3", "refund", RECALL),
        ("run-3", "shipping", RECALL),
        ("run-4", "shipping", PRECISION),
    ]


def test_a_missing_claim_says_since_which_version_and_how_often(filled: Path) -> None:
    found = ask(
        filled,
        "SELECT item_id, claim, since_version, since_run_id, runs_missing, runs_missing_ever, runs_judged"
        " FROM missing_claims ORDER BY ALL",
    )
    assert found == [
        ("refund", "The receipt is needed.", "v2", "run-3", 2, 2, 4),
        ("shipping", "The receipt is needed.", "v3", "run-4", 1, 1, 4),
    ]


def test_versions_stand_where_their_last_complete_run_stands(filled: Path) -> None:
    found = ask(
        filled,
        f"SELECT version, runs, last_run_id, round(mean, 2), round(change, 2), gate_verdict FROM retriever_versions"
        f" WHERE scorer = '{RECALL}' ORDER BY first_started_at",
    )
    assert found == [
        ("v1", 2, "run-2", 0.75, None, "pass"),
        ("v2", 1, "run-3", 0.58, -0.17, "fail"),
        ("v3", 1, "run-4", 0.83, 0.25, "inconclusive"),
    ]


def test_spend_counts_superseded_attempts_and_an_unknown_cost_is_null(filled: Path) -> None:
    found = ask(filled, "SELECT * FROM judge_spend ORDER BY day")
    assert [row[0] for row in found] == [(START + timedelta(days=days)).date() for days in (0, 1, 7, 14)]
    assert found[0][1:] == ("docs", JUDGE, 4, 0, 3600, 320, 0, pytest.approx(0.0016), pytest.approx(0.0016), 0)
    assert found[2][1:] == ("docs", JUDGE, 5, 1, None, None, None, None, pytest.approx(0.0016), 1)


def test_what_is_added_to_score_history_agrees_with_the_rows(filled: Path) -> None:
    found = ask(filled, f"SELECT run_id, n, ok, judge_error, coverage FROM score_history WHERE scorer = '{RECALL}'")
    assert sorted(found) == [(f"run-{n}", 4, 4, 0, 1.0) for n in (1, 2, 3, 4)]


def test_the_mark_of_superseded_scores_agrees_with_the_attempts(filled: Path) -> None:
    assert ask(filled, "SELECT run_id, item_id, scorer, attempt FROM scores WHERE superseded") == [
        ("run-3", "warranty", RECALL, 1)
    ]
    by_attempts = "SELECT count(*) FROM (FROM scores QUALIFY attempt = max(attempt) OVER (PARTITION BY run_id, item_id,"
    assert ask(filled, f"{by_attempts} scorer))") == ask(filled, "SELECT count(*) FROM latest_scores")


def _runs(history: History, *rows: dict[str, Any]) -> None:
    """One run after the other, of one item with one recall score."""
    for number, row in enumerate(rows):
        run_id = f"run-{number}"
        judge = row.get("judge", "j")
        history.start_run(
            run_row(run_id, items=1, started_at=START + timedelta(days=number), judge=judge, version=f"v{number}")
        )
        one = record(1)
        assert one.scores is not None
        exact = row["exact"]
        score = replace(
            one.scores[0],
            exact=exact,
            judge=judge,
            counted=exact is not None,
            claim_set=row.get("claim_set", "c"),
            prompt_version=row.get("prompt", "1"),
        )
        item = Item("item-1", row.get("input", "a question"), "an answer")
        store(history, run_id, [one.having(item=item, scores=(score,))])


@pytest.mark.parametrize(
    ("other", "change"),
    [
        ({}, -1.0),
        ({"judge": "another"}, None),
        ({"input": "edited"}, None),
        ({"claim_set": "edited"}, None),
        ({"claim_set": None}, -1.0),
        ({"prompt": "2"}, None),
    ],
)
def test_only_like_is_compared_with_like(history: History, other: dict[str, Any], change: float | None) -> None:
    _runs(history, {"exact": Fraction(1)}, {"exact": Fraction(0), **other})
    found = ask(history.path, "SELECT change FROM item_history WHERE run_id = 'run-1'")
    assert found == [(change,)]


def test_a_failure_between_two_scores_hides_no_drop(history: History) -> None:
    _runs(history, {"exact": Fraction(1)}, {"exact": None}, {"exact": Fraction(1, 3)})
    found = ask(history.path, "SELECT run_id, previous_run_id, change FROM item_history ORDER BY run_id")
    assert found == [("run-0", None, None), ("run-1", None, None), ("run-2", "run-0", pytest.approx(-2 / 3))]


def test_a_claim_of_a_reference_that_was_edited_since_is_not_missing(history: History) -> None:
    for run_id, number in (("run-1", 1), ("run-2", 2)):
        history.start_run(run_row(run_id, items=1, started_at=START + timedelta(days=number)))
        store(history, run_id, [record(number).having(item=Item("one", f"question {number}", "a"), position=0)])
        assert history.finish_run(run_id, status="complete").ok
    assert ask(history.path, "SELECT claim FROM missing_claims") == [("fact 3 of item 2",)]


def test_claims_are_kept_once_per_set(history: History) -> None:
    history.start_run(run_row())
    one = record(1)
    for attempt in (1, 2):
        history.store_scores("run-1", [replace(one, attempt=attempt)])
    found = ask(history.path, "SELECT claim_set, number, text, first_run_id FROM claims ORDER BY number")
    assert found == [("k" * 8, n, f"fact {n} of item 1", "run-1") for n in (1, 2, 3)]


def test_a_gate_is_kept_with_its_run_until_the_run_is_taken_up_again(history: History) -> None:
    history.start_run(run_row())
    history.store_gate("run-1", "fail", {"n": 3})
    row = history.run("run-1")
    assert (row.gate_verdict, row.gate) == ("fail", {"n": 3})
    assert history.reopen_run("run-1").gate_verdict is None


def test_a_comparison_is_kept_once_and_an_unknown_column_is_refused(history: History) -> None:
    row = {"comparison_id": "c", "baseline_run_id": "a", "run_id": "b", "suite": "s", "scorer": "x", "n": 1}
    row |= {"forced": False, "p": float("nan"), "details": {"a": [1]}}
    assert history.store_comparison([row, {**row, "scorer": "y"}]) == 2
    assert history.store_comparison([row]) == 0
    assert ask(history.path, "SELECT p, details ->> '$.a[0]' FROM comparisons") == [(None, "1")] * 2
    with pytest.raises(ValueError, match="comparisons has no column pvalue"):
        history.store_comparison([{**row, "pvalue": 1}])
