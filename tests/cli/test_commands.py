"""The command line as a user meets it: real processes in a user's folder."""

from __future__ import annotations

import json
import os
import re
import stat

import pytest

from tests.workspace import Workspace, items


def test_run_prints_the_engine_first_and_then_the_summary(workspace: Workspace) -> None:
    done = workspace.ragscore("run", "suite.yaml")
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[0].startswith(
        "engine: local (no Prefect API is configured) · judge: offline-lexical-1"
    )
    assert re.search(r"context_recall +1\.00 excellent +4 +100%", done.stdout)
    assert "\x1b" not in done.stdout + done.stderr
    assert not [line for line in done.stdout.splitlines() if line != line.rstrip() and "%" not in line]


def test_a_target_error_an_item_without_reference_and_one_without_contexts_end_as_rows_and_exit_3(
    workspace: Workspace,
) -> None:
    workspace.write_items([*items(), {"id": "noref", "input": "What about tea again?"}])
    workspace.order(**{"What_about_tea?": "raise", "What_about_cocoa?": "nothing"})
    done = workspace.ragscore("run", "suite.yaml")
    assert done.returncode == 3
    assert "coverage of context_recall and context_precision 0.80 is below 0.95: 1 target_error" in done.stdout
    assert "first: tea: the target failed: ValueError: no index for this one" in done.stdout
    assert workspace.sql(
        "select status, count(*) from scores where scorer = 'context_recall' group by 1 order by 1"
    ) == [
        ("no_context", 1),
        ("no_reference", 1),
        ("ok", 2),
        ("target_error", 1),
    ]


def test_the_floor_of_the_coverage_is_the_suites(workspace: Workspace) -> None:
    workspace.order(**{"What_about_tea?": "raise"})
    workspace.write_suite(gate={"coverage": 0.75})
    assert workspace.ragscore("run", "suite.yaml").returncode == 0


@pytest.mark.parametrize(
    ("break_it", "said"),
    [
        ({"scorers": ["context_recal"]}, "suite.yaml:6: scorers.0: 'context_recal' is not known here — did you mean"),
        ({"dataset": "question.jsonl"}, "question.jsonl: no such file"),
        (
            {"target": {"python": "drinks:retreive"}},
            "suite.yaml:9: target.python: drinks has no 'retreive' — did you mean",
        ),
        ({"target": {"python": "drinkz:retrieve"}}, "no module named drinkz"),
        ({"contexts": {"path": "hits[*"}}, "'hits[*' is not a JMESPath expression"),
        ({"judge": {"model": "offline", "modle": "x"}}, "judge.modle: unknown key `modle` — did you mean `model`?"),
    ],
)
def test_a_mistake_is_one_line_with_the_mend_exit_2_and_nothing_written(
    workspace: Workspace, break_it: dict[str, object], said: str
) -> None:
    workspace.write_suite(**break_it)
    done = workspace.ragscore("run", "suite.yaml")
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: ")
    assert said in line
    assert not (workspace.folder / ".ragscore").exists()


def test_a_bad_line_of_the_dataset_is_named_with_its_number_and_field(workspace: Workspace) -> None:
    lines = [json.dumps(items()[0]), '{"id": "b", "input": ', '{"id": "c", "input": "x", "reference": {"a": 1}}']
    (workspace.folder / "questions.jsonl").write_text("\n".join(lines), encoding="utf-8")
    done = workspace.ragscore("run", "suite.yaml")
    assert done.returncode == 2
    first, second = done.stderr.splitlines()
    assert "questions.jsonl:2: line: is not JSON" in first
    assert "questions.jsonl:3: reference: is an object, not text" in second
    assert not (workspace.folder / ".ragscore").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run"], "SUITE"),
        (["run", "missing.yaml"], "missing.yaml: no such file — did you mean"),
        (["rnu", "suite.yaml"], "rnu"),
        (["run", "suite.yaml", "--engine", "none"], "none"),
        (["show", "nothing"], "no history"),
        (["resume", "nothing"], "no history"),
        (["sql", "select 1"], "no history"),
    ],
)
def test_a_command_line_that_cannot_be_carried_out_is_exit_2(
    workspace: Workspace, arguments: list[str], said: str
) -> None:
    (workspace.folder / "missing.yml").write_text("name: x\n")
    done = workspace.ragscore(*arguments)
    assert done.returncode == 2
    assert said.lower() in done.stderr.lower()
    assert "Traceback" not in done.stderr


