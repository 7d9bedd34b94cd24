"""How sure the mean of a run is: the bootstrap interval over its items."""

from __future__ import annotations

import json
from collections.abc import Sequence

from ragscore.history import History, select
from ragscore.stats import Interval, bca_interval

#: Enough for a picture; comparisons and gates resample more often.
RESAMPLES = 1_999


def mean_intervals(history: History, run_ids: Sequence[str]) -> dict[tuple[str, str], Interval | None]:
    """By run and scorer the 95 % interval of the mean of `exact`, within 0 and 1, over the scores that count.

    The question it answers is what the mean might have been over other questions of the same kind. Items that share a
    `cluster` in their metadata are drawn together. None where there are too few to tell.
    """
    rows = select(
        history.path,
        "SELECT s.run_id, s.scorer, s.exact, json_extract_string(i.metadata, '$.cluster') AS cluster, count(*)"
        " FROM latest_scores AS s LEFT JOIN latest_items AS i USING (run_id, item_id)"
        " WHERE s.counted AND s.exact IS NOT NULL"
        """ AND s.run_id IN (SELECT unnest(from_json(?, '["VARCHAR"]')))"""
        " GROUP BY ALL ORDER BY ALL",
        [json.dumps(list(run_ids))],
        lock_timeout_s=history.lock_timeout_s,
    ).rows
    values: dict[tuple[str, str], list[float]] = {}
    clusters: dict[tuple[str, str], list[object]] = {}
    for run_id, scorer, exact, cluster, count in rows:
        own = values.setdefault((run_id, scorer), [])
        of = clusters.setdefault((run_id, scorer), [])
        for _ in range(count):
            of.append(("item", len(own)) if cluster is None else ("cluster", cluster))
            own.append(float(exact))
    return {key: bca_interval(own, clusters=clusters[key], resamples=RESAMPLES) for key, own in values.items()}
