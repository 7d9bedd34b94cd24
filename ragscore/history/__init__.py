"""The history: the DuckDB file that remembers runs, items, contexts, scores and verdicts (DESIGN §6)."""

from ragscore.history.audit import Audit
from ragscore.history.connection import one_state
from ragscore.history.query import Selection, save, select
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
from ragscore.history.store import History, Ingested

__all__ = [
    "Audit",
    "History",
    "Ingested",
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
    "one_state",
    "save",
    "select",
    "summaries",
    "worst_items",
]