def test_debug_shows_the_traceback(workspace: Workspace) -> None:
    workspace.write_suite(scorers=["context_recal"])
    assert "Traceback" in workspace.ragscore("run", "suite.yaml", "--debug").stderr


def test_sql_reads_and_cannot_write(workspace: Workspace) -> None:
    workspace.ragscore("run", "suite.yaml")
    query = "select retriever, version, scorer, mean, n from score_history order by 1, 2, 3"
    rows = json.loads(workspace.ragscore("sql", query, "--json").stdout)
    assert rows == [
        {"retriever": "drinks-search", "version": "v1", "scorer": name, "mean": 1.0, "n": 4}
        for name in ("context_precision", "context_recall")
    ]
    for refused in ("delete from scores", "select * from read_csv('questions.jsonl')", "selct 1"):
        done = workspace.ragscore("sql", refused)
        assert done.returncode == 2
        assert done.stderr.startswith("error: ")
    assert workspace.sql("select count(*) from scores") == [(8,)]


def test_show_gives_each_claim_and_context_with_its_verdict_and_evidence(workspace: Workspace) -> None:
    workspace.ragscore("run", "suite.yaml")
    shown = workspace.ragscore("show", "last", "--item", "tea").stdout
    assert "✓ supported  Tea is made from leaves of Camellia sinensis." in shown
    assert "context #1: “Tea is made from leaves of Camellia sinensis.”" in shown
    assert "✓ #1 relevant" in shown
    assert "✗ #2 not relevant" in shown
    whole = json.loads(workspace.ragscore("show", "--item", "tea", "--json").stdout)
    assert {score["scorer"] for score in whole["scores"]} == {"context_recall", "context_precision"}
    near = workspace.ragscore("show", "last", "--item", "te")
    assert (near.returncode, "near: tea" in near.stderr) == (2, True)


def test_runs_lists_newest_first_and_a_beginning_of_an_id_names_a_run(workspace: Workspace) -> None:
    workspace.ragscore("run", "suite.yaml")
    workspace.write_suite(target={"retriever": "drinks-search", "version": "1.10", "python": "drinks:retrieve"})
    workspace.ragscore("run", "suite.yaml")
    listed = json.loads(workspace.ragscore("runs", "--json").stdout)
    assert [run["version"] for run in listed] == ["1.10", "v1"]
    assert workspace.ragscore("show", listed[0]["run_id"][:-1]).returncode == 0


def test_json_of_a_run_is_json_alone(workspace: Workspace) -> None:
    summary = json.loads(workspace.ragscore("run", "suite.yaml", "--json").stdout)
    assert [(each["scorer"], each["mean"]) for each in summary["scorers"]] == [
        ("context_recall", 1.0),
        ("context_precision", 1.0),
    ]


def test_a_configured_prefect_api_that_does_not_answer_is_exit_3(workspace: Workspace) -> None:
    done = workspace.ragscore("run", "suite.yaml", PREFECT_API_URL="http://127.0.0.1:9/api")
    assert done.returncode == 3
    assert "the Prefect API does not answer" in done.stderr
    assert not workspace.history.exists()


@pytest.mark.skipif(os.name == "nt", reason="rights of POSIX")
def test_a_place_that_cannot_be_written_is_said_before_the_target_is_asked(workspace: Workspace) -> None:
    place = workspace.folder / "locked"
    place.write_text("a file where the folder should be")
    done = workspace.ragscore("run", "suite.yaml", RAGSCORE_HOME=str(place))
    assert done.returncode == 3
    assert done.stderr.splitlines()[-1].startswith("error: ")
    assert "Traceback" not in done.stderr
    assert workspace.calls() == []
    assert stat.S_ISREG(place.stat().st_mode)
