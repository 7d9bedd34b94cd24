"""A suite as tests: `ragscore_suite("suite.yaml").assert_passes()`, and one test per item.

    @pytest.mark.ragscore("suite.yaml")
    def test_retrieval(ragscore_item):
        ragscore_item.assert_scores(context_recall=0.8)

The suite runs once per test session, however many tests look at it, and once under pytest-xdist, too: the first worker
that needs it evaluates it, the others wait and read the history. The runs go to the same history as `ragscore run`,
with the trigger `pytest`. Paths are relative to the test's file.
"""

from __future__ import annotations

import json
import os
import tempfile
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ragscore.api import Evaluation
    from ragscore.errors import RagscoreError
    from ragscore.history import ItemScore

_SESSION = pytest.StashKey[str]()


@dataclass(frozen=True)
class ScoredItem:
    """One item of a suite's run.

    Attributes:
        id: The item's id.
        input: Its question.
        scores: By scorer: in its scale, None where there is none.
        statuses, reasons: By scorer.
        run_id: What `ragscore show` takes.
        less_is_better: The scorers of which less is better.
    """

    id: str
    input: str | None
    scores: Mapping[str, float | None]
    statuses: Mapping[str, str]
    reasons: Mapping[str, str]
    run_id: str
    less_is_better: frozenset[str] = frozenset()

    def assert_scores(self, **limits: float) -> None:
        """Fail the test where a score is missing or lower; an item that is marked `answerable: false` is passed over.

        Args:
            limits: The least score by scorer, in its scale; the greatest, for scorers of which less is better.

        Raises:
            AssertionError: with each scorer's reason.
            KeyError: no scorer is called so.
        """
        said = []
        for name, limit in limits.items():
            if name not in self.statuses:
                raise KeyError(f"no scorer is named {name!r}; here are: {', '.join(self.statuses)}")
            score, at_most = self.scores[name], name in self.less_is_better
            missed = score is None or (score > limit if at_most else score < limit)
            if self.statuses[name] != "unanswerable" and missed:
                got = self.statuses[name] if score is None else f"{score:g}"
                asked = f"{'at most' if at_most else 'at least'} {limit:g} is asked for"
                said.append(f"{name}: {got}, {asked}\n{self.reasons[name]}")
        if said:
            shown = "\n".join(said)
            raise AssertionError(f"{self.id}: {self.input}\n{shown}\nragscore show {self.run_id} --item {self.id}")


