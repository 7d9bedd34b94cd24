"""Charts join what is alike, and show no more precision than there is."""

from __future__ import annotations

import itertools
from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from ragscore.history.trends import Point, Trend
from ragscore.report.html.charts import HEIGHT, WIDTH, trend_chart
from ragscore.stats import Interval


def trend(*points: tuple[str, float | None, str], scale: float = 1.0, deployed: Collection[int] = ()) -> Trend:
    start = datetime(2026, 3, 2, tzinfo=UTC)
    made = [
        Point(
            f"run-{n}",
            f"run-{n}",
            version,
            start + timedelta(days=n),
            "complete",
            judge,
            mean,
            scale,
            10,
            1.0,
            None,
            None,
            1,
            n in deployed,
        )
        for n, (version, mean, judge) in enumerate(points)
    ]
    return Trend("docs", "search", "context_recall", scale, tuple(made))


def test_a_line_ends_where_the_judge_changes_and_where_a_mean_is_missing() -> None:
    chart = trend_chart(
        trend(
            ("v1", 0.8, "a"), ("v1", 0.8, "a"), ("v2", None, "a"), ("v2", 0.7, "a"), ("v2", 0.7, "a"), ("v2", 0.9, "b")
        ),
        {},
    )
    assert [len(line.split()) for line in chart.lines] == [2, 2]
    assert len(chart.marks) == 5
    assert [note.text for note in chart.notes if note.kind == "judge"] == ["b"]
    assert [note.text for note in chart.notes if note.kind == "version"] == ["v2"]


def test_marks_stand_within_the_picture_and_higher_means_higher() -> None:
    spans = {("run-0", "context_recall"): Interval(0.1, 0.4), ("run-1", "context_recall"): Interval(0.9, 1.0)}
    chart = trend_chart(trend(("v1", 3.0, "a"), ("v2", 9.5, "a"), scale=10), spans, baseline_mean=8.0)
    low, high = chart.marks
    assert low.y > high.y
    assert chart.baseline is not None
    assert high.y < chart.baseline < low.y
    for mark in chart.marks:
        assert 0 <= mark.x <= WIDTH
        assert mark.low is not None
        assert mark.high is not None
        assert 0 <= mark.high <= mark.y <= mark.low <= HEIGHT
    assert chart.ticks[-1][1] == "10.0"


def test_runs_of_another_scale_stand_where_their_share_is() -> None:
    before, after = trend(("v1", 0.9, "a")), trend(("v1", 0.9, "a"), ("v2", 9.0, "a"), scale=10)
    first, second = trend_chart(replace(after, points=(*before.points, after.points[1])), {}).marks
    assert first.y == second.y


def test_a_small_change_does_not_fill_the_picture() -> None:
    chart = trend_chart(trend(("v1", 0.851, "a"), ("v2", 0.853, "a")), {})
    first, second = chart.marks
    assert abs(first.y - second.y) < 5


def test_a_trend_without_any_mean_is_empty_and_one_point_is_a_point() -> None:
    assert trend_chart(trend(("v1", None, "a")), {}).marks == []
    assert len(trend_chart(trend(("v1", 1.0, "a")), {}).marks) == 1


def test_deploys_are_told_from_versions_that_came_without_one() -> None:
    points = [("v1", 0.8, "a"), ("v2", 0.8, "a"), ("v2", 0.7, "a"), ("v3", 0.7, "a"), ("v3", 0.7, "b")]
    chart = trend_chart(trend(*points, deployed=[1, 2]), {})
    assert [(note.kind, note.text) for note in chart.notes] == [
        ("first", "v1"),
        ("deploy", "v2"),
        ("deploy", "v2"),
        ("version", "v3"),
        ("judge", "b"),
    ]


def test_words_that_would_overlap_give_way_and_the_latest_stands() -> None:
    chart = trend_chart(trend(*((f"2026.03.{n:02}", 0.8, "a") for n in range(12)), deployed=range(12)), {})
    assert [note.kind for note in chart.notes] == ["deploy"] * 12
    words = [note for note in chart.notes if note.text]
    assert words[-1].text == "2026.03.11"
    assert 2 <= len(words) < 6
    assert all(after.x - before.x > 80 for before, after in itertools.pairwise(words))
