"""The history: the DuckDB file that remembers runs, items, contexts, scores and verdicts (DESIGN §6)."""

from ragscore.history.query import Selection, select
from ragscore.history.reading import (
    ItemDetail,
    ItemFinding,
    ItemScore,
    ScorerSummary,
    findings,
    item_detail,
    item_scores,
    summaries,
    worst_items,
)
from ragscore.history.rows import item_hash
from ragscore.history.runs import RunRow
from ragscore.history.store import Audit, History

__all__ = [
    "Audit",
    "History",
    "ItemDetail",
    "ItemFinding",
    "ItemScore",
    "RunRow",
    "ScorerSummary",
    "Selection",
    "findings",
    "item_detail",
    "item_hash",
    "item_scores",
    "select",
    "summaries",
    "worst_items",
]
