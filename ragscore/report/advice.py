"""What the verdicts of a run point to, in at most a few lines: counted in the history, whatever the run's length."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ragscore.history import History, RunRow, select
from ragscore.judges.agreement import krippendorff_alpha

#: A claim that is missing in this many items at least is named.
OFTEN = 3
#: From this share of items on, a pattern is worth a line.
MUCH = 0.2

#: Claims as they are compared: white space folded, one form of each character.
_MISSING = """
    SELECT trim(regexp_replace(nfc_normalize(text), '[\\s\\pZ]+', ' ', 'g')) AS fact, count(DISTINCT item_id) AS items
    FROM latest_verdicts
    WHERE run_id = ? AND kind = 'claim' AND NOT positive AND text <> ''
    GROUP BY fact HAVING items >= ? ORDER BY items DESC, min(item_id), fact LIMIT 1
"""
#: By item: several scorers may judge the same contexts, in which case the first of them speaks for the item.
_RANKED = """
    WITH of_scorer AS (
        SELECT v.item_id, v.scorer, arg_min(coalesce(v.positive, false), v.rank) AS is_first,
               bool_or(coalesce(v.positive, false)) AS is_any
        FROM latest_verdicts AS v
        JOIN latest_scores AS s ON s.item_id = v.item_id AND s.scorer = v.scorer AND s.attempt = v.attempt
        WHERE v.run_id = $1 AND s.run_id = $1 AND v.kind = 'context' AND s.status = 'ok'
        GROUP BY v.item_id, v.scorer
    ), of_item AS (
        SELECT arg_min(is_first, scorer) AS is_first, arg_min(is_any, scorer) AS is_any FROM of_scorer GROUP BY item_id
    )
    SELECT count(*), count(*) FILTER (is_any AND NOT is_first), count(*) FILTER (NOT is_any) FROM of_item
"""
_VOTED = """
    SELECT confidence, positive, count(*) FROM latest_verdicts
    WHERE run_id = ? AND confidence IS NOT NULL AND positive IS NOT NULL
        AND NOT contains(array_to_string(warnings, ' '), 'voted')
    GROUP BY ALL ORDER BY ALL
"""


def advice_of(history: History, run: RunRow) -> list[str]:
    """Lines of advice on a run: a fact that is missing often, useful contexts that come late or not at all, a jury.

    Args:
        history: Where the run is.
        run: The run's row.
    """
    advice = [
        f"one fact is missing in {items} items: “{fact}” — is it in the index?"
        for fact, items in _rows(history, _MISSING, run.run_id, OFTEN)
    ]
    ((judged, late, none),) = _rows(history, _RANKED, run.run_id)
    if judged and late >= max(OFTEN, MUCH * judged):
        advice.append(
            f"in {late} of {judged} items the first useful context stands behind useless ones — "
            "look at the ranking (a reranker, the query's words)"
        )
    if judged and none >= max(OFTEN, MUCH * judged):
        advice.append(f"in {none} of {judged} items no context is useful — the index lacks it, or chunks are too small")
    return [*advice, *_agreement(history, run)]


def _agreement(history: History, run: RunRow) -> list[str]:
    """How far the members of a jury agree: Krippendorff's alpha over the verdicts that all of them voted on."""
    try:
        seats = len(json.loads(run.judge_params)["jury"])
    except (ValueError, KeyError, TypeError):
        return []
    units: list[list[bool]] = []
    for confidence, positive, count in _rows(history, _VOTED, run.run_id):
        agree = round(confidence * seats)
        units += [[positive] * agree + [not positive] * (seats - agree)] * count
    alpha = krippendorff_alpha(units)
    if alpha is None:
        return []
    return [f"the {seats} judges agree by Krippendorff's alpha {float(alpha):.2f} over {len(units)} verdicts"]


def _rows(history: History, sql: str, *params: Any) -> Sequence[tuple[Any, ...]]:
    return select(history.path, sql, list(params)).rows
