"""From a checked suite to the parts that carry it out. All that can be wrong is found here, before anything runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from ragscore.contexts import IF_ANY, NOTHING, Resolver, resolver_for
from ragscore.datasets import Dataset, load_dataset
from ragscore.errors import ConfigError
from ragscore.items import Item
from ragscore.judges import ClaimSource, Judge
from ragscore.judges.setup import JudgeSetup, judge_setup, require_frozen, setup_of
from ragscore.scorer_kinds import CONTEXTS_IF_ANY, WITHOUT_CONTEXTS
from ragscore.scorers import Scorer
from ragscore.scorers.making import make_scorer
from ragscore.secrets import Secrets
from ragscore.suite import ContextsPart, ScorerPart, Suite
from ragscore.suite_faults import SuiteErrors, together, without
from ragscore.suite_file import SuiteFile, check_suite, read_suites
from ragscore.suite_yaml import read_document
from ragscore.targets import Target, described, make_target

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

    @property
    def target_name(self) -> str:
        """The target as the history and messages name it, with `${VAR}` as written."""
        return described(self.suite.target, _written_target(self.file))


def assemble(
    file: SuiteFile,
    *,
    judge: Judge | None = None,
    run_id: str = "",
    dataset: Dataset | None = None,
    target: Target | None = None,
    begun: bool = False,
) -> Parts:
    """Build the parts of a suite. Close them with `await parts.judging.aclose()`.

    Args:
        file: The suite as read.
        judge: Takes the place of the suite's judge (tests, embedding).
        run_id: The run that these parts are for; a suite that judges afresh remembers its judgements under it.
        dataset: Takes the place of the suite's dataset (rows from Python).
        target: Takes the place of the suite's target (an object from Python).
        begun: These are parts of a run that has begun elsewhere; its items were looked at there.

    Raises:
        ConfigError: a file, a line of the dataset, a callable or an expression is wrong.
    """
    suite = file.suite
    faults: list[ConfigError] = []
    resolvers = _resolvers(file, faults)
    scorers = _scorers(file, faults)
    if target is None:
        target = _tried(lambda: _target(file, resolvers), faults)
    if dataset is None:
        dataset = _tried(lambda: _dataset(file), faults)
    if judge is not None:
        judging: JudgeSetup | None = setup_of(judge)
    else:
        judging = _tried(
            lambda: judge_setup(
                suite.judge,
                dataset=_path(file, suite.dataset.beside),
                frozen=suite.frozen_claims,
                salt=run_id if suite.judge.fresh else "",
                where=file.where("judge"),
                secrets=file.secrets,
            ),
            faults,
        )
    if suite.frozen_claims and judging is not None and dataset is not None and not begun:
        claims, items = judging.claims, dataset.items
        _tried(lambda: require_frozen(claims, items), faults)
    if suite.target.kind == "none" and dataset is not None and not begun:
        items_of_rows = dataset.items
        _tried(lambda: _require_contexts(file, resolvers, items_of_rows), faults)
    if faults or target is None or dataset is None or judging is None:
        raise together(faults)
    return Parts(
        file=file,
        dataset=dataset,
        target=target,
        resolvers=resolvers,
        judging=judging,
        scorers=tuple(scorers),
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
        resolver = _tried(
            lambda: resolver_for(
                part.kind,  # noqa: B023 - called here
                declared,  # noqa: B023
                where=where,  # noqa: B023
                base_dir=file.base_dir,
                response=_own_contexts(file.suite),
                top_k=file.suite.target.top_k,
            ),
            faults,
        )
        if part.contexts is None and part.kind in WITHOUT_CONTEXTS:
            resolver = NOTHING
        elif declared is None and part.kind in CONTEXTS_IF_ANY:
            resolver = IF_ANY
        if resolver is not None:
            made[part.name] = resolver
    return made


def _scorers(file: SuiteFile, faults: list[ConfigError]) -> list[Scorer]:
    made = []
    for number, part in enumerate(file.suite.scorers):
        where = file.where("scorers", number)
        scorer = _tried(
            lambda: scorer_of(
                part,  # noqa: B023 - called here
                file.suite,
                base_dir=file.base_dir,
                where=where,  # noqa: B023
                secrets=file.secrets,
            ),
            faults,
        )
        if scorer is None:
            continue
        made.append(scorer)
        for gate in (file.suite.gate.scorers, file.suite.gate.slices.scorers if file.suite.gate.slices else {}):
            least = gate[part.name].min if part.name in gate else None
            if least is not None and least > scorer.scale:
                what = f"{part.name} cannot reach {least:g}: its scale ends at {float(scorer.scale):g}"
                faults.append(ConfigError(what, where=file.where("gate"), mend="write `min` in the scorer's scale"))
    return made


def scorer_of(
    part: ScorerPart,
    suite: Suite,
    *,
    base_dir: Path | None = None,
    where: str = "scorers",
    secrets: Secrets | None = None,
) -> Scorer:
    """The scorer that a suite names, with the suite's settings for all scorers.

    Raises:
        ConfigError: a function or class that it names is not there, or cannot be made.
    """
    return make_scorer(part, suite, base_dir=base_dir or Path(), where=where, secrets=secrets)


def _own_contexts(suite: Suite) -> ContextsPart | None:
    """Where the target keeps what it retrieved, if that is not found by the shape of what it returned."""
    if suite.target.kind == "none":
        return ContextsPart(item=True)
    http = suite.target.http
    path = http.response.contexts if http is not None and http.response is not None else None
    return ContextsPart(path=path) if path is not None else None


def _target(file: SuiteFile, resolvers: Mapping[str, Resolver]) -> Target:
    sources = {source for each in resolvers.values() for source in each.sources}
    return make_target(
        file.suite.target,
        written=_written_target(file),
        base_dir=file.base_dir,
        where=partial(file.where, "target"),
        needs_contexts="response" in sources,
        needs_raw=any(not source.startswith(("response", "item", "static:")) for source in sources),
    )


def _written_target(file: SuiteFile) -> Mapping[str, Any]:
    written = file.document.get("target")
    return written if isinstance(written, Mapping) else {}


def _require_contexts(file: SuiteFile, resolvers: Mapping[str, Resolver], items: Iterable[Item]) -> None:
    """Nothing is called and nothing is there: that is found before anything runs."""
    if {"item"} != {each.source for each in resolvers.values()} or any(each.contexts is not None for each in items):
        return
    raise ConfigError(
        "no row of the dataset has `contexts`, and no target is called that could retrieve some",
        where=file.where("target"),
        mend="add a column `contexts`, name another source with `contexts:`, or name a target",
    )


def _dataset(file: SuiteFile) -> Dataset:
    return load_dataset(file.suite.dataset, base_dir=file.base_dir, where=file.where("dataset"), secrets=file.secrets)


def _path(file: SuiteFile, path: str) -> Path:
    """Relative to the suite file, shown as short as it can be."""
    full = file.base_dir / Path(path).expanduser()
    try:
        return full.relative_to(Path.cwd())
    except ValueError:
        return full
