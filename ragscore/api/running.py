"""`run_evals`: data through target, contexts, judges and scorers in this process, kept nowhere."""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from ragscore import pipeline
from ragscore.api.blocking import waited
from ragscore.api.data import dataset_of
from ragscore.api.judging import Judges, Model
from ragscore.api.results import EvalResult, ItemResult, Result, Threshold, exact_mean
from ragscore.api.scoring import RunnableScorer
from ragscore.assembly import Parts
from ragscore.contexts import IF_ANY
from ragscore.errors import ConfigError, RagscoreError, TargetDown
from ragscore.history import History
from ragscore.items import ContextSet, Item, Record, Response, Score, Status
from ragscore.judges import ClaimSource, Judge
from ragscore.judges.offline import OfflineJudge
from ragscore.judges.setup import JudgeSetup, setup_of
from ragscore.runs import Run
from ragscore.scorer_kinds import LESS_IS_BETTER
from ragscore.scorers import Judged, Sample, Scorer
from ragscore.scorers.arithmetic import as_fraction
from ragscore.suite_file import check_suite
from ragscore.targets import PythonTarget, Target, close
from ragscore.targets.making import python_target

Thresholds = Mapping[str, float | str]


async def run_evals(
    *,
    data: Any,
    scorers: Sequence[Any],
    target: Any = None,
    model: Model = "offline",
    on_item_complete: Callable[[ItemResult], Any] | None = None,
    concurrency: int = 8,
    thresholds: Thresholds | None = None,
    min_coverage: float = 0.95,
    timeout_s: float = 60.0,
    progress: bool | None = None,
) -> EvalResult:
    """Ask the target, judge and score every item. Nothing is kept; `evaluate` keeps a history.

    Args:
        data: Rows, a frame, or a path; see `ragscore.api.data.dataset_of`.
        scorers: Scorers of `ragscore`, functions decorated with `@scorer`, or objects with `score`.
        target: The system under test: a function of the question, sync or async, or an object with invoke, query,
            retrieve or run. Left out, the data holds `output` and `contexts`.
        model: Who judges for scorers of your own that ask a judge, as `model` of others; those of `ragscore` have their
            own.
        on_item_complete: Called with each `ItemResult` as it is ready, in the order of completion; may be async. What
            it raises is raised when all items are done.
        concurrency: Items in flight at once.
        thresholds: The mean that a scorer must reach, by name, in its scale (must not pass, where less is better).
        min_coverage: The share of eligible items that must have a score for `passed`.
        timeout_s: Seconds that one call of the target may take.
        progress: Show a line on stderr; by default in terminals and notebooks.

    Returns:
        One result per item, in the order of the data, and the means.

    Raises:
        ConfigError: data, scorers or thresholds are wrong; nothing was asked.
        JudgeRefused, JudgeUnavailable: the judge cannot be asked. What befalls one item is a status of that item.
    """
    if concurrency < 1:
        raise ConfigError(f"concurrency is {concurrency}", mend="give at least 1")
    dataset = dataset_of(data)
    if isinstance(scorers, str) or not isinstance(scorers, Iterable):
        scorers = [scorers]
    runnable = [_runnable(each, model) for each in scorers]
    asked = _checked(runnable, thresholds or {})
    used = _target(target, runnable, timeout_s)
    path = Path(data) if isinstance(data, (str, Path)) else None
    async with Judges(path) as judges:
        bound = tuple([_Bound(each, await judges.of(each.model)) for each in runnable])
        parts = _parts(dataset, used, runnable, bound, concurrency)
        run = Run("run_evals", parts, cast(History, _Unkept()))
        items = await _all(run, list(dataset.items), concurrency, on_item_complete, _Line(len(dataset.items), progress))
    limits = [_threshold(each, items, asked[each.name]) for each in runnable if each.name in asked]
    return EvalResult(items, {each.name: float(each.scale) for each in runnable}, limits, min_coverage)


