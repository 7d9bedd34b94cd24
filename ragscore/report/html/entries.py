"""The items of a run as the page holds them: everything about each, read from the history in a few queries."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ragscore.history import History, ItemFinding, ItemScore, RunRow, select
from ragscore.items import Finding, Status
from ragscore.report.html.replies import Replies
from ragscore.report.html.texts import Texts
from ragscore.report.terminal import BETTER_NOT, WORDS
from ragscore.scorer_kinds import LESS_IS_BETTER
from ragscore.scorers import mean

#: Items of a larger run that the page holds: those with the lowest scores.
MOST_ITEMS = 2_000
#: Earlier runs whose scores an item shows.
MOST_RUNS = 20


@dataclass(frozen=True, slots=True)
class Entry:
    """One item of the list.

    Attributes:
        scores: By scorer.
        lowness: The mean of its scores within 0 and 1, of those of which less is better turned; None without a score.
        missing: How many claims of its reference no context supports.
        cost_usd: What judging it cost; None where a part of it is unknown.
        details: All else, JSON-able, with numbers for long texts.
    """

    item_id: str
    position: int
    input: str | None
    scores: Mapping[str, ItemScore]
    lowness: Fraction | None
    missing: int
    latency_ms: float | None
    cost_usd: float | None
    details: Mapping[str, Any]


def entries_of(
    history: History,
    run: RunRow,
    scores: Sequence[ItemScore],
    decided: Sequence[ItemFinding],
    texts: Texts,
    *,
    most: int = MOST_ITEMS,
) -> list[Entry]:
    """The items of the run, lowest scores first, then in the dataset's order; those without any score come first.

    Args:
        history: Where the run is.
        run: The run's row.
        scores: `item_scores` of the run.
        decided: `findings` of the run.
        texts: Takes up the long texts.
        most: How many items at most.
    """
    by_item: dict[str, dict[str, ItemScore]] = {}
    for score in scores:
        by_item.setdefault(score.item_id, {})[score.scorer] = score
    kept = dict(sorted(by_item.items(), key=lambda pair: _order(pair[1]))[:most])
    found: dict[tuple[str, str], list[Finding]] = {}
    for each in decided:
        found.setdefault((each.item_id, each.scorer), []).append(each.finding)
    items = {row["item_id"]: row for row in _rows(history, run, "latest_items", _ITEM)}
    held: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for row in _rows(history, run, "latest_contexts", _CONTEXT, order="context_set, rank"):
        if row["item_id"] in kept:
            held.setdefault(row["item_id"], {}).setdefault(row["context_set"], []).append(row)
    more = {(row["item_id"], row["scorer"]): row for row in _rows(history, run, "latest_scores", _SCORE)}
    places = {str(scorer.get("name")): place for place, scorer in enumerate(run.scorers)}
    kept = {
        item_id: {name: own[name] for name in sorted(own, key=lambda name: (places.get(name, len(places)), name))}
        for item_id, own in kept.items()
    }
    cells = [(score.item_id, name, score.attempt) for own in kept.values() for name, score in own.items()]
    replies = Replies(history, run, cells, texts, items=len(kept))
    made = []
    for item_id, own in kept.items():
        item = items.get(item_id, {})
        sets = held.get(item_id, {})
        shown = []
        for name, score in own.items():
            row = more[item_id, name]
            decisions = found.get((item_id, name), [])
            _keep_quotes(texts, decisions, sets.get(row["context_set"] or "", ()))
            shown.append(
                {
                    "n": name,
                    "st": score.status.value,
                    "v": score.score,
                    "x": None if score.exact is None else round(float(score.exact), 6),
                    "why": texts.add(score.reason),
                    "against": score.against,
                    "set": row["context_set"],
                    "error": texts.add(row["error"]),
                    "raw": texts.add(row["raw"]),
                    "f": [_finding(each, texts) for each in decisions],
                    "calls": replies.of((item_id, name, score.attempt)),
                    "asked": row["calls"] + row["remembered"],
                    "judged": bool(score.prompt_version),
                    "cost": row["cost_usd"],
                }
            )
        costs = [more[item_id, name]["cost_usd"] for name in own]
        metadata = json.loads(item["metadata"]) if item.get("metadata") else {}
        made.append(
            Entry(
                item_id,
                next(iter(own.values())).position,
                item.get("input"),
                own,
                _lowness(own.values()),
                _missing(own, found),
                item.get("latency_ms"),
                None if any(cost is None for cost in costs) else sum(costs),
                {
                    "id": item_id,
                    "q": texts.add(item.get("input")),
                    "ref": texts.add(item.get("reference")),
                    "out": texts.add(item.get("output")),
                    "err": texts.add(item.get("error")),
                    "ans": item.get("answerable", True),
                    "ms": item.get("latency_ms"),
                    "meta": {str(key): _plain(value) for key, value in metadata.items()},
                    "sets": {
                        name: [
                            [texts.add(row["text"]), row["context_id"], row["score"], row["duplicate_of"]]
                            for row in rows
                        ]
                        for name, rows in sets.items()
                    },
                    "s": shown,
                    "more": replies.elsewhere((item_id, name, score.attempt) for name, score in own.items()),
                },
            )
        )
    return made


def scores_over_time(history: History, run: RunRow, item_ids: Sequence[str]) -> dict[str, Any]:
    """What `item_history` says of the items over the last runs of the suite up to this one, JSON-able.

    Returns:
        `runs`, oldest first, and by item and scorer one `exact` per run, None where there is no score.
    """
    ordered = [
        row
        for row in reversed(history.runs(suite=run.suite))
        if (row.started_at, row.run_id) <= (run.started_at, run.run_id)
        and row.retriever == run.retriever
        and row.dataset == run.dataset
    ][-MOST_RUNS:]
    places = {row.run_id: place for place, row in enumerate(ordered)}
    rows = select(
        history.path,
        "SELECT item_id, scorer, run_id, exact FROM item_history"
        """ WHERE suite = ? AND run_id IN (SELECT unnest(from_json(?, '["VARCHAR"]'))) AND exact IS NOT NULL""",
        [run.suite, json.dumps(list(places))],
        lock_timeout_s=history.lock_timeout_s,
    ).rows
    wanted = set(item_ids)
    of: dict[str, dict[str, list[float | None]]] = {}
    for item_id, scorer, run_id, exact in rows:
        if item_id in wanted:
            line = of.setdefault(item_id, {}).setdefault(scorer, [None] * len(places))
            line[places[run_id]] = round(float(exact), 4)
    return {
        "runs": [
            {
                "id": row.run_id,
                "v": row.version or "",
                "d": f"{row.started_at:%Y-%m-%d}",
                "judge": row.judge,
            }
            for row in ordered
        ],
        "of": of,
    }


_ITEM = ("item_id", "input", "reference", "output", "error", "answerable", "latency_ms", "metadata")
_CONTEXT = ("item_id", "context_set", "rank", "context_id", "text", "score", "duplicate_of")
_SCORE = ("item_id", "scorer", "error", "raw", "context_set", "calls", "remembered", "cost_usd")


def _rows(
    history: History, run: RunRow, table: str, columns: Sequence[str], *, order: str = "item_id"
) -> Iterator[dict[str, Any]]:
    asked = ", ".join(f"{name}::VARCHAR" if name == "metadata" else name for name in columns)
    found = select(
        history.path,
        f"SELECT {asked} FROM {table} WHERE run_id = ? ORDER BY {order}",
        [run.run_id],
        lock_timeout_s=history.lock_timeout_s,
    )
    return (dict(zip(columns, row, strict=True)) for row in found.rows)


def _finding(finding: Finding, texts: Texts) -> dict[str, Any]:
    yes, no = WORDS.get(finding.kind, ("yes", "no"))
    positive = finding.positive
    return {
        "k": finding.kind,
        "r": finding.rank,
        "t": texts.add(finding.text) if finding.kind != "context" else None,
        "p": positive,
        "good": None if positive is None else positive != (finding.kind in BETTER_NOT),
        "word": "undecided" if positive is None else yes if positive else no,
        "why": texts.add(finding.why),
        "src": list(finding.sources),
        "quo": list(finding.quotes),
        "ok": finding.verified,
        "warn": list(finding.warnings),
        "conf": finding.confidence,
        "dup": finding.duplicate_of,
        "mem": finding.remembered,
    }


def _keep_quotes(texts: Texts, decisions: Sequence[Finding], contexts: Sequence[Mapping[str, Any]]) -> None:
    for finding in decisions:
        for rank, quote in zip(finding.sources, finding.quotes, strict=False):
            if 0 < rank <= len(contexts):
                texts.quote(contexts[rank - 1]["text"], quote)


def _missing(own: Mapping[str, ItemScore], found: Mapping[tuple[str, str], list[Finding]]) -> int:
    return len(
        {
            finding.text
            for score in own.values()
            for finding in found.get((score.item_id, score.scorer), ())
            if finding.kind == "claim" and finding.positive is False
        }
    )


def _lowness(own: Sequence[ItemScore] | Any) -> Fraction | None:
    known = [(score.exact, score.kind in LESS_IS_BETTER) for score in own if score.exact is not None]
    return mean([1 - exact if less else exact for exact, less in known])


def _order(own: Mapping[str, ItemScore]) -> tuple[int, Fraction, int, str]:
    first = next(iter(own.values()))
    low = _lowness(own.values())
    if low is None:  # nothing to be read off a question that cannot be answered; a failure is looked at first
        unanswerable = all(score.status is Status.UNANSWERABLE for score in own.values())
        return (2 if unanswerable else 0, Fraction(0), first.position, first.item_id)
    return (1, low, first.position, first.item_id)


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
