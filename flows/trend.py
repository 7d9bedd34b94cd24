"""Trends as small SVG pictures, in the text of an artifact as a data URI: no file, no script, no address."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from xml.sax.saxutils import escape

from ragscore.history import History, select

#: Colours that differ in both of Prefect's themes, and for the colour-blind (Okabe and Ito, 2008).
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
WIDTH, HEIGHT = 640, 200
_LEFT, _RIGHT, _TOP, _BOTTOM = 40, 12, 30, 34


@dataclass(frozen=True, slots=True)
class Point:
    """One run in a trend; `value` is the mean within 0 and 1, None where nothing was scored."""

    label: str
    value: float | None
    failed: bool = False


def trends(
    history: History,
    *,
    suite: str,
    retriever: str | None,
    limit: int = 30,
    since: datetime | None = None,
    until: datetime | None = None,
) -> dict[str, list[Point]]:
    """Per scorer its last `limit` complete runs of a suite and retriever, oldest first.

    Args:
        since, until: Only runs that started between them, both included.
    """
    rows = select(
        history.path,
        """
        SELECT scorer, version, mean_exact, gate_verdict = 'fail' FROM (
            SELECT *, dense_rank() OVER (ORDER BY started_at DESC, run_id DESC) AS place
            FROM score_history
            WHERE status = 'complete' AND suite = $1 AND retriever IS NOT DISTINCT FROM $2
                AND started_at >= coalesce($4::TIMESTAMPTZ, '-infinity')
                AND started_at <= coalesce($5::TIMESTAMPTZ, 'infinity')
        ) WHERE place <= $3 ORDER BY scorer, started_at, run_id
        """,
        [suite, retriever, limit, since, until],
    ).rows
    found: dict[str, list[Point]] = {}
    for scorer, version, mean, failed in rows:
        found.setdefault(str(scorer), []).append(Point(str(version or ""), mean, bool(failed)))
    return found


def picture(lines: Mapping[str, Sequence[Point]], *, alt: str) -> str:
    """Markdown of the trends in one picture; empty when no scorer has two points."""
    if not any(sum(point.value is not None for point in points) > 1 for points in lines.values()):
        return ""
    encoded = base64.b64encode(svg(lines).encode("utf-8")).decode("ascii")
    return f"![{alt}](data:image/svg+xml;base64,{encoded})"


def svg(lines: Mapping[str, Sequence[Point]]) -> str:
    """Lines over runs, 0 to 1 from bottom to top; runs whose gate failed are ringed. White ground, so that it is
    readable in a dark theme too."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}"'
        ' font-family="sans-serif" font-size="11">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
    ]
    for level in (0.0, 0.5, 1.0):
        y = _y(level)
        parts.append(f'<line x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#dddddd"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end" fill="#555555">{level:g}</text>')
    across = _LEFT
    for (name, points), colour in zip(lines.items(), COLOURS * (1 + len(lines) // len(COLOURS)), strict=False):
        parts.append(f'<text x="{across}" y="18" fill="{colour}">● {escape(name)}</text>')
        across += 24 + 7 * len(name)
        parts += _line(points, colour)
    longest = max(lines.values(), key=len)
    ends = [(0, "start"), (len(longest) - 1, "end")] if len(longest) > 1 else [(0, "middle")]
    for place, anchor in ends:
        x = _x(place, len(longest))
        shown = escape(longest[place].label[:24])
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - 10}" text-anchor="{anchor}" fill="#555555">{shown}</text>')
    return "".join([*parts, "</svg>"])


def _line(points: Sequence[Point], colour: str) -> list[str]:
    placed = [
        (_x(place, len(points)), _y(point.value), point)
        for place, point in enumerate(points)
        if point.value is not None
    ]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in placed)
    drawn = [f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>']
    for x, y, point in placed:
        if point.failed:
            drawn.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="6" fill="none" stroke="#cc0000" stroke-width="2"/>')
        drawn.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>')
    return drawn


def _x(place: int, count: int) -> float:
    return _LEFT + 8 + (WIDTH - _LEFT - _RIGHT - 16) * (place / (count - 1) if count > 1 else 0.5)


def _y(value: float) -> float:
    return _TOP + (HEIGHT - _TOP - _BOTTOM) * (1 - value)
