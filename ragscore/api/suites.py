"""`evaluate`: a suite from Python, into the history, as `ragscore run` does it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragscore.api.blocking import waited
from ragscore.api.data import dataset_of
from ragscore.assembly import assemble
from ragscore.ending import carried_to_its_end
from ragscore.engine import evaluate_locally
from ragscore.errors import UsageError
from ragscore.gate import kept_exit_code
from ragscore.history import History
from ragscore.home import history_path
from ragscore.judges import Judge
from ragscore.report.summary import RunSummary, summary_of
from ragscore.runs import begin, new_run_id
from ragscore.suite import ScorerPart, TargetPart
from ragscore.suite_file import SuiteFile, check_suite, read_suite
from ragscore.targets import Target
from ragscore.targets.making import cut, python_target
from ragscore.targets.pacing import Pace

#: What stays of a suite's `target:` when another one is called: all but the way to call it.
KEPT = ("retriever", "version", "top_k", "concurrency", "rps", "timeout_s")


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A run in the history: its id, its summary, and how it ended.

    Attributes:
        run_id: What `ragscore show` takes.
        summary: Figures, faults, advice, worst items.
        history: The file in which every verdict is kept.
    """

    run_id: str
    summary: RunSummary
    history: Path

    @property
    def scores(self) -> dict[str, float | None]:
        """The mean per scorer in its scale; None where no item counts."""
        return {each.scorer: each.mean for each in self.summary.scorers}

    @property
    def coverage(self) -> dict[str, float | None]:
        """Per scorer the share of eligible items with a score."""
        return {each.scorer: each.coverage for each in self.summary.scorers}

    @property
    def exit_code(self) -> int:
        """As of `ragscore run`: 0 pass, 1 gate failed, 3 could not evaluate, 4 inconclusive."""
        return 3 if self.summary.faults else kept_exit_code(self.summary.run.gate)

    @property
    def passed(self) -> bool:
        """Whether `ragscore run` would have ended with 0."""
        return self.exit_code == 0

    @property
    def faults(self) -> list[str]:
        """Why it did not pass, one line each; empty where it did."""
        said = list(self.summary.faults)
        gate = self.summary.run.gate
        if self.exit_code and isinstance(gate, Mapping):
            for check in gate.get("checks", ()):
                if check.get("verdict") != "pass":
                    said.append(f"{check.get('scorer') or check.get('what')}: {check['said']}")
        return said

    def assert_passes(self) -> None:
        """Fail a test with what is wrong.

        Raises:
            AssertionError: the gate failed, is inconclusive with `on_inconclusive: exit`, or the run could not be
                evaluated.
        """
        if not self.passed:
            why = "\n".join(self.faults) or f"exit code {self.exit_code}"
            raise AssertionError(f"{self.summary.run.suite}: {why}\nragscore show {self.run_id}")


