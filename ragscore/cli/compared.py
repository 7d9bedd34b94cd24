"""How runs and limits are named on the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ragscore.errors import UsageError
from ragscore.gate import LAST_PASSING, find_baseline
from ragscore.history import History, RunRow, select


def run_named(
    ref: str, history: History, *, suite: str | None = None, than: RunRow | None = None
) -> tuple[RunRow, History]:
    """The run that `ref` names, and where it is.

    Args:
        ref: A run's id, a beginning of it, `last`, a version, or, with `than`, `baseline`.
        history: Where it is looked for; the baseline may be in another one.
        suite: Versions are those of this suite.
        than: The run that it is compared with.

    Raises:
        UsageError: there is none; the message names near ones.
    """
    if ref == "baseline" and than is not None:
        declared = than.suite_doc.get("gate") if isinstance(than.suite_doc, dict) else None
        named = str((declared or {}).get("baseline", LAST_PASSING)) if isinstance(declared, dict) else LAST_PASSING
        found = find_baseline(
            named,
            history,
            suite=than.suite,
            retriever=than.retriever,
            base_dir=Path(than.base_dir) if than.base_dir else None,
            than=than,
        )
        if found is None:
            raise UsageError(
                f"there is no baseline yet ({named})", mend="give the suite a gate and run it, or name a run or version"
            )
        return found.run, found.history
    try:
        return history.run(ref), history
    except UsageError as error:
        rows = select(
            history.path,
            "SELECT run_id FROM runs WHERE version = $1 AND ($2::VARCHAR IS NULL OR suite = $2) AND status = 'complete'"
            " AND run_id IS DISTINCT FROM $3 ORDER BY started_at DESC, run_id DESC LIMIT 1",
            [ref, suite, than.run_id if than is not None else None],
        ).rows
        if not rows:
            raise UsageError(f"no run and no version {ref!r}", mend=error.mend) from None
        return history.run(str(rows[0][0])), history


def limits_of(given: Sequence[str], *, option: str = "--max-drop") -> dict[str, float]:
    """`["context_recall=0.03"]` as a mapping.

    Raises:
        UsageError: one is not of that form.
    """
    limits = {}
    for each in given:
        name, _, number = each.partition("=")
        try:
            limits[name.strip()] = float(number)
        except ValueError:
            raise UsageError(f"{each!r} is not SCORER=NUMBER", where=option, mend="write context_recall=0.8") from None
    return limits


def with_floors(gate: Any, floors: Mapping[str, float]) -> Any:
    """The `gate` of a suite's document with `min` set by scorer; what is no mapping is left for the suite's check."""
    if gate is not None and not isinstance(gate, Mapping):
        return gate
    parts = dict(gate or {})
    for name, least in floors.items():
        part = parts.get(name)
        parts[name] = {**(part if isinstance(part, Mapping) else {}), "min": least}
    return parts
