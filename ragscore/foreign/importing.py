"""Results of another tool as a run in the history, marked as foreign.

A run of this kind has the judge `foreign:TOOL`, scorers of the kind `foreign` and the trigger `import`. Its means stand
in the views beside ours; since the judge is another one, item by item it is compared with nothing unless forced.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from ragscore.datasets.dataset import fingerprint, hash_of
from ragscore.datasets.faults import DatasetErrors, RowFault
from ragscore.datasets.rows import item_of
from ragscore.foreign.results import ForeignItem, ForeignResults, ForeignScore, read_results
from ragscore.history import History, RunRow
from ragscore.items import Item, Record, Response, Score, Status, digest
from ragscore.runs import new_run_id
from ragscore.scorers import rounded


@dataclass(frozen=True, slots=True)
class Imported:
    """What was taken in. `is_new` is False where the same results were there already."""

    run_id: str
    results: ForeignResults
    is_new: bool


def import_results(
    path: Path,
    history: History,
    *,
    suite: str,
    retriever: str = "retriever",
    version: str = "imported",
    tool: str | None = None,
    at: datetime | None = None,
) -> Imported:
    """Take a file of results into the history. Doing it twice changes nothing.

    Args:
        path: The file; see `ragscore.foreign.results` for the shapes.
        history: Where it goes.
        suite: The suite that it continues: trends are by suite.
        retriever: What was evaluated.
        version: Which version of it.
        tool: Which tool wrote the file; found by the shape when left out.
        at: When the results were made; the file's time when left out.

    Raises:
        DatasetError: the file is of no known shape, or rows have no question.
        HistoryError: the history cannot be written.
    """
    results = read_results(path, tool=tool)
    made = at or datetime.fromtimestamp(path.stat().st_mtime, UTC)
    items = _items(results.items, str(path))
    content = hash_of(fingerprint(item) for item in items)
    told = [[name, str(score.exact)] for each in results.items for name, score in sorted(each.scores.items())]
    run_id = new_run_id(at=made, tail=digest(suite, retriever, version, content, told)[:6])
    scorers = results.scorers
    row = RunRow(
        run_id=run_id,
        suite=suite,
        dataset=path.name,
        dataset_hash=content,
        items=len(items),
        judge=f"foreign:{results.tool}",
        expected_scores=len(items) * len(scorers),
        scorers=tuple({"name": name, "kind": "foreign", "scale": float(scale)} for name, scale in scorers.items()),
        started_at=made,
        retriever=retriever,
        version=version,
        target=f"foreign:{results.tool}",
        min_coverage=0.0,
        trigger="import",
        engine="import",
    )
    if not history.start_run(row):
        return Imported(run_id, results, is_new=False)
    records = [
        Record(
            item,
            position=position,
            response=Response(output=item.output, contexts=item.contexts),
            scores=tuple(_score(name, each.scores.get(name), results.tool) for name in scorers),
        )
        for position, (item, each) in enumerate(zip(items, results.items, strict=True))
    ]
    history.store_responses(run_id, records)
    history.store_scores(run_id, records)
    history.finish_run(run_id, status="complete")
    return Imported(run_id, results, is_new=True)


def _items(rows: Sequence[ForeignItem], where: str) -> list[Item]:
    items: list[Item] = []
    faults: list[str] = []
    seen: Counter[str] = Counter()
    for number, each in enumerate(rows, start=1):
        try:
            item = item_of(each.row)
        except RowFault as fault:
            faults.append(f"{where}: item {number}: {fault.field}: {fault.what} — {fault.mend}")
            continue
        seen[item.id] += 1
        items.append(item if seen[item.id] == 1 else replace(item, id=f"{item.id}-{seen[item.id]}"))
    if faults:
        raise DatasetErrors(faults)
    return items


def _score(name: str, given: ForeignScore | None, tool: str) -> Score:
    exact = given.exact if given is not None else None
    missing = given.reason if given is not None and given.reason else f"{tool} gave no score"
    used = given.scale if given is not None else 1
    return Score(
        scorer=name,
        kind="foreign",
        status=Status.OK if exact is not None else Status.SCORER_ERROR,
        exact=exact,
        value=None if exact is None or given is None else rounded(exact, given.scale),
        scale=float(used),
        reason=given.reason if given is not None and exact is not None else missing,
        counted=exact is not None,
        error=None if exact is not None else missing,
        judge=f"foreign:{tool}",
        scorer_version=f"foreign:{tool}",
    )
