"""From a checked suite to the parts that carry it out. All that can be wrong is found here, before anything runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from ragscore.contexts import Resolver, resolver_for
from ragscore.datasets import Dataset, read_jsonl
from ragscore.errors import ConfigError
from ragscore.judges import ClaimSource, Judge
from ragscore.judges.setup import JudgeSetup, judge_setup, require_frozen, setup_of
from ragscore.scorers import ContextPrecision, ContextRecall, Scorer
from ragscore.scorers.arithmetic import as_fraction
from ragscore.suite import ScorerPart, Suite
from ragscore.suite_faults import SuiteErrors, together, without
from ragscore.suite_file import SuiteFile, check_suite, read_suites
from ragscore.suite_yaml import read_document
from ragscore.targets import PythonTarget, Target
from ragscore.targets.python import load_callable

T = TypeVar("T")
#: How often faults are taken out of a suite before the rest of it is given up.
HEALINGS = 4


@dataclass(frozen=True)
class Parts:
    """Everything that one run of a suite needs. `resolvers` are by scorer name."""

    file: SuiteFile
    dataset: Dataset
    target: Target
    resolvers: Mapping[str, Resolver]
    judging: JudgeSetup
    scorers: tuple[Scorer, ...]

    @property
    def judge(self) -> Judge:
        """Who decides."""
        return self.judging.judge

    @property
    def claims(self) -> ClaimSource:
        """Where the claims of references come from."""
        return self.judging.claims

    @property
    def suite(self) -> Suite:
        """The suite that these are the parts of."""
        return self.file.suite


def assemble(file: SuiteFile, *, judge: Judge | None = None, run_id: str = "") -> Parts:
    """Build the parts of a suite. Close them with `await parts.judging.aclose()`.

    Args:
        file: The suite as read.
        judge: Takes the place of the suite's judge (tests, embedding).
        run_id: The run that these parts are for; a suite that judges afresh remembers its judgements under it.

    Raises:
        ConfigError: a file, a line of the dataset, a callable or an expression is wrong.
    """
    suite = file.suite
    faults: list[ConfigError] = []
    resolvers = _resolvers(file, faults)
    needs_contexts = any(each.source == "response" for each in resolvers.values())
    target = _tried(lambda: _target(file, needs_contexts=needs_contexts), faults)
    dataset = _tried(lambda: read_jsonl(_path(file, suite.dataset.path), name=suite.dataset.path), faults)
    if judge is not None:
        judging: JudgeSetup | None = setup_of(judge)
    else:
        judging = _tried(
            lambda: judge_setup(
                suite.judge,
                dataset=_path(file, suite.dataset.path),
                frozen=suite.frozen_claims,
                salt=run_id if suite.judge.fresh else "",
            ),
            faults,
        )
    if suite.frozen_claims and judging is not None and dataset is not None:
        claims, items = judging.claims, dataset.items
        _tried(lambda: require_frozen(claims, items), faults)
    if faults or target is None or dataset is None or judging is None:
        raise together(faults)
    return Parts(
        file=file,
        dataset=dataset,
        target=target,
        resolvers=resolvers,
        judging=judging,
        scorers=tuple(scorer_of(part, suite) for part in suite.scorers),
    )


def checked(path: Path) -> tuple[list[ConfigError], int]:
    """Everything that is wrong with a suite file and with what it names, and how many items it has.

    What is wrong with the suite itself does not keep the rest of it from being checked.
    """
    faults: list[ConfigError] = []
    try:
        files = read_suites(path)
    except ConfigError as error:
        faults += _each(error)
        files = _rest_of(path, faults)
    items = 0
    for file in files:
        try:
            parts = assemble(file)
        except ConfigError as error:
            faults += _each(error)
        else:
            items = len(parts.dataset.items)
            asyncio.run(parts.judging.aclose())
    return list({str(fault): fault for fault in faults}.values()), items


def _rest_of(path: Path, faults: Sequence[ConfigError]) -> list[SuiteFile]:
    """The suite without what is wrong with it, where that still is one."""
    try:
        document, places = read_document(path)
    except ConfigError:
        return []
    document.pop("targets", None)
    for _ in range(HEALINGS):
        document = without(document, faults)
        try:
            return [check_suite(document, path=path, places=places)]
        except ConfigError as error:
            faults = _each(error)  # of what is left, as an empty mapping; not the user's
    return []


def _each(error: ConfigError) -> list[ConfigError]:
    return list(error.faults) if isinstance(error, SuiteErrors) else [error]


def _tried(build: Callable[[], T], faults: list[ConfigError]) -> T | None:
    """What `build` gives; None, and the fault noted, where the user's files are wrong."""
    try:
        return build()
    except ConfigError as error:
        faults += _each(error)
        return None


def _resolvers(file: SuiteFile, faults: list[ConfigError]) -> dict[str, Resolver]:
    made = {}
    for number, part in enumerate(file.suite.scorers):
        own = ("scorers", number, part.kind, "contexts")
        where = file.where(*own) if part.contexts else file.where("contexts")
        declared = part.contexts or file.suite.contexts
        resolver = _tried(lambda: resolver_for(part.kind, declared, where=where), faults)  # noqa: B023 - called here
        if resolver is not None:
            made[part.name] = resolver
    return made


def scorer_of(part: ScorerPart, suite: Suite) -> Scorer:
    """The scorer that a suite names, with the suite's settings for all scorers."""
    if part.kind == "context_recall":
        return ContextRecall(name=part.name, scale=as_fraction(part.scale), missing_reference=suite.missing_reference)
    return ContextPrecision(
        name=part.name,
        scale=as_fraction(part.scale),
        against=part.against,
        duplicates=suite.duplicates,
        missing_reference=suite.missing_reference,
    )


def _target(file: SuiteFile, *, needs_contexts: bool) -> Target:
    part = file.suite.target
    function = load_callable(part.python or "", base_dir=file.base_dir, where=file.where("target", "python"))
    return PythonTarget(function, timeout_s=part.timeout_s, need_contexts=needs_contexts)


def _path(file: SuiteFile, path: str) -> Path:
    """Relative to the suite file, shown as short as it can be."""
    full = file.base_dir / Path(path).expanduser()
    try:
        return full.relative_to(Path.cwd())
    except ValueError:
        return full