@dataclass
class SuiteRun:
    """A suite that runs when it is first looked at, once per session."""

    path: Path
    session: str
    _evaluation: list[Evaluation] = field(default_factory=list)
    _failure: list[RagscoreError] = field(default_factory=list)

    @property
    def evaluation(self) -> Evaluation:
        """The run: scores, coverage, summary, exit code.

        Raises:
            RagscoreError: the suite could not be run; not tried again in this session, or a judge that does not answer
                would be waited for once per item.
        """
        from ragscore.errors import RagscoreError, UsageError

        if self._failure:
            raise self._failure[0].with_traceback(None)
        if not self._evaluation:
            try:
                self._evaluation.append(self._evaluated())
            except UsageError:  # of this call (inside a running loop), not of the suite
                raise
            except RagscoreError as error:
                self._failure.append(error)
                raise
        return self._evaluation[0]

    def assert_passes(self) -> None:
        """Fail the test where `ragscore run` would not end with 0.

        Raises:
            AssertionError: with what is wrong, and the command that shows the run.
        """
        self.evaluation.assert_passes()

    def item(self, item_id: str) -> ScoredItem:
        """One item with its scores."""
        from ragscore.history import History, item_scores
        from ragscore.scorer_kinds import LESS_IS_BETTER

        evaluation = self.evaluation
        rows: list[ItemScore] = [
            row for row in item_scores(History(evaluation.history), evaluation.run_id) if row.item_id == item_id
        ]
        return ScoredItem(
            id=item_id,
            input=rows[0].input if rows else None,
            scores={row.scorer: row.score for row in rows},
            statuses={row.scorer: str(row.status) for row in rows},
            reasons={row.scorer: row.reason for row in rows},
            run_id=evaluation.run_id,
            less_is_better=frozenset(row.scorer for row in rows if row.kind in LESS_IS_BETTER),
        )

    def _evaluated(self) -> Evaluation:
        from filelock import FileLock

        from ragscore import errors
        from ragscore.api import Evaluation, evaluate_sync
        from ragscore.history import History
        from ragscore.items import digest
        from ragscore.report.summary import summary_of

        note = Path(tempfile.gettempdir()) / f"ragscore-{self.session}-{digest(str(self.path))[:12]}.json"
        with FileLock(f"{note}.lock"):
            if note.exists():  # another worker was first
                told = json.loads(note.read_text(encoding="utf-8"))
                if "failed" in told:
                    kind: type[RagscoreError] = getattr(errors, told["failed"], errors.EvaluationError)
                    raise kind(told["what"], where=told["where"], mend=told["mend"])
                store = History(Path(told["history"]))
                return Evaluation(told["run_id"], summary_of(store, store.run(told["run_id"])), store.path)
            try:
                evaluation = evaluate_sync(self.path, trigger="pytest")
            except (errors.EvaluationError, errors.HistoryError) as error:
                told = {"failed": type(error).__name__, "what": error.what, "where": error.where, "mend": error.mend}
                note.write_text(json.dumps(told), encoding="utf-8")
                raise
            told = {"run_id": evaluation.run_id, "history": str(evaluation.history.resolve())}
            note.write_text(json.dumps(told), encoding="utf-8")
            return evaluation


def pytest_configure(config: pytest.Config) -> None:
    """Name the session, alike in all workers, and make the marker known."""
    config.addinivalue_line("markers", "ragscore(suite): run the test once per item of a suite, as `ragscore_item`")
    shared = os.environ.get("PYTEST_XDIST_TESTRUNUID")
    config.stash[_SESSION] = shared or uuid.uuid4().hex


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test per item of the suite that the marker names."""
    if "ragscore_item" not in metafunc.fixturenames:
        return
    marker = metafunc.definition.get_closest_marker("ragscore")
    if marker is None or not marker.args:
        raise pytest.UsageError(
            f"{metafunc.definition.nodeid}: ragscore_item needs a suite — "
            "mark the test @pytest.mark.ragscore('suite.yaml')"
        )
    from ragscore.assembly import assemble
    from ragscore.errors import RagscoreError
    from ragscore.suite_file import read_suite

    path = metafunc.definition.path.parent / marker.args[0]
    try:
        parts = assemble(read_suite(path))
    except RagscoreError as error:
        raise pytest.UsageError(str(error)) from None
    items = [(str(path), item.id) for item in parts.dataset.items]
    metafunc.parametrize("ragscore_item", items, ids=[item_id for _, item_id in items], indirect=True)


@pytest.fixture(scope="session")
def _ragscore_runs(pytestconfig: pytest.Config) -> Callable[[Path], SuiteRun]:
    runs: dict[Path, SuiteRun] = {}
    session = pytestconfig.stash[_SESSION]
    return lambda path: runs.setdefault(path.resolve(), SuiteRun(path.resolve(), session))


@pytest.fixture
def ragscore_suite(request: pytest.FixtureRequest, _ragscore_runs: Callable[[Path], SuiteRun]) -> Any:
    """Gives the run of a suite by its path: `ragscore_suite("suite.yaml").assert_passes()`."""
    return lambda suite: _ragscore_runs(request.path.parent / suite)


@pytest.fixture
def ragscore_item(request: pytest.FixtureRequest, _ragscore_runs: Callable[[Path], SuiteRun]) -> ScoredItem:
    """One item of the suite that the marker `ragscore` names, with its scores."""
    path, item_id = request.param
    return _ragscore_runs(Path(path)).item(item_id)
