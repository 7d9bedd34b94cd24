"""The commands that read, move and prune the history, as real processes in a user's folder."""

from __future__ import annotations

import csv
import io
import json
import shutil

import duckdb
import pytest

from ragscore.history import History
from ragscore.history.inbox import folder_of
from ragscore.history.trends import trends
from tests.history.example import example
from tests.history.test_connection import held
from tests.workspace import Workspace, items


@pytest.fixture
def filled(workspace: Workspace) -> Workspace:
    """A folder whose history holds the runs of `tests.history.example`."""
    example(workspace.history)
    return workspace


def test_trend_draws_bars_and_lists_points_with_change_and_gate(filled: Workspace) -> None:
    shown = filled.ragscore("trend", "docs", "--scorer", "context_recall")
    assert shown.returncode == 0, shown.stderr
    lines = shown.stdout.splitlines()
    assert lines[1] == "context_recall  docs · docs-search"
    assert lines[2].split()[0] == "▆▆▁█"
    assert [line.split() for line in lines[4:]] == [
        ["run-1", "v1", "0.75", "4", "100%", "pass"],
        ["run-2", "v1", "0.75", "0.00", "4", "100%", "pass"],
        ["run-3", "v2", "0.58", "-0.17", "4", "100%", "fail"],
        ["run-4", "v3", "0.83", "+0.25", "4", "100%", "inconclusive"],
    ]
    by_version = json.loads(filled.ragscore("trend", "--by", "version", "--where", "n > 0", "--json").stdout)
    assert [point["label"] for point in by_version[1]["points"]] == ["v1", "v2", "v3"]
    assert filled.ragscore("trend", "dogs").stderr.startswith("error: ")
    assert filled.ragscore("trend", "--where", "n > 99").stdout == "no run fits\n"


def test_a_trend_of_runs_with_another_scale_compares_their_shares(workspace: Workspace) -> None:
    for scale in (1, 10):
        workspace.write_suite(scorers=[{"context_recall": {"scale": scale}}])
        assert workspace.ragscore("run", "suite.yaml").returncode == 0
    _, _, line, _, first, second = workspace.ragscore("trend").stdout.splitlines()
    assert line.split() == ["▄▄", "10.00", "to", "10.00", "of", "10"]
    assert first.split()[2:] == ["1.00", "4", "100%", "of", "1"]
    assert second.split()[2:] == ["10.00", "4", "100%"]
    (trend,) = json.loads(workspace.ragscore("trend", "--json").stdout)
    assert [(point["mean"], point["scale"]) for point in trend["points"]] == [(1.0, 1.0), (10.0, 10.0)]


@pytest.mark.e2e
def test_a_stream_that_takes_ascii_only_gets_ascii_and_no_command_fails_on_it(workspace: Workspace) -> None:
    workspace.write_items([{"id": "茶", "input": "What about tea 茶?", "reference": "茶は葉から作られる。"}])
    workspace.write_suite(name="飲み物")
    assert workspace.ragscore("run", "suite.yaml").returncode == 0
    asked = (["run", "suite.yaml"], ["runs"], ["show", "last"], ["show", "last", "--item", "茶"], ["trend"])
    for command in (*asked, ["compare", "v1", "last"], ["show", "last", "--json"]):
        done = workspace.ragscore(*command, PYTHONIOENCODING="ascii", COLUMNS="60")
        assert done.returncode == 0, done.stderr
        assert done.stdout.isascii()
        assert done.stderr.isascii()
        assert "\\u8336" in done.stdout or "\\u98f2" in done.stdout or command[0] == "compare"
    plain = workspace.ragscore("show", "last", "--item", "茶", LC_ALL="C", PYTHONUTF8="").stdout
    assert "茶" in plain
    assert "x missing" in plain or "+ supported" in plain


def test_sql_comes_from_a_file_or_the_command_line_and_not_both(filled: Workspace) -> None:
    (filled.folder / "q.sql").write_text("create temp table t as select 1 as x;\nselect x from t;\n", encoding="utf-8")
    assert json.loads(filled.ragscore("sql", "-f", "q.sql", "--json").stdout) == [{"x": 1}]
    for wrong in (["sql"], ["sql", "select 1", "-f", "q.sql"], ["sql", "-f", "none.sql"], ["sql", "-- nothing"]):
        done = filled.ragscore(*wrong)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("error: ")


def test_sql_keeps_columns_of_the_same_name_apart_in_json_as_duckdb_does(filled: Workspace) -> None:
    same = "select 1 as a, 2 as a, 3 as a_1, 4 as b"
    assert json.loads(filled.ragscore("sql", same, "--json").stdout) == [{"a": 1, "a_1": 2, "a_1_1": 3, "b": 4}]
    assert filled.ragscore("sql", same, "--format", "parquet", "-o", "same.parquet").returncode == 0
    assert duckdb.read_parquet(str(filled.folder / "same.parquet")).columns == ["a", "a_1", "a_1_1", "b"]


