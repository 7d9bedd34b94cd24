"""From a checked suite to the parts that carry it out. All that can be wrong is found here, before anything runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ragscore.contexts import Resolver, resolver_for
from ragscore.datasets import Dataset, read_jsonl
from ragscore.judges import ClaimSource, Judge
from ragscore.judges.setup import JudgeSetup, judge_setup, require_frozen, setup_of
from ragscore.scorers import ContextPrecision, ContextRecall, Scorer
from ragscore.scorers.arithmetic import as_fraction
from ragscore.suite import ScorerPart, Suite
from ragscore.suite_file import SuiteFile
from ragscore.targets import PythonTarget, Target
from ragscore.targets.python import load_callable


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
    resolvers = {
        part.name: resolver_for(
            part.kind,
            part.contexts or suite.contexts,
            where=file.where("scorers", number, part.kind, "contexts") if part.contexts else file.where("contexts"),
        )
        for number, part in enumerate(suite.scorers)
    }
    target = _target(file, needs_contexts=any(each.source == "response" for each in resolvers.values()))
    dataset = read_jsonl(_path(file, suite.dataset.path), name=suite.dataset.path)
    if judge is not None:
        judging = setup_of(judge)
    else:
        judging = judge_setup(
            suite.judge,
            dataset=_path(file, suite.dataset.path),
            frozen=suite.frozen_claims,
            salt=run_id if suite.judge.fresh else "",
        )
    if suite.frozen_claims:
        require_frozen(judging.claims, dataset.items)
    return Parts(
        file=file,
        dataset=dataset,
        target=target,
        resolvers=resolvers,
        judging=judging,
        scorers=tuple(scorer_of(part, suite) for part in suite.scorers),
    )


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
