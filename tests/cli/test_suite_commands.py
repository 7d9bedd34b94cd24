"""The commands around suites: init, validate, plan, schema; and suites with several targets."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from ragscore.errors import SuiteError
from ragscore.suite_file import read_suite, read_suites
from tests.workspace import TOPICS, Workspace, make_workspace


@pytest.fixture
def starter(tmp_path: Path) -> Workspace:
    """What `ragscore init` writes."""
    workspace = Workspace(tmp_path)
    done = workspace.ragscore("init", ".")
    assert done.returncode == 0, done.stderr
    return workspace


def test_what_init_writes_runs_as_it_is(starter: Workspace) -> None:
    done = starter.ragscore("run", "suite.yaml")
    assert done.returncode == 0, done.stderr
    assert starter.sql("select count(*), count(*) filter (status = 'ok') from scores") == [(6, 6)]
    assert starter.sql("select distinct version from runs") == [("dev",)]


@pytest.mark.skipif(sys.platform == "win32", reason="a shell script")
def test_the_script_for_ci_runs_and_passes_the_exit_code_on(starter: Workspace) -> None:
    programs = starter.folder / "bin"
    programs.mkdir()
    (programs / "ragscore").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ragscore "$@"\n')
    (programs / "ragscore").chmod(0o755)
    environment = starter.environment(PATH=f"{programs}{os.pathsep}{os.environ['PATH']}")
    script = starter.folder / "check-retrieval.sh"
    for code, change in ((0, ""), (2, "\nnmae: x\n")):
        suite = starter.folder / "suite.yaml"
        suite.write_text(suite.read_text(encoding="utf-8") + change, encoding="utf-8")
        done = subprocess.run([str(script)], env=environment, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == code, done.stderr


def test_init_never_touches_what_is_there(starter: Workspace) -> None:
    before = {path.name: path.read_bytes() for path in starter.folder.iterdir() if path.is_file()}
    again = starter.ragscore("init", ".")
    assert again.returncode == 2
    assert "suite.yaml exist already" in again.stderr
    assert {path.name: path.read_bytes() for path in starter.folder.iterdir() if path.is_file()} == before


def test_validate_counts_the_items_and_writes_nothing(workspace: Workspace) -> None:
    done = workspace.ragscore("validate", "suite.yaml")
    assert (done.returncode, done.stdout) == (0, "suite.yaml: ok, 4 items\n")
    assert not (workspace.folder / ".ragscore").exists()
    assert workspace.calls() == []


def test_validate_reports_mistakes_of_every_kind_at_once_with_their_lines(workspace: Workspace) -> None:
    workspace.suite.write_text(
        "name: five\n"
        "dataset: question.jsonl\n"
        "target:\n"
        "  retreiver: x\n"
        "  python: drinks:retreive\n"
        'contexts: {path: "hits[*"}\n'
        "scorers:\n"
        "  - context_recal\n"
        "  - context_precision: {scale: -1}\n"
    )
    done = workspace.ragscore("validate", "suite.yaml")
    assert done.returncode == 2
    lines = done.stderr.splitlines()
    for said in (
        "suite.yaml:4: target.retreiver: unknown key `retreiver` — did you mean `retriever`?",
        "suite.yaml:5: target.python: drinks has no 'retreive' — did you mean 'retrieve'?",
        "suite.yaml:6: contexts.path: 'hits[*' is not a JMESPath expression",
        "suite.yaml:8: scorers.0: 'context_recal' is not known here — did you mean `context_recall`?",
        "suite.yaml:9: scorers.1.context_precision.scale: -1 is out of range",
        "question.jsonl: no such file",
    ):
        assert sum(line.startswith("error: ") and said in line for line in lines) == 1, (said, done.stderr)
    assert len(lines) == 6


def test_validate_checks_several_suites_and_gives_json(workspace: Workspace) -> None:
    (workspace.folder / "bad.yaml").write_text("name: x\n")
    done = workspace.ragscore("validate", "suite.yaml", "bad.yaml", "--json")
    told = json.loads(done.stdout)
    assert done.returncode == 2
    assert told["suite.yaml"] == {"faults": [], "items": 4}
    assert len(told["bad.yaml"]["faults"]) == 2


def test_plan_makes_no_call_and_says_what_a_run_takes(workspace: Workspace) -> None:
    price = {"input_per_million": 1, "output_per_million": 2}
    judge = {"model": "openai/none", "base_url": "http://127.0.0.1:9/v1", "price": price, "rpm": 6}
    workspace.write_suite(judge=judge)
    done = workspace.ragscore("plan", "suite.yaml", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["items"], told["calls"], told["remembered_calls"]) == (4, 12, 0)
    assert {share["what"]: share["calls"] for share in told["shares"]} == {
        "claims": 4,
        "context_recall": 4,
        "context_precision": 4,
    }
    assert told["seconds"] == 12 * 60 / 6
    tokens = [(share["prompt_tokens"], share["completion_tokens"]) for share in told["shares"]]
    assert told["cost_usd"] == pytest.approx(sum(sent + 2 * reply for sent, reply in tokens) / 1e6)
    assert workspace.calls() == []
    assert "first run" in workspace.ragscore("plan", "suite.yaml").stdout


def test_plan_of_a_model_without_price_says_unknown_and_not_0(workspace: Workspace) -> None:
    workspace.write_suite(judge={"model": "openai/no-such-model", "base_url": "http://127.0.0.1:9/v1"})
    assert json.loads(workspace.ragscore("plan", "suite.yaml", "--json").stdout)["cost_usd"] is None
    assert "unknown" in workspace.ragscore("plan", "suite.yaml").stdout


def test_plan_of_the_offline_judge_is_nothing(workspace: Workspace) -> None:
    done = workspace.ragscore("plan", "suite.yaml")
    assert "offline-lexical-1 makes no calls" in done.stdout


def test_several_targets_are_one_run_each_and_then_compared(workspace: Workspace) -> None:
    workspace.write_suite(
        target={"retriever": "drinks-search", "python": "drinks:retrieve"},
        targets=[{"version": "v1"}, {"version": "v2", "python": "drinks:fog"}],
    )
    with (workspace.folder / "drinks.py").open("a") as module:
        module.write("\ndef fog(question):\n    return [NOISE]\n")
    done = workspace.ragscore("run", "suite.yaml")
    assert done.returncode == 0, done.stderr
    assert "v1 → v2" in done.stdout
    assert f"lost: {TOPICS['tea'].split('. ')[0]}." in done.stdout
    means = workspace.sql("select version, mean from score_history where scorer = 'context_recall' order by 1")
    assert means == [("v1", 1.0), ("v2", 0.0)]


def test_after_an_interruption_it_is_said_which_targets_were_not_begun(workspace: Workspace) -> None:
    workspace.write_suite(
        target={"retriever": "drinks-search", "python": "drinks:retrieve"},
        targets=[{"version": "v1", "python": "drinks:interrupted"}, {"version": "v2"}, {"version": "v3"}],
        batch_size=1,
    )
    with (workspace.folder / "drinks.py").open("a") as module:
        module.write("\nimport os, signal\ndef interrupted(question):\n")
        module.write("    os.kill(os.getpid(), signal.SIGINT)\n    return [NOISE]\n")
    done = workspace.ragscore("run", "suite.yaml", "--json")
    assert done.returncode == 3
    (run,) = json.loads(done.stdout)
    said = f"not begun, since run {run['run_id']} is cancelled: drinks-search v2, drinks-search v3\n"
    assert said in done.stderr
    assert f"resume {run['run_id']}" in done.stderr


def test_targets_that_cannot_be_told_apart_are_refused(workspace: Workspace) -> None:
    workspace.write_suite(target={"python": "drinks:retrieve"}, targets=[{"version": "v1"}, {"version": "v1"}])
    with pytest.raises(SuiteError, match=r"targets\.1: two targets are retriever v1"):
        read_suites(workspace.suite)
    workspace.write_suite(target={"python": "drinks:retrieve"}, targets=[{"version": "v1"}, {"version": "v2"}])
    with pytest.raises(SuiteError, match="has 2 targets"):
        read_suite(workspace.suite)


def test_a_fault_in_one_of_several_targets_names_its_line(workspace: Workspace) -> None:
    workspace.suite.write_text(
        "name: x\ndataset: questions.jsonl\ntargets:\n  - version: a\n    python: drinks:retrieve\n  - vresion: b\n"
        "    python: drinks:retrieve\n"
    )
    with pytest.raises(SuiteError, match=r"suite\.yaml:6: target\.vresion: unknown key `vresion`"):
        read_suites(workspace.suite)


def test_a_suite_extends_another_and_faults_name_the_file_they_stand_in(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    (tmp_path / "base.yaml").write_text(
        "judge: offline\nbatch_size: 7\nscorers: [context_recall]\n"
        "target:\n  retriever: shared\n  python: drinks:retrieve\n"
    )
    workspace.suite.write_text(
        "extends: base.yaml\nname: child\ndataset: questions.jsonl\n"
        "target: {version: v9}\nscorers: [context_precision]\n"
    )
    suite = read_suite(workspace.suite).suite
    assert (suite.batch_size, suite.target.retriever, suite.target.version) == (7, "shared", "v9")
    assert [scorer.kind for scorer in suite.scorers] == ["context_precision"]
    assert workspace.ragscore("run", "suite.yaml").returncode == 0
    (tmp_path / "base.yaml").write_text("judge: offline\nbatch_size: lots\ntarget: {python: 'drinks:retrieve'}\n")
    with pytest.raises(SuiteError, match=r"base\.yaml:2: batch_size"):
        read_suite(workspace.suite)


def test_suites_that_extend_each_other_or_nothing_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("extends: b.yaml\n")
    (tmp_path / "b.yaml").write_text("name: x\nextends: a.yaml\n")
    with pytest.raises(SuiteError, match=r"b\.yaml:2: extends: the files extend each other"):
        read_suites(tmp_path / "a.yaml")
    (tmp_path / "c.yaml").write_text("extends: d.yaml\n")
    with pytest.raises(SuiteError, match=r"c\.yaml:1: extends: no such file: .*d\.yaml"):
        read_suites(tmp_path / "c.yaml")


def test_the_schema_takes_what_the_suite_takes_and_refuses_what_it_refuses(workspace: Workspace) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads(workspace.ragscore("schema").stdout)
    validator = jsonschema.Draft202012Validator(schema)
    validator.check_schema(schema)
    starter = Path(__file__).parents[2] / "ragscore" / "cli" / "starter" / "suite.yaml"
    good = [
        yaml.safe_load(starter.read_text(encoding="utf-8")),
        yaml.safe_load(workspace.suite.read_text(encoding="utf-8")),
        {"extends": "base.yaml", "targets": [{"version": "a"}], "judge": {"model": "openai/x", "rpm": "${RPM:-60}"}},
        {"scorers": ["context_recall", {"context_precision": {"scale": 10}}, {"context_precision": None}]},
    ]
    for document in good:
        assert not list(validator.iter_errors(document)), document
    for document in (
        {"nmae": "x"},
        {"scorers": ["context_recal"]},
        {"target": {"retreiver": "x"}},
        {"batch_size": "a"},
    ):
        assert list(validator.iter_errors(document)), document
