"""How means went: by run, day and version."""

from __future__ import annotations

import pytest

from ragscore.cli.trend import BARS, PLAIN_BARS, bars, sparkline
from ragscore.errors import UsageError
from ragscore.history import History
from ragscore.history.trends import By, trends

from .example import example
from .records import PRECISION, RECALL


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> History:
    return example(tmp_path_factory.mktemp("trends") / "history.duckdb")


def test_there_is_one_trend_per_scorer_in_the_order_of_time(filled: History) -> None:
    precision, recall = trends(filled)
    assert (precision.scorer, recall.scorer) == (PRECISION, RECALL)
    assert [point.label for point in recall.points] == ["run-1", "run-2", "run-3", "run-4"]
    assert [point.change for point in recall.points] == [None, 0, -0.1667, 0.25]
    assert [point.gate_verdict for point in recall.points] == ["pass", "pass", "fail", "inconclusive"]


@pytest.mark.parametrize(
    ("by", "labels", "runs"),
    [
        ("version", ["v1", "v2", "v3"], [2, 1, 1]),
        ("day", ["2026-03-02", "2026-03-03", "2026-03-09", "2026-03-16"], [1, 1, 1, 1]),
    ],
)
def test_a_version_or_day_is_one_point(filled: History, by: By, labels: list[str], runs: list[int]) -> None:
    (recall,) = trends(filled, "docs", scorer=RECALL, by=by)
    assert [point.label for point in recall.points] == labels
    assert [point.runs for point in recall.points] == runs
    assert recall.points[0].run_id == ("run-2" if by == "version" else "run-1")


def test_a_limit_takes_the_latest_and_keeps_their_change(filled: History) -> None:
    (recall,) = trends(filled, scorer=RECALL, limit=1)
    assert [(point.label, point.change) for point in recall.points] == [("run-4", 0.25)]


def test_a_condition_is_sql_on_score_history(filled: History) -> None:
    (recall,) = trends(filled, scorer=RECALL, where="version <> 'v2' -- not the broken one")
    assert [point.version for point in recall.points] == ["v1", "v1", "v3"]
    assert trends(filled, where="n > 99") == []
    with pytest.raises(UsageError, match="versoin"):
        trends(filled, where="versoin = 'v1'")


def test_a_suite_or_scorer_that_is_not_there_is_named_with_near_ones(filled: History) -> None:
    with pytest.raises(UsageError, match=r"no suite 'docz'.*near: docs"):
        trends(filled, "docz")
    with pytest.raises(UsageError, match=r"no scorer 'recall'.*near: context_recall"):
        trends(filled, scorer="recall")


@pytest.mark.parametrize(
    ("values", "bars"), [([], ""), ([0.5], "▄"), ([0, 1, None, 0.5], "▁█·▅"), ([None], "·"), ([2, 2], "▄▄")]
)
def test_bars_span_from_the_lowest_to_the_highest(values: list[float | None], bars: str) -> None:
    assert sparkline(values) == bars


def test_a_terminal_that_cannot_draw_bars_gets_ascii(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    assert bars() == PLAIN_BARS
    assert sparkline([0.0, None, 1.0], bars()) == "_ @"
    assert len(PLAIN_BARS) == len(BARS)
    assert PLAIN_BARS.isascii()