def run_evals_sync(**named: Any) -> EvalResult:
    """`run_evals`, for scripts.

    Args:
        named: As for `run_evals`.

    Returns:
        As `run_evals`.

    Raises:
        UsageError: an event loop is running (Jupyter, async code): await `run_evals` there.
    """
    return waited(lambda: run_evals(**named), name="run_evals_sync", instead="run_evals")


class _Bound:
    """A scorer whose questions go to its own judge."""

    def __init__(self, scorer: RunnableScorer, setup: JudgeSetup) -> None:
        self._scorer = scorer
        self._setup = setup

    @property
    def name(self) -> str:
        return self._scorer.name

    @property
    def kind(self) -> str:
        return self._scorer.kind

    @property
    def version(self) -> str:
        return self._scorer.version

    @property
    def scale(self) -> Any:
        return self._scorer.scale

    async def judge(self, sample: Sample, *, judge: Judge, claims: ClaimSource) -> Judged:
        return await self._scorer.judge(sample, judge=self._setup.judge, claims=self._setup.claims)

    def score(self, sample: Sample, judged: Judged) -> Score:
        return self._scorer.score(sample, judged)


class _Unkept:
    """In the place of a history: holds nothing and keeps nothing, so that the stages do all of their work."""

    def responses(self, run_id: str, ids: Sequence[str]) -> dict[str, Any]:
        return {}

    def context_sets(self, run_id: str, ids: Sequence[str]) -> dict[str, dict[str, ContextSet]]:
        return {}

    def scored(self, run_id: str, ids: Sequence[str]) -> dict[str, dict[str, tuple[Status, int]]]:
        return {}

    def store_responses(self, run_id: str, records: Sequence[Record]) -> None: ...
    def store_contexts(self, run_id: str, records: Sequence[Record]) -> None: ...
    def store_scores(self, run_id: str, records: Sequence[Record]) -> None: ...


class GivenOutputs:
    """The target where nothing is called: the item's own output and contexts; extractors see the output as given."""

    async def invoke(self, item: Item) -> Response:
        """The item's own output and contexts; never fails."""
        raw = item.metadata.get("output_messages", item.output)
        return Response(output=item.output, contexts=item.contexts, raw=raw)


class _Line:
    """The progress line."""

    def __init__(self, total: int, wanted: bool | None) -> None:
        self._total = total
        self._done = 0
        self._shown = (sys.stderr.isatty() or "ipykernel" in sys.modules) if wanted is None else wanted

    def step(self) -> None:
        self._done += 1
        if self._shown:
            end = "\n" if self._done == self._total else ""
            sys.stderr.write(f"\r{self._done}/{self._total} items{end}")
            sys.stderr.flush()


async def _all(
    run: Run,
    items: Sequence[Item],
    concurrency: int,
    on_item_complete: Callable[[ItemResult], Any] | None,
    line: _Line,
) -> list[ItemResult]:
    slots = asyncio.Semaphore(concurrency)
    raised: list[BaseException] = []

    async def through(position: int, item: Item) -> ItemResult:
        async with slots:
            result = await _one(run, Record(item, position=position))
        line.step()
        if on_item_complete is not None:
            try:
                told = on_item_complete(result)
                if inspect.isawaitable(told):
                    await told
            except Exception as error:  # noqa: BLE001 - the user's function; told when all items are done
                raised.append(error)
        return result

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(through(position, item)) for position, item in enumerate(items)]
    except BaseExceptionGroup as errors:
        found: BaseException = errors
        while isinstance(found, BaseExceptionGroup):
            found = found.exceptions[0]
        if isinstance(found, RagscoreError):
            raise found from None
        raise
    finally:
        await close(run.parts.target)
    if raised:
        raise raised[0]
    return [task.result() for task in tasks]