async def evaluate(
    suite: Any,
    *,
    target: Any = None,
    data: Any = None,
    judge: Judge | str | Mapping[str, Any] | None = None,
    scorers: Sequence[str | Mapping[str, Any]] | None = None,
    name: str | None = None,
    retriever: str | None = None,
    version: str | None = None,
    history: Path | str | None = None,
    base_dir: Path | str | None = None,
    trigger: str = "api",
) -> Evaluation:
    """Evaluate a suite and keep every verdict in the history.

    Args:
        suite: A path of a suite file, a suite as a mapping, or data (rows, a frame) to evaluate without a suite file.
        target: Called instead of the suite's target: a function of the question, or an object with invoke, query,
            retrieve or run. What the suite says besides (`top_k`, `rps`, `version`, …) stands. Such a run cannot be
            resumed from the command line.
        data: Takes the place of the suite's dataset; see `ragscore.api.data.dataset_of`.
        judge: Takes the place of the suite's: a judge, a model's name, or the keys of `judge:`.
        scorers: Take the place of the suite's, written as there.
        name, retriever, version: Take the place of the suite's `name`, `target.retriever` and `target.version`.
        history: The history file; as for the command line when left out.
        base_dir: Where relative paths of a mapping begin; the working directory when left out.
        trigger: What started the run, for the history.

    Returns:
        The run, as it stands in the history: means in each scorer's scale, coverage in 0..1, and how it ended.

    Raises:
        ConfigError: the suite, or what it names, is wrong; nothing was asked.
        EvaluationError, HistoryError: the run could not go on; what is stored stays.
    """
    if data is None and not isinstance(suite, (str, Path, SuiteFile)) and not _is_suite(suite):
        suite, data = {}, suite
    file = _file(suite, base_dir)
    document = dict(file.document) if file is not None else dict(suite)
    dataset = dataset_of(data) if data is not None else None
    if dataset is not None:
        document["dataset"] = dataset.name
    document.setdefault("name", "evaluation")
    if target is not None:
        called = f"{getattr(target, '__module__', 'object')}:{getattr(target, '__qualname__', type(target).__name__)}"
        declared = document.get("target")
        kept = declared if isinstance(declared, Mapping) else {}
        named = {key: kept[key] for key in KEPT if key in kept}
        document["target"] = {**named, "python": "".join(c for c in called if c.isalnum() or c in "._:")}
    elif dataset is not None:
        document.setdefault("target", {"none": True})
    changes = {"name": name, "scorers": None if scorers is None else _written(scorers)}
    document.update({key: value for key, value in changes.items() if value is not None})
    for key, value in (("retriever", retriever), ("version", version)):
        if value is not None:
            declared = document.get("target")
            whole = {"none": True} if declared == "none" else dict(declared or {})
            document["target"] = {**whole, key: value}
    if judge is not None and not isinstance(judge, Judge):
        document["judge"] = judge if isinstance(judge, str) else dict(judge)
    checked = check_suite(
        document,
        path=file.path if file is not None else None,
        base_dir=file.base_dir if file is not None else Path(base_dir or "."),
        places=file.places if file is not None else None,
    )
    run_id = new_run_id()
    parts = assemble(
        checked,
        judge=judge if isinstance(judge, Judge) else None,
        run_id=run_id,
        dataset=dataset,
        target=_target(target, checked.suite.target) if target is not None else None,
    )
    store = History(history_path(Path(history) if history is not None else None))
    try:
        await parts.judging.prepare()
        run = begin(parts, store, run_id=run_id, trigger=trigger)
        row = await carried_to_its_end(run, evaluate_locally)
    finally:
        await parts.judging.aclose()
    return Evaluation(run_id, summary_of(store, row), store.path)


def evaluate_sync(suite: Any, **named: Any) -> Evaluation:
    """`evaluate`, for scripts.

    Args:
        suite: As for `evaluate`.
        named: As for `evaluate`.

    Returns:
        As `evaluate`.

    Raises:
        UsageError: an event loop is running (Jupyter, async code): await `evaluate` there.
    """
    return waited(lambda: evaluate(suite, **named), name="evaluate_sync", instead="evaluate")


def _written(scorers: Any) -> list[Any]:
    if isinstance(scorers, (str, Mapping)) or not isinstance(scorers, Iterable):
        scorers = [scorers]
    given = list(scorers)
    for number, each in enumerate(given):
        if not isinstance(each, (str, Mapping, ScorerPart)):
            raise UsageError(
                f"is a {type(each).__name__}; evaluate takes scorers as a suite writes them, so that the history can "
                "tell how a run was scored",
                where=f"scorers[{number}]",
                mend="write 'context_recall', {'context_recall': {'scale': 10}} or {'python': 'my_module:my_scorer'}, "
                "or give the object to run_evals",
            )
    return given


def _is_suite(suite: Any) -> bool:
    return isinstance(suite, Mapping)


def _file(suite: Any, base_dir: Path | str | None) -> SuiteFile | None:
    if isinstance(suite, SuiteFile):
        return suite
    if isinstance(suite, (str, Path)):
        if base_dir is not None:
            raise UsageError("base_dir is for suites given as a mapping", mend="leave it out: a file has its folder")
        return read_suite(Path(suite))
    return None


def _target(target: Any, part: TargetPart) -> Target:
    name = getattr(target, "__name__", type(target).__name__)
    pace = Pace(part.rps)
    called = python_target(target, name=name, where="target", timeout_s=part.timeout_s, need_contexts=False, pace=pace)
    return cut(called, part.top_k)
