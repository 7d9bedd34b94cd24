"""How the mean of each scorer went over runs, days or versions."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby, pairwise
from typing import Any, Literal

from ragscore.errors import UsageError
from ragscore.history.query import select
from ragscore.history.store import History
from ragscore.scorer_kinds import settings_of

By = Literal["version", "day", "run"]

_COLUMNS = (
    "suite, retriever, scorer, run_id, version, started_at, status, judge, dataset_hash, mean, scale, n, coverage,"
    " gate_verdict"
)
#: The trigger of runs that a deploy started.
_DEPLOY = "deploy"


@dataclass(frozen=True, slots=True)
class Point:
    """One run, or the last complete run of one day or version.

    Attributes:
        label: The run id, the day (UTC) or the version.
        mean: In `scale`; None when nothing counts.
        scale: The scorer's in that run: a suite may change it.
        change: Against the point before; None for the first, without a mean, and where judge, scale or settings differ.
        runs: How many runs it stands for.
        deployed: One of those runs was started by a deploy.
        settings: By what the scorer counts (`k: 5`); see `scorer_kinds.settings_of`.
    """

    label: str
    run_id: str
    version: str | None
    started_at: datetime
    status: str
    judge: str
    mean: float | None
    scale: float
    n: int
    coverage: float | None
    gate_verdict: str | None
    change: float | None
    runs: int
    deployed: bool = False
    settings: str = ""


@dataclass(frozen=True, slots=True)
class Trend:
    """One scorer of one suite and retriever, oldest point first; `scale` is that of the last one."""

    suite: str
    retriever: str | None
    scorer: str
    scale: float
    points: tuple[Point, ...]


def trends(
    history: History,
    suite: str | None = None,
    *,
    scorer: str | None = None,
    by: By = "run",
    where: str | None = None,
    limit: int | None = None,
) -> list[Trend]:
    """The trends of a suite, or of all.

    Args:
        history: Where the runs are.
        suite, scorer: Only these.
        by: What a point is. A day or version is represented by its last complete run, or its last where none is.
        where: A condition in SQL on the columns of `score_history`.
        limit: At most so many points of each, the latest.

    Raises:
        UsageError: There is no such suite or scorer, or DuckDB refuses the condition.
    """
    condition = f"AND (\n{where}\n)" if where and where.strip() else ""
    found = select(
        history.path,
        f"SELECT {_COLUMNS} FROM score_history WHERE suite = coalesce($1, suite) AND scorer = coalesce($2, scorer)"
        f" {condition} ORDER BY suite, retriever, scorer, started_at, run_id",
        [suite, scorer],
        lock_timeout_s=history.lock_timeout_s,
    )
    runs = select(
        history.path,
        "SELECT run_id, trigger, scorers FROM runs WHERE suite = coalesce(?, suite)",
        [suite],
        lock_timeout_s=history.lock_timeout_s,
    ).rows
    deployed = {run_id for run_id, trigger, _ in runs if trigger == _DEPLOY}
    counted = {
        (run_id, each.get("name")): settings_of(each) for run_id, _, scorers in runs for each in json.loads(scorers)
    }
    names = _COLUMNS.split(", ")
    rows = [dict(zip(names, row, strict=True)) for row in found.rows]
    for row in rows:
        row["deployed"] = row["run_id"] in deployed
        row["settings"] = counted.get((row["run_id"], row["scorer"]), "")
    if not rows:
        _complain_of(history, suite=suite, scorer=scorer)
    made = []
    for (of_suite, retriever, of_scorer), own in groupby(rows, lambda r: (r["suite"], r["retriever"], r["scorer"])):
        points = _points(list(own), by)
        made.append(Trend(of_suite, retriever, of_scorer, points[-1][0]["scale"], _changed(points, by, limit)))
    return made


def _points(rows: list[dict[str, Any]], by: By) -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """The row that stands for each point and all that it stands for, in the order of the points' first runs."""
    label = _LABELS[by]
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(label(row), []).append(row)
    return [
        (next((row for row in reversed(own) if row["status"] == "complete"), own[-1]), own) for own in groups.values()
    ]


def _changed(points: list[tuple[dict[str, Any], list[dict[str, Any]]]], by: By, limit: int | None) -> tuple[Point, ...]:
    changes: list[float | None] = [None]
    for (before, _), (after, _) in pairwise(points):
        alike = all(before[name] == after[name] for name in ("judge", "scale", "settings"))
        known = before["mean"] is not None and after["mean"] is not None
        changes.append(round(after["mean"] - before["mean"], 4) if alike and known else None)
    fields = (
        "run_id",
        "version",
        "started_at",
        "status",
        "judge",
        "mean",
        "scale",
        "n",
        "coverage",
        "gate_verdict",
        "settings",
    )
    made = [
        Point(
            label=_LABELS[by](row),
            change=change,
            runs=len(own),
            deployed=any(each["deployed"] for each in own),
            **{name: row[name] for name in fields},
        )
        for (row, own), change in zip(points, changes, strict=True)
    ]
    return tuple(made[-limit:] if limit is not None else made)


_LABELS: dict[By, Callable[[dict[str, Any]], str]] = {
    "run": lambda row: str(row["run_id"]),
    "day": lambda row: f"{row['started_at']:%Y-%m-%d}",
    "version": lambda row: row["version"] or "",
}


def _complain_of(history: History, **asked: str | None) -> None:
    for name, value in asked.items():
        known = [str(each) for (each,) in select(history.path, f"SELECT DISTINCT {name} FROM scores ORDER BY 1").rows]
        if value is not None and value not in known:
            near = difflib.get_close_matches(value, known, n=3, cutoff=0.4) or known[:3]
            mend = f"near: {', '.join(near)}" if near else "make a run first"
            raise UsageError(f"the history holds no {name} {value!r}", where=str(history.path), mend=mend)
