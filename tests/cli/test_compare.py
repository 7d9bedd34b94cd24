"""`compare`, the gate of a run and `--fail-under`, as a user meets them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from ragscore.history import History
from tests.workspace import Workspace, make_workspace, numbered_items

GATE = {"context_recall": {"min": 0.5, "max_drop": 0.03}}


def run(workspace: Workspace, version: str, *arguments: str, broken: int = 0, **suite: Any) -> tuple[int, str]:
    """A run of 24 questions, `broken` of which find nothing."""
    rows = numbered_items(24)
    workspace.write_items(rows)
    workspace.order(**{row["input"].replace(" ", "_"): "nothing" for row in rows[:broken]})
    target = {"retriever": "drinks-search", "version": version, "python": "drinks:retrieve"}
    workspace.write_suite(target=target, **suite)
    done = workspace.ragscore("run", "suite.yaml", *arguments)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    workspace = make_workspace(tmp_path_factory.mktemp("two-runs"))
    assert run(workspace, "v1", gate=GATE)[0] == 0
    code, said = run(workspace, "v2", broken=8, gate=GATE)
    assert code == 1, said
    assert "✗ gate: FAIL" in said
    assert "baseline: v1 (run " in said
    return workspace


@pytest.fixture
def two_runs(made_once: Workspace, tmp_path: Path) -> Workspace:
    """A copy for each test: comparing writes."""
    shutil.copytree(made_once.folder, tmp_path, dirs_exist_ok=True)
    return Workspace(tmp_path)


def test_versions_runs_and_the_baseline_can_be_compared(two_runs: Workspace) -> None:
    runs = json.loads(two_runs.ragscore("runs", "--json").stdout)
    for before, after in (("v1", "v2"), ("baseline", "last"), (runs[1]["run_id"], runs[0]["run_id"])):
        shown = json.loads(two_runs.ragscore("compare", before, after, "--json").stdout)
        assert (shown["before"]["version"], shown["after"]["version"]) == ("v1", "v2")
        recall = shown["scorers"][0]
        assert (recall["scorer"], recall["n"], recall["verdict"]) == ("context_recall", 24, "fail")
        assert recall["difference"] == pytest.approx(-1 / 3)
        assert recall["low"] < recall["difference"] < recall["high"]
        assert recall["max_drop"] == pytest.approx(0.03)
        assert len(recall["worse"]) == 8
        assert recall["worse"][0]["lost"]
    assert two_runs.sql("select distinct verdict, forced, n from comparisons where scorer = 'context_recall'") == [
        ("fail", False, 24)
    ]


def test_the_comparison_on_the_terminal_as_markdown_and_as_junit(two_runs: Workspace) -> None:
    done = two_runs.ragscore("compare", "v1", "v2", "--junit", "report.xml", "--items", "2")
    assert done.returncode == 0
    assert "✗ context_recall: fail: -0.333 over 24 items; 95% interval" in done.stdout
    assert "lost: Tea is made from leaves of Camellia sinensis." in done.stdout
    assert "#1 → gone: Tea is made" in done.stdout
    assert "… and 6 more" in done.stdout
    assert "\x1b" not in done.stdout
    suite = ElementTree.parse(two_runs.folder / "report.xml").getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("2", "2")
    said = two_runs.ragscore("compare", "v1", "v2", "--markdown").stdout
    assert said.startswith("### drinks: v1 → v2\n")
    assert "| context\\_recall | ❌ fail | 24 | 1.00 | 0.67 | -0.333 |" in said


def test_a_run_that_has_not_come_to_its_end_is_said_to_be_so(two_runs: Workspace) -> None:
    store = History(two_runs.history)
    last = store.run("last").run_id
    store.finish_run(last, status="cancelled")
    said = f"run {last} (v2) is cancelled: only what it has scored so far is compared"
    assert f"! {said}\n" in two_runs.ragscore("compare", "v1", "last").stdout
    marked = two_runs.ragscore("compare", "v1", "last", "--markdown").stdout
    assert "is cancelled: only what it has scored so far" in marked
    assert two_runs.ragscore("report", "--compare", "v1", "last").returncode == 0
    assert said in (two_runs.folder / "report.html").read_text(encoding="utf-8")


def test_the_exit_code_is_0_unless_it_is_asked_for(two_runs: Workspace) -> None:
    assert two_runs.ragscore("compare", "v1", "v2").returncode == 0
    assert two_runs.ragscore("compare", "v1", "v2", "--exit-code").returncode == 1
    assert two_runs.ragscore("compare", "v1", "v1", "--exit-code").returncode == 2  # no other run of v1
    tolerant = ["--max-drop", "context_recall=0.7", "--max-drop", "context_precision=0.7"]
    assert two_runs.ragscore("compare", "v1", "v2", "--exit-code", *tolerant).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["v1", "v3"], "no run and no version 'v3'"),
        (["v1", "v2", "--max-drop", "much"], "--max-drop: 'much' is not SCORER=NUMBER"),
    ],
)
def test_a_comparison_that_cannot_be_made_is_exit_2(two_runs: Workspace, arguments: list[str], said: str) -> None:
    done = two_runs.ragscore("compare", *arguments)
    assert (done.returncode, said in done.stderr) == (2, True)


def test_show_tells_the_verdict_again(two_runs: Workspace) -> None:
    assert "✗ gate: FAIL" in two_runs.ragscore("show", "last").stdout
    assert json.loads(two_runs.ragscore("show", "last", "--json").stdout)["gate"]["verdict"] == "fail"


def test_fail_under_needs_no_baseline_and_no_gate_in_the_suite(workspace: Workspace) -> None:
    assert run(workspace, "v1", "--fail-under", "context_recall=1", broken=0)[0] == 0
    code, said = run(workspace, "v2", "--fail-under", "context_recall=0.8", broken=8)
    assert code == 1
    assert "fail  context_recall: mean 0.67 < 0.8" in said
    code, said = run(workspace, "v3", "--fail-under", "recall=0.8")
    assert code == 2
    assert "no scorer is named `recall`" in said
    assert workspace.sql("select version, gate_verdict from runs order by started_at") == [
        ("v1", "pass"),
        ("v2", "fail"),
    ]


@pytest.mark.parametrize(("setting", "code"), [("warn", 0), ("exit", 4), ("fail", 1)])
def test_an_inconclusive_gate_is_said_loudly_and_exits_as_the_suite_says(
    workspace: Workspace, setting: str, code: int
) -> None:
    gate = {"on_inconclusive": setting, "context_recall": {"max_drop": 0.01}}
    run(workspace, "v1", gate=gate)
    found, said = run(workspace, "v2", broken=2, gate=gate)
    assert found == code
    assert "? gate: INCONCLUSIVE" in said
    assert "items would tell" in said


def test_coverage_goes_before_the_gate(workspace: Workspace) -> None:
    rows = numbered_items(10)
    workspace.write_items(rows)
    workspace.order(**{rows[0]["input"].replace(" ", "_"): "raise"})
    workspace.write_suite(gate={"context_recall": {"min": 1}})
    done = workspace.ragscore("run", "suite.yaml")
    assert done.returncode == 3
    assert "gate: no verdict" in done.stdout
    workspace.order()
    resumed = workspace.ragscore("resume")
    assert resumed.returncode == 0
    assert "✓ gate: PASS" in resumed.stdout


def test_a_pinned_baseline_that_is_missing_is_exit_2_before_the_target_is_asked(workspace: Workspace) -> None:
    code, said = run(workspace, "v2", gate={"baseline": "version:v1", **GATE})
    assert code == 2
    assert "the gate's version:v1 is not there" in said
    assert workspace.calls() == []
