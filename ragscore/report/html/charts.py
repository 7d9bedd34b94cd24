"""Where the marks of the charts stand. The templates draw them; here is no markup, and nothing is styled."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ragscore.history import ItemScore
from ragscore.history.trends import Point, Trend
from ragscore.stats import Interval

Kind = Literal["deploy", "version", "first", "judge"]

WIDTH, HEIGHT = 520.0, 210.0
LEFT, RIGHT, TOP, BOTTOM = 40.0, 18.0, 22.0, 34.0
#: About how wide a character of a label is; on a narrow screen labels are drawn larger, and must still fit.
PER_CHARACTER = 10.0
#: The least part of a scorer's range that a chart shows: chance must not look like a landslide.
LEAST_SPAN = 0.2


@dataclass(frozen=True, slots=True)
class Mark:
    """One point of a trend: its place, and the interval's ends on the vertical axis where it is known."""

    x: float
    y: float
    low: float | None
    high: float | None
    point: Point
    interval: Interval | None


@dataclass(frozen=True, slots=True)
class Note:
    """A mark on the axis, with a word where there is room for it.

    `kind` is `deploy` (a run that a deploy started), `version` (another version, without a deploy), `first` (only the
    word of the first version), or `judge` (another judge from here on).
    """

    x: float
    kind: Kind
    text: str
    anchor: str = "middle"


@dataclass(frozen=True, slots=True)
class TrendChart:
    """One scorer over time.

    Attributes:
        lines: Polylines; a line ends where a run has no mean and where the judge changes, since it joins what is alike.
        bands: Polygons of the intervals along the lines.
        ticks: Of the vertical axis: place and figure.
        baseline: Place of the baseline's mean.
    """

    trend: Trend
    marks: Sequence[Mark]
    lines: Sequence[str]
    bands: Sequence[str]
    ticks: Sequence[tuple[float, str]]
    notes: Sequence[Note]
    baseline: float | None
    baseline_mean: float | None


def trend_chart(
    trend: Trend, intervals: Mapping[tuple[str, str], Interval | None], *, baseline_mean: float | None = None
) -> TrendChart:
    """Place the points of a trend.

    Args:
        trend: Oldest point first.
        intervals: By run and scorer, within 0 and 1.
        baseline_mean: In the scorer's scale.
    """
    scale = trend.scale
    seen = [point.mean / point.scale for point in trend.points if point.mean is not None]
    if baseline_mean is not None:
        seen.append(baseline_mean / scale)
    spans = [intervals.get((point.run_id, trend.scorer)) for point in trend.points]
    seen += [end for span in spans if span is not None for end in (span.low, span.high)]
    low, high = _domain(seen)

    def y(value: float) -> float:
        return round(TOP + (high - value) / (high - low) * (HEIGHT - TOP - BOTTOM), 1)

    count = len(trend.points)
    inner = WIDTH - LEFT - RIGHT

    def x(place: int) -> float:
        return round(LEFT + inner * ((place + 0.5) / count if count < 3 else 0.04 + 0.92 * place / (count - 1)), 1)

    marks: list[Mark] = []
    runs: list[list[Mark]] = [[]]
    before: Point | None = None
    for place, (point, span) in enumerate(zip(trend.points, spans, strict=True)):
        if point.mean is None or (before is not None and point.judge != before.judge):
            runs.append([])
        before = point
        if point.mean is None:
            continue
        mark = Mark(
            x(place),
            y(point.mean / point.scale),
            None if span is None else y(span.low),
            None if span is None else y(span.high),
            point,
            span,
        )
        marks.append(mark)
        runs[-1].append(mark)
    step = 0.1 if high - low <= 0.5 else 0.25
    ticks = [
        (y(low + number * step), f"{(low + number * step) * scale:.{_decimals(step * scale)}f}")
        for number in range(round((high - low) / step) + 1)
    ]
    return TrendChart(
        trend,
        marks,
        [" ".join(f"{each.x},{each.y}" for each in run) for run in runs if len(run) > 1],
        [_band(run) for run in runs if len(run) > 1 and all(each.low is not None for each in run)],
        ticks,
        _notes(trend.points, [x(place) for place in range(count)]),
        None if baseline_mean is None else y(baseline_mean / scale),
        baseline_mean,
    )


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar of a histogram: its place, its height within 0 and 1, and what it stands for."""

    label: str
    count: int
    share: float


def histogram(scores: Sequence[ItemScore], *, bins: int = 10) -> list[Bar]:
    """How many items have a score in each tenth of the range; the last bar holds full scores too."""
    counts = [0] * bins
    for score in scores:
        if score.exact is not None:
            counts[min(bins - 1, math.floor(score.exact * bins))] += 1
    most = max(counts) or 1
    scale = scores[0].scale if scores else 1.0
    return [
        Bar(f"{place / bins * scale:g}–{(place + 1) / bins * scale:g}", count, count / most)
        for place, count in enumerate(counts)
    ]


def _decimals(step: float) -> int:
    """As few as tell the ticks apart."""
    return next(places for places in (0, 1, 2, 3) if places == 3 or math.isclose(round(step, places), step))


def _domain(seen: Sequence[float]) -> tuple[float, float]:
    low, high = (min(seen), max(seen)) if seen else (0.0, 1.0)
    low, high = math.floor(low * 10 - 0.2) / 10, math.ceil(high * 10 + 0.2) / 10
    low, high = max(0.0, low), min(1.0, high)
    if high - low < LEAST_SPAN:
        low = max(0.0, round(high - LEAST_SPAN, 1))
        high = min(1.0, round(low + LEAST_SPAN, 1))
    return (round(low, 1), round(high, 1)) if high - low <= 0.5 else (0.0, 1.0)


def _band(run: Sequence[Mark]) -> str:
    upper = [f"{each.x},{each.high}" for each in run]
    lower = [f"{each.x},{each.low}" for each in reversed(run)]
    return " ".join([*upper, *lower])


def _notes(points: Sequence[Point], places: Sequence[float]) -> list[Note]:
    """Where deploys were, and where versions and judges change.

    A version's word stands only where it does not run into another's; the latest is never the one that gives way.
    """
    notes: list[Note] = []
    before: Point | None = None
    for point, x in zip(points, places, strict=True):
        if before is not None and point.judge != before.judge:
            notes.append(Note(x, "judge", _fit(point.judge, 24), "end" if x > WIDTH * 0.6 else "start"))
        other = before is None or point.version != before.version
        if other or point.deployed:
            text = _fit(point.version or "")
            last = before is not None and x + PER_CHARACTER * len(text) / 2 > WIDTH
            kind: Kind = "deploy" if point.deployed else "first" if before is None else "version"
            notes.append(Note(x, kind, text, "end" if last else "middle"))
        before = point
    return _readable(notes)


def _readable(notes: Sequence[Note]) -> list[Note]:
    versions = [note for note in notes if note.kind != "judge" and note.text]
    kept: list[Note] = versions[-1:]
    for note in versions[:-1]:
        if all(_ends(note)[1] + 8 < _ends(other)[0] or _ends(other)[1] + 8 < _ends(note)[0] for other in kept):
            kept.append(note)
    return [note if note.kind == "judge" or note in kept else replace(note, text="") for note in notes]


def _ends(note: Note) -> tuple[float, float]:
    width = PER_CHARACTER * len(note.text)
    left = note.x - (width if note.anchor == "end" else width / 2)
    return left, left + width


def _fit(text: str, most: int = 12) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
