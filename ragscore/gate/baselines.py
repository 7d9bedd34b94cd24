"""What a run is measured against: the latest run that did not fail, a version, a run, or another history's."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ragscore.errors import UsageError
from ragscore.history import History, RunRow, select

if TYPE_CHECKING:  # comparing runs that are there needs no suite
    from ragscore.suite import Suite

#: What finds the latest run that was evaluated and did not fail.
LAST_PASSING = "last-passing"


@dataclass(frozen=True, slots=True)
class Baseline:
    """The run that another one is measured against.

    Attributes:
        run: Its row.
        history: Where it is.
        said: How it is named to the user.
    """

    run: RunRow
    history: History
    said: str


def find_baseline(
    ref: str,
    history: History,
    *,
    suite: str,
    retriever: str | None,
    base_dir: Path | None = None,
    than: RunRow | None = None,
) -> Baseline | None:
    """The run that `ref` names.

    `last-passing` is the latest complete run of the suite and retriever whose gate said pass or inconclusive. Not pass
    alone: where runs differ by chance, passing means having been lucky, so that such a baseline would creep upwards
    and an unchanged system would fail every third night (`benchmarks/gate.py`).

    Args:
        ref: `last-passing`, `version:X`, `run:ID` or `file:HISTORY.duckdb`.
        history: Where runs are looked for, but for `file:`.
        suite: Only runs of it, but for `run:`.
        retriever: Only runs of it, but for `run:`.
        base_dir: What the path of a `file:` is relative to.
        than: The run that is measured: it is not its own baseline, nor is a later one.

    Returns:
        None when there is no such run (yet); never for `run:`.

    Raises:
        UsageError: there is no such run id.
    """
    kind, _, name = ref.partition(":")
    name = name.strip()
    if kind == "run":
        row = history.run(name)
        return Baseline(row, history, f"run {row.run_id} ({row.version})")
    if kind == "file":
        history = History((base_dir or Path()) / Path(name).expanduser(), lock_timeout_s=history.lock_timeout_s)
    if not history.exists():
        return None
    conditions = ["suite = ?", "retriever IS NOT DISTINCT FROM ?", "status = 'complete'"]
    params: list[object] = [suite, retriever]
    if kind == "version":
        conditions.append("version = ?")
        params.append(name)
    elif kind == "file":
        conditions.append("gate_verdict IS DISTINCT FROM 'fail'")
    else:
        conditions.append("gate_verdict IN ('pass', 'inconclusive')")
    if than is not None:
        conditions += ["run_id <> ?", "started_at <= ?"]
        params += [than.run_id, than.started_at]
    found = select(
        history.path,
        f"SELECT run_id FROM runs WHERE {' AND '.join(conditions)} ORDER BY started_at DESC, run_id DESC LIMIT 1",
        params,
    ).rows
    if not found:
        return None
    row = history.run(str(found[0][0]))
    where = f" in {name}" if kind == "file" else ""
    return Baseline(row, history, f"{row.version} (run {row.run_id}{where})")


def require_baselines(history: History, suite: Suite, *, base_dir: Path | None = None) -> None:
    """Make sure, before a run begins, that the baselines that its gate pins are there.

    Raises:
        UsageError: one is not; but a version that is about to be run for the first time may be missing, and so may
            what another history (`file:`) holds, which begins empty in CI.
    """
    target = suite.target
    for ref in dict.fromkeys((suite.gate.baseline, suite.gate.anchor)):
        if (
            ref is None
            or ref == LAST_PASSING
            or ref.startswith("file:")
            or ref.removeprefix("version:").strip() == target.version
        ):
            continue
        mend = "`ragscore runs` lists the runs; run that version first, or take last-passing"
        if ref.startswith("run:") and not history.exists():
            raise UsageError(f"the gate's {ref} is not there: there is no history", where=str(history.path), mend=mend)
        found = find_baseline(ref, history, suite=suite.name, retriever=target.retriever, base_dir=base_dir)
        if found is None:
            raise UsageError(f"the gate's {ref} is not there", where=str(history.path), mend=mend)
