"""What docs/gate.md, docs/calibration.md and deployments/ci show, run."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from ragscore.suite_file import read_suite
from tests.documents import shown_files, suites_of
from tests.workspace import Workspace, numbered_items

ROOT = Path(__file__).parent.parent
GATE = {"context_recall": {"max_drop": 0.03}}


def commands(page: str) -> list[list[str]]:
    """The arguments of every `ragscore` command in the shell blocks of the page."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    lines = [
        line
        for block in re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        for line in block.splitlines()
    ]
    return [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("ragscore ")]


def with_version(workspace: Workspace, version: str, **suite: object) -> None:
    target = {"retriever": "drinks-search", "version": version, "python": "drinks:retrieve"}
    workspace.write_suite(target=target, **{"gate": GATE, **suite})


def script(workspace: Workspace) -> subprocess.CompletedProcess[str]:
    """gate.sh, with `ragscore` on the path."""
    folder = workspace.folder / "bin"
    folder.mkdir(exist_ok=True)
    (folder / "ragscore").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ragscore "$@"\n', encoding="utf-8")
    (folder / "ragscore").chmod(0o755)
    return subprocess.run(
        ["sh", str(ROOT / "deployments" / "ci" / "gate.sh"), "suite.yaml"],
        cwd=workspace.folder,
        env=workspace.environment(PATH=f"{folder}{os.pathsep}{os.environ['PATH']}"),
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )


def test_the_suite_of_the_page_is_one(tmp_path: Path) -> None:
    (path,) = suites_of("gate.md", tmp_path)
    gate = read_suite(path).suite.gate
    assert gate.anchor == "version:1.0"
    assert gate.scorers["context_recall"].max_drop == 0.03
    assert gate.slices is not None
    assert gate.slices.scorers["context_recall"].min == 0.7


@pytest.mark.e2e
def test_the_comparisons_of_the_page_are_carried_out(workspace: Workspace) -> None:
    for version in ("v1", "v2"):
        with_version(workspace, version)
        assert workspace.ragscore("run", "suite.yaml").returncode == 0
    shown = [each for each in commands("gate.md") if each[0] == "compare"]
    assert len(shown) == 5
    first = workspace.sql("select run_id from runs order by started_at limit 1")[0][0]
    for arguments in shown:
        named = [first if re.match(r"\d{8}-", each) else each for each in arguments]
        done = workspace.ragscore(*named)
        assert done.returncode == 0, (arguments, done.stderr)


@pytest.mark.e2e
def test_noise_labels_and_calibration_of_the_page_are_carried_out(workspace: Workspace) -> None:
    ((name, content),) = shown_files("calibration.md")
    (workspace.folder / name).write_text(content, encoding="utf-8")
    for arguments in commands("calibration.md"):
        if arguments[:2] == ["calibrate", "labels.csv"]:
            sheet = workspace.folder / "labels.csv"
            lines = sheet.read_text(encoding="utf-8-sig").splitlines()
            filled = [lines[0], *(line if not line.startswith(",") else f"yes{line}" for line in lines[1:])]
            sheet.write_text("\n".join(filled) + "\n", encoding="utf-8")
        done = workspace.ragscore(*arguments)
        assert done.returncode == 0, (arguments, done.stderr)
    kinds = workspace.sql("select labels, kind, n from calibrations where labels = 'canary.jsonl' order by kind")
    assert kinds == [("canary.jsonl", "claim", 2), ("canary.jsonl", "context", 2)]


@pytest.mark.e2e
@pytest.mark.skipif(os.name == "nt", reason="a shell of POSIX")
def test_the_script_for_ci_exits_with_the_gates_code_and_leaves_its_reports(workspace: Workspace) -> None:
    rows = numbered_items(16)
    workspace.write_items(rows)
    with_version(workspace, "v1")
    assert script(workspace).returncode == 0
    assert not (workspace.folder / "retrieval.md").exists()
    with_version(workspace, "v2")
    workspace.order(**{row["input"].replace(" ", "_"): "nothing" for row in rows[:8]})
    assert script(workspace).returncode == 1
    assert (workspace.folder / "retrieval.md").read_text("utf-8").startswith("### drinks: v1 → v2\n")
    assert "<failure" in (workspace.folder / "retrieval.xml").read_text("utf-8")
    with_version(workspace, "v3", scorers=["no_such"])
    assert script(workspace).returncode == 2
    assert not (workspace.folder / "retrieval.md").exists()


@pytest.mark.parametrize("name", ["github-actions.yaml", "gitlab-ci.yaml"])
def test_the_pipelines_are_yaml_and_run_the_script_and_options_that_are_there(name: str) -> None:
    text = (ROOT / "deployments" / "ci" / name).read_text(encoding="utf-8")
    assert isinstance(yaml.safe_load(text), dict)
    assert "sh deployments/ci/gate.sh suite.yaml" in text