def test_sql_writes_csv_json_and_parquet(filled: Workspace) -> None:
    query = (
        "select null as a, '' as b, 'x,\"y\"' as c, [1, 2] as d, true as e, '{\"k\": 1}'::json as f, 'nan'::double as g"
    )
    text = filled.ragscore("sql", query, "--format", "csv").stdout
    assert text == 'a,b,c,d,e,f,g\n,"","x,""y""","[1, 2]",true,"{""k"": 1}",nan\n'
    assert next(csv.DictReader(io.StringIO(text)))["c"] == 'x,"y"'
    (row,) = json.loads(filled.ragscore("sql", query, "--format", "json").stdout)
    assert row == {"a": None, "b": "", "c": 'x,"y"', "d": [1, 2], "e": True, "f": {"k": 1}, "g": None}
    done = filled.ragscore("sql", "from score_history", "--format", "parquet", "-o", "s.parquet")
    assert done.returncode == 0, done.stderr
    assert len(duckdb.read_parquet(str(filled.folder / "s.parquet")).fetchall()) == 8
    assert filled.ragscore("sql", "select 1", "--format", "parquet").returncode == 2
    assert filled.ragscore("sql", "select 1 as x", "--format", "csv", "-o", "x.csv").stdout == ""
    assert (filled.folder / "x.csv").read_bytes() == b"x\n1\n"


def test_control_characters_are_shown_and_not_sent_to_the_terminal(filled: Workspace) -> None:
    query = "select 'a' || chr(27) || '[31mred' || chr(155) || '1m' as x"
    assert "a␛[31mred\ufffd1m" in filled.ragscore("sql", query).stdout
    for format in ("table", "json"):
        shown = filled.ragscore("sql", query, "--format", format).stdout
        assert "\x1b" not in shown
        assert "\x9b" not in shown
    (row,) = json.loads(filled.ragscore("sql", query, "--json").stdout)
    assert row["x"] == "a\x1b[31mred\x9b1m"


def test_sql_reaches_other_files_only_when_told(filled: Workspace) -> None:
    query = "select count(*) as n from read_json('questions.jsonl')"
    assert filled.ragscore("sql", query).returncode == 2
    assert json.loads(filled.ragscore("sql", query, "--allow-external", "--json").stdout) == [{"n": 4}]
    assert filled.ragscore("sql", "delete from runs", "--allow-external").returncode == 2


def test_a_run_goes_from_one_host_to_another_through_an_inbox(filled: Workspace) -> None:
    left = filled.ragscore("export", "last", "--inbox", "shared")
    assert left.returncode == 0, left.stderr
    taken = filled.ragscore("ingest", "shared", "--history", "other.duckdb", "--json")
    assert [(each["batches"], each["run_ids"]) for each in json.loads(taken.stdout)] == [(1, ["run-4"])]
    assert not (filled.folder / "shared").exists()
    address = (filled.folder / "remote").as_uri()
    assert filled.ragscore("export", "run-3", "--inbox", address).returncode == 0
    taken = filled.ragscore("ingest", address, "--history", "other.duckdb")
    assert taken.stdout == f"{address}: 1 batch of 1 run, 9 rows were new\n".replace("9 rows", "17 rows")
    assert (
        filled.ragscore("ingest").stdout == f"{folder_of(filled.history).relative_to(filled.folder)}: nothing waits\n"
    )
    assert filled.ragscore("ingest", "nowhere").returncode == 2


def test_histories_of_several_jobs_are_merged(filled: Workspace) -> None:
    shutil.copy(filled.history, filled.folder / "a.duckdb")
    first = filled.ragscore("merge", "a.duckdb", ".ragscore/history.duckdb", "--history", "all.duckdb", "--json")
    assert [len(each["new_runs"]) for each in json.loads(first.stdout)] == [4, 0]
    again = filled.ragscore("merge", "a.duckdb", "--history", "all.duckdb")
    assert again.stdout == "a.duckdb: 0 new runs, 4 known ones; no new rows\n"
    assert filled.ragscore("merge").returncode == 2
    assert filled.ragscore("merge", "none.duckdb").returncode == 2


def test_prune_tells_what_goes_and_does_it_only_when_told(filled: Workspace) -> None:
    told = filled.ragscore("prune", "--keep", "1")
    assert told.returncode == 0, told.stderr
    assert "stays: run-2, the last run of docs that passed its gate" in told.stdout
    assert "2 runs, with " in told.stdout
    assert "would go; nothing was changed" in told.stdout
    assert len(History(filled.history).runs()) == 4
    done = json.loads(filled.ragscore("prune", "--keep", "1", "--yes", "--json").stdout)
    assert (done["done"], done["runs"], done["kept"]) == (True, ["run-3", "run-1"], 2)
    assert len(History(filled.history).runs()) == 2
    assert filled.ragscore("prune", "--keep", "9999d").stdout == "nothing to take out. 2 runs stay.\n"
    for wrong in ("0", "-1", "many", "0d"):
        assert filled.ragscore("prune", f"--keep={wrong}").returncode == 2
    assert filled.ragscore("prune").returncode == 2