async def _one(run: Run, record: Record) -> ItemResult:
    """One item through the stages of the chain, the same that a suite's run goes through."""
    batch: Sequence[Record] = [record]
    try:
        batch = await pipeline.invoke_target(run, batch)
    except TargetDown:
        batch = await pipeline.invoke_target(run, batch, last_try=True)
    for stage in (pipeline.extract_contexts, pipeline.judge, pipeline.score):
        batch = await stage(run, batch)
    (done,) = batch
    scores = {each.scorer: Result.of(each) for each in done.scores or ()}
    contexts = {name: each.contexts for name, each in (done.context_sets or {}).items()}
    return ItemResult(done.item, done.response or Response(error="no response"), scores, contexts)


def _runnable(scorer: Any, model: Model) -> RunnableScorer:
    if isinstance(scorer, RunnableScorer):
        return scorer
    from ragscore.scorers.custom import CustomScorer

    asks = hasattr(scorer.inner if isinstance(scorer, CustomScorer) else scorer, "judge")
    who = model if asks else "offline"  # a judge that nobody asks is not made ready
    if hasattr(scorer, "score") and hasattr(scorer, "judge") and hasattr(scorer, "name") and hasattr(scorer, "scale"):
        return RunnableScorer(cast(Scorer, scorer), model=who, contexts=IF_ANY)
    if hasattr(scorer, "score") or (callable(scorer) and not isinstance(scorer, type)):
        name = getattr(scorer, "name", None) or getattr(scorer, "__name__", type(scorer).__name__)
        scale = as_fraction(getattr(scorer, "scale", 1))
        version = str(getattr(scorer, "version", "1"))
        return RunnableScorer(CustomScorer(scorer, str(name), scale, version), model=who, contexts=IF_ANY)
    raise ConfigError(
        f"{scorer!r} is no scorer", where="scorers", mend="make one, e.g. ContextRecall(context_extractor='response')"
    )


def _checked(scorers: Sequence[RunnableScorer], thresholds: Thresholds) -> Thresholds:
    if not scorers:
        raise ConfigError("there are no scorers", where="scorers", mend="give at least one")
    names = [each.name for each in scorers]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ConfigError(f"two scorers are named {twice!r}", where="scorers", mend="give one another name=…")
    for name, limit in thresholds.items():
        scorer = next((each for each in scorers if each.name == name), None)
        if scorer is None:
            raise ConfigError(f"no scorer is named {name!r}", where="thresholds", mend=f"here are: {', '.join(names)}")
        if not 0 <= as_fraction(limit) <= scorer.scale:
            what = f"{name}: {limit} is outside of its scale"
            raise ConfigError(what, where="thresholds", mend=f"write a number from 0 to {float(scorer.scale):g}")
    return thresholds


def _threshold(scorer: RunnableScorer, items: Sequence[ItemResult], limit: float | str) -> Threshold:
    exact = exact_mean(items, scorer.name)
    at_most = scorer.kind in LESS_IS_BETTER
    bound = as_fraction(limit) / scorer.scale
    met = exact is not None and (exact <= bound if at_most else exact >= bound)
    return Threshold(
        scorer.name, float(bound * scorer.scale), None if exact is None else float(exact * scorer.scale), met, at_most
    )


def _target(target: Any, scorers: Iterable[RunnableScorer], timeout_s: float) -> Target:
    if target is None:
        return GivenOutputs()
    if callable(getattr(target, "invoke", None)) and isinstance(target, (PythonTarget, GivenOutputs)):
        return cast(Target, target)
    name = getattr(target, "__name__", type(target).__name__)
    needed = any("response" in each.contexts.sources for each in scorers)
    return python_target(target, name=name, where="target", timeout_s=timeout_s, need_contexts=needed)


def _parts(
    dataset: Any, target: Target, scorers: Sequence[RunnableScorer], bound: tuple[Scorer, ...], concurrency: int
) -> Parts:
    document = {
        "name": "run_evals",
        "dataset": dataset.name,
        "target": {"none": True, "concurrency": concurrency},
    }
    return Parts(
        file=check_suite(document),
        dataset=dataset,
        target=target,
        resolvers={each.name: each.contexts for each in scorers},
        judging=setup_of(OfflineJudge()),
        scorers=bound,
    )
