"""The pytest plugin, in pytest processes of their own."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from ragscore.errors import JudgeUnavailable
from ragscore.pytest_plugin import ScoredItem, SuiteRun
from tests.workspace import Workspace

PAGE = Path(__file__).parent.parent / "docs" / "api.md"
(TESTS,) = re.findall(r"^```python test\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S)


def run_pytest(workspace: Workspace, *arguments: str) -> subprocess.CompletedProcess[str]:
    (workspace.folder / "test_retrieval.py").write_text(TESTS, encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        "-v",
        *arguments,
    ]
    return subprocess.run(
        command,
        cwd=workspace.folder,
        env=workspace.environment(),
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )


def test_one_run_serves_all_tests_and_each_item_is_one(workspace: Workspace) -> None:
    done = run_pytest(workspace)
    assert done.returncode == 0, done.stdout
    for name in ("tea", "coffee", "cocoa", "mate"):
        assert f"test_each_question[{name}] PASSED" in done.stdout
    assert workspace.sql("select trigger, status, count(*) from runs group by all") == [("pytest", "complete", 1)]
    assert len(workspace.calls()) == 4


@pytest.mark.e2e
def test_workers_of_xdist_share_one_run(workspace: Workspace) -> None:
    pytest.importorskip("xdist")
    done = run_pytest(workspace, "-n", "2")
    assert done.returncode == 0, done.stdout
    assert "5 passed" in done.stdout
    assert workspace.sql("select count(*) from runs") == [(1,)]


def test_an_item_that_falls_short_fails_with_its_reason_and_the_command_that_shows_it(workspace: Workspace) -> None:
    workspace.order(**{"What_about_tea?": "nothing", "What_about_mate?": "raise"})
    done = run_pytest(workspace)
    assert done.returncode == 1
    assert "test_each_question[coffee] PASSED" in done.stdout
    assert "test_each_question[tea] FAILED" in done.stdout
    assert "context_recall: 0, at least 0.9 is asked for" in done.stdout
    assert "context_recall: target_error, at least 0.9 is asked for" in done.stdout
    assert "--item tea" in done.stdout
    assert "coverage" in done.stdout  # of the suite as a whole


def test_a_wrong_suite_is_one_line_at_collection(workspace: Workspace) -> None:
    workspace.write_suite(scorers=["context_recal"])
    done = run_pytest(workspace)
    assert done.returncode != 0
    assert "suite.yaml:6: scorers.0: 'context_recal' is not known here" in done.stdout + done.stderr


def test_where_less_is_better_what_is_asked_for_is_the_most() -> None:
    limits = {"noise_sensitivity": 0.25}
    item = ScoredItem("tea", "?", {"noise_sensitivity": 0.0}, {"noise_sensitivity": "ok"}, {"noise_sensitivity": "0/1"},
                      "r1", frozenset(limits))  # fmt: skip
    item.assert_scores(**limits)
    noisy = dataclasses.replace(item, scores={"noise_sensitivity": 0.5})
    with pytest.raises(AssertionError, match=r"noise_sensitivity: 0.5, at most 0.25 is asked for"):
        noisy.assert_scores(**limits)


def test_an_item_knows_of_which_of_its_scorers_less_is_better(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(workspace.folder)
    workspace.write_items([{"id": "tea", "input": "?", "reference": "a", "output": "b.", "contexts": ["c"]}])
    workspace.write_suite(target="none", scorers=["context_recall", {"noise_sensitivity": {"name": "noise"}}])
    item = SuiteRun(workspace.suite, uuid.uuid4().hex).item("tea")
    assert item.less_is_better == {"noise"}


def test_a_suite_that_cannot_be_run_is_tried_once_in_a_session(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []

    def unavailable(*_: object, **__: object) -> None:
        tried.append(1)
        raise JudgeUnavailable("the judge does not answer", where="openai/x", mend="try again later")

    monkeypatch.setattr("ragscore.api.evaluate_sync", unavailable)
    session = uuid.uuid4().hex
    one_worker, another = SuiteRun(workspace.suite, session), SuiteRun(workspace.suite, session)
    for run in (one_worker, one_worker, another):
        with pytest.raises(JudgeUnavailable, match="openai/x: the judge does not answer — try again later"):
            run.item("tea")
    assert tried == [1]