def test_export_writes_a_file_per_table(filled: Workspace) -> None:
    done = filled.ragscore("export", "--to", "out", "--format", "jsonl")
    assert done.returncode == 0, done.stderr
    assert "33 scores" in done.stdout
    lines = (filled.folder / "out" / "scores.jsonl").read_text(encoding="utf-8").splitlines()
    assert len([json.loads(line) for line in lines]) == 33
    assert filled.ragscore("export", "--to", "out").returncode == 2
    assert filled.ragscore("export", "--inbox", "x").returncode == 2


def test_the_commands_of_the_documentation_do_what_it_says(filled: Workspace) -> None:
    from tests.history.test_cookbook import PAGE

    shutil.copy(filled.history, filled.folder / "other.duckdb")
    shutil.copy(filled.history, filled.folder / "old.duckdb")
    (filled.folder / "question.sql").write_text("from runs", encoding="utf-8")
    lines = [line for block in PAGE.split("```sh\n")[1:] for line in block.split("```")[0].splitlines()]
    lines += [part for part in PAGE.split("`") if part.startswith("ragscore merge old")]
    assert len(lines) >= 11
    import shlex

    for line in lines:
        done = filled.ragscore(*shlex.split(line, comments=True)[1:])
        assert done.returncode == 0, f"{line}: {done.stderr}"


def test_a_limit_below_one_is_no_fault_of_ours(filled: Workspace) -> None:
    for command in ("runs", "trend"):
        done = filled.ragscore(command, "--limit", "-1")
        assert (done.returncode, done.stderr) == (2, "error: --limit is less than 1\n")


def test_runs_show_gate_and_what_was_written_as_json(filled: Workspace) -> None:
    newest = json.loads(filled.ragscore("runs", "--json").stdout)[0]
    assert (newest["gate_verdict"], newest["expected_scores"], newest["written_scores"]) == ("inconclusive", 8, 8)


def test_a_reader_waits_for_a_writer(filled: Workspace) -> None:
    import subprocess

    with held(filled.history):
        waiting = subprocess.Popen(
            filled.command("sql", "select count(*) as n from runs", "--json"),
            cwd=filled.folder,
            env=filled.environment(),
            stdout=subprocess.PIPE,
            text=True,
        )
        with pytest.raises(subprocess.TimeoutExpired):
            waiting.wait(timeout=2)
    assert json.loads(waiting.communicate(timeout=60)[0]) == [{"n": 4}]


@pytest.mark.parametrize(("flag", "left"), [("--errors-only", {"mate"}), ("--missing-only", {"tea"}), (None, set())])
def test_resume_does_what_is_missing_or_what_failed_or_both(
    workspace: Workspace, flag: str | None, left: set[str]
) -> None:
    workspace.order(**{"What_about_tea?": "raise"})
    workspace.ragscore("run", "suite.yaml")
    with duckdb.connect(workspace.history) as connection:  # as if the run had been killed before its last item
        for table in ("scores", "verdicts", "items", "contexts", "context_sets"):
            connection.execute(f"DELETE FROM {table} WHERE item_id = 'mate'")
    workspace.order()
    done = workspace.ragscore("resume", *([flag] if flag else []))
    assert done.returncode == (3 if left else 0)
    found = workspace.sql("select distinct item_id from latest_scores where status = 'ok'")
    assert {item for (item,) in found} == {row["id"] for row in items()} - left
    assert workspace.ragscore("resume", "--missing-only", "--errors-only").returncode == 2


def test_a_suite_that_keeps_no_texts_asks_again_on_resume(workspace: Workspace) -> None:
    workspace.write_suite(store_text="hash")
    workspace.order(**{"What_about_tea?": "raise"})
    workspace.ragscore("run", "suite.yaml")
    assert b"Camellia" not in workspace.history.read_bytes()
    workspace.order()
    done = workspace.ragscore("resume")
    assert done.returncode == 0, done.stderr
    assert b"Camellia" not in workspace.history.read_bytes()
    assert workspace.sql("select distinct status from latest_scores") == [("ok",)]
    assert workspace.ragscore("show", "last", "--item", "tea").returncode == 0


def test_a_scorer_that_counts_otherwise_is_said_and_its_change_is_none(workspace: Workspace) -> None:
    row = {
        "id": "a",
        "input": "Tea?",
        "reference_context_ids": ["2"],
        "contexts": [{"id": id, "text": id} for id in "12"],
    }
    workspace.write_items([row])
    for k in (2, 1, 1):
        workspace.write_suite(
            scorers=[{"recall_at_k": {"k": k}}],
            target={"retriever": "r", "version": "v", "none": True},
            contexts={"item": True},
        )
        done = workspace.ragscore("run", "suite.yaml")
        assert done.returncode == 0, done.stderr
    (trend,) = trends(History(workspace.history))
    assert [(point.mean, point.change, point.settings) for point in trend.points] == [
        (1.0, None, "k: 2"),
        (0.0, None, "k: 1"),
        (0.0, 0.0, "k: 1"),
    ]
    told = workspace.ragscore("trend").stdout
    assert [line.rstrip().endswith("k: 1") for line in told.splitlines() if " v " in line] == [False, True, False]
