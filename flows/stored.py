"""What a run retrieved, as a dataset of its own, so that it can be judged again without asking the target."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ragscore.errors import UsageError
from ragscore.history import History, RunRow, select
from ragscore.suite_file import SuiteFile, check_suite

_ITEMS = """
    SELECT item_id, input, reference, reference_context_ids, claims, answerable, metadata, output, error
    FROM latest_items WHERE run_id = ? ORDER BY position, item_id
"""
_SETS = "SELECT DISTINCT context_set FROM latest_context_sets WHERE run_id = ? AND error IS NULL ORDER BY 1"
_CONTEXTS = """
    SELECT item_id, context_id, text, score FROM latest_contexts WHERE run_id = ? AND context_set = ?
    ORDER BY item_id, rank
"""
_RESOLVED = "SELECT DISTINCT item_id FROM latest_context_sets WHERE run_id = ? AND context_set = ? AND error IS NULL"
_CLAIMS = """
    SELECT s.item_id, c.text FROM (
        SELECT DISTINCT ON (item_id) item_id, claim_set FROM latest_scores
        WHERE run_id = ? AND claim_set IS NOT NULL ORDER BY item_id, scorer
    ) AS s JOIN claims AS c USING (claim_set) ORDER BY s.item_id, c.number
"""


def stored_suite(
    history: History,
    run: RunRow,
    folder: Path,
    *,
    name: str,
    context_set: str | None = None,
    most: int | None = None,
    **changes: Any,
) -> SuiteFile:
    """The suite of a run with what it retrieved as its dataset, written to `folder` so that a resume finds it.

    The claims are those that the run was judged by, so that scores have the same denominators. The gate is left out:
    it is about the target.

    Args:
        history: Where the run is.
        run: The run.
        folder: Where the dataset goes.
        name: The new suite's name; not the run's, whose trend it would disturb.
        context_set: Which contexts, where scorers of the run had different ones.
        most: Only the first so many items.
        changes: Top-level keys of the suite, and keys of a part (`judge__fresh`).

    Raises:
        UsageError: the run keeps no text, has no contexts, or has several sets of them.
    """
    if run.store_text != "full":
        raise UsageError(
            f"run {run.run_id} keeps no text (store_text: {run.store_text}), so that nothing can be judged"
        )
    sets = [str(each) for (each,) in select(history.path, _SETS, [run.run_id]).rows]
    chosen = context_set or (sets[0] if len(sets) == 1 else None)
    if chosen is None or chosen not in sets:
        raise UsageError(
            f"run {run.run_id} has {len(sets)} sets of contexts: {', '.join(sets) or 'none'}",
            mend="name one of them as context_set",
        )
    rows = _rows(history, run, chosen)[:most]
    folder.mkdir(parents=True, exist_ok=True)
    path = (folder / f"{run.run_id}{f'-{most}' if most else ''}.jsonl").resolve()
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    kept = {
        key: value for key, value in dict(run.suite_doc).items() if key not in ("gate", "contexts", "frozen_claims")
    }
    document = {
        **kept,
        "name": name,
        "dataset": str(path),
        "target": {"none": True, "retriever": run.retriever or "retriever", "version": run.version or "dev"},
        "scorers": [_without_contexts(each) for each in kept.get("scorers", ())] or None,
    }
    document = {key: value for key, value in document.items() if value is not None}
    file = check_suite(document, base_dir=folder)
    return file.changed(**changes) if changes else file


def _rows(history: History, run: RunRow, context_set: str) -> Sequence[dict[str, Any]]:
    contexts: dict[str, list[dict[str, Any]]] = {
        str(item): [] for (item,) in select(history.path, _RESOLVED, [run.run_id, context_set]).rows
    }
    for item, context_id, text, score in select(history.path, _CONTEXTS, [run.run_id, context_set]).rows:
        known = {"id": context_id, "text": text, "score": score}
        contexts[item].append({key: value for key, value in known.items() if value is not None})
    claims: dict[str, list[str]] = {}
    for item, text in select(history.path, _CLAIMS, [run.run_id]).rows:
        claims.setdefault(item, []).append(text)
    rows = []
    for item, text, reference, ids, own_claims, answerable, metadata, output, error in select(
        history.path, _ITEMS, [run.run_id]
    ).rows:
        row = {
            "id": item,
            "input": text,
            "reference": reference,
            "reference_context_ids": ids,
            "claims": own_claims or claims.get(item),
            "contexts": None if error else contexts.get(item),
            "output": output,
            "metadata": json.loads(metadata) if isinstance(metadata, str) else metadata,
        }
        row = {key: value for key, value in row.items() if value is not None}
        rows.append(row if answerable else {**row, "answerable": False})
    return rows


def _without_contexts(scorer: Any) -> Any:
    """A scorer as written, but that it takes the contexts of the row."""
    if not isinstance(scorer, dict):
        return scorer
    return {
        key: {k: v for k, v in value.items() if k != "contexts"} if isinstance(value, dict) else value
        for key, value in scorer.items()
        if key != "contexts"
    }
