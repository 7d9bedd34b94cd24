"""Results of other tools in the history: each tool's shape, the mark, and that twice is once."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from ragscore.foreign.results import read_results
from tests.workspace import Workspace

RAGAS = (
    "user_input,retrieved_contexts,response,reference,context_recall,llm_context_precision_with_reference,tokens\n"
    "What is tea?,\"['Tea is a drink.', 'It rains.']\",A drink,Tea is a drink.,1.0,0.8333333333,812\n"
    "What is mate?,[],?,Mate is a drink.,0.5,,90\n"
)
DEEPEVAL = {
    "testCases": [
        {
            "name": "t1",
            "input": "What is tea?",
            "actualOutput": "A drink",
            "expectedOutput": "Tea is a drink.",
            "retrievalContext": ["Tea is a drink."],
            "metricsData": [
                {"name": "Contextual Recall", "score": 0.75, "reason": "most of it"},
                {"name": "Faithfulness", "score": None, "error": "timeout"},
            ],
        }
    ]
}
PROMPTFOO = {
    "results": {
        "results": [
            {
                "vars": {"query": "What is tea?", "context": "Tea is a drink."},
                "response": {"output": "A drink"},
                "gradingResult": {
                    "componentResults": [
                        {"assertion": {"type": "context-recall"}, "score": 0.5, "reason": "half"},
                        {"assertion": {"type": "latency"}, "score": 1},
                    ]
                },
            }
        ]
    }
}
MLFLOW = {
    "columns": ["inputs", "outputs", "faithfulness/v1/score", "faithfulness/v1/justification", "length/v1/score"],
    "data": [["What is tea?", "A drink", 4, "mostly", 812], ["What is mate?", "?", 1, "no", 90]],
}


def write(workspace: Workspace, name: str, content: Any) -> Path:
    path = workspace.folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def taken_in(workspace: Workspace, name: str, content: Any, *more: str) -> dict[str, Any]:
    write(workspace, name, content)
    done = workspace.ragscore("import", name, "--suite", "drinks", "--json", *more)
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


@pytest.mark.parametrize(
    ("name", "content", "tool", "expected", "skipped"),
    [
        (
            "r.csv",
            RAGAS,
            "ragas",
            {"context_recall": 0.75, "context_precision": 0.8333},
            ["tokens: not within 0 and 1"],
        ),
        ("d.json", DEEPEVAL, "deepeval", {"context_recall": 0.75, "faithfulness": None}, []),
        ("p.json", PROMPTFOO, "promptfoo", {"context_recall": 0.5, "latency": 1.0}, []),
        (
            "m.json",
            MLFLOW,
            "mlflow",
            {"faithfulness": 2.5},
            ["length/v1/score: neither within 0 and 1 nor grades of 1 to 5"],
        ),
    ],
)
def test_results_become_a_run_that_is_marked_as_foreign(
    workspace: Workspace, name: str, content: Any, tool: str, expected: dict[str, Any], skipped: list[str]
) -> None:
    told = taken_in(workspace, name, content, "--version", "v0", "--at", "2026-01-02")
    assert (told["tool"], told["skipped"], told["is_new"]) == (tool, skipped, True)
    means = dict(workspace.sql("select scorer, mean from score_history"))
    assert means == expected
    runs = workspace.sql("select judge, trigger, status, version, started_at::date::text from runs")
    assert runs == [(f"foreign:{tool}", "import", "complete", "v0", "2026-01-02")]
    assert workspace.sql("select distinct kind from scores") == [("foreign",)]
    again = taken_in(workspace, name, content, "--version", "v0", "--at", "2026-01-02")
    assert (again["is_new"], again["run_id"]) == (False, told["run_id"])
    assert workspace.sql("select count(*) from runs") == [(1,)]


def test_a_score_that_the_tool_does_not_have_is_none_and_says_why(workspace: Workspace) -> None:
    taken_in(workspace, "d.json", DEEPEVAL)
    rows = workspace.sql("select scorer, status, score, error from scores order by 1")
    assert rows == [("context_recall", "ok", 0.75, None), ("faithfulness", "scorer_error", None, "timeout")]


def test_a_trend_begins_with_what_was_imported(workspace: Workspace) -> None:
    taken_in(workspace, "r.csv", RAGAS, "--version", "v0", "--at", "2026-01-02")
    assert workspace.ragscore("run", "suite.yaml").returncode == 0
    query = "select version, judge, mean from score_history where scorer = 'context_recall' order by started_at"
    assert workspace.sql(query) == [("v0", "foreign:ragas", 0.75), ("v1", "offline-lexical-1", 1.0)]
    assert workspace.ragscore("show", "last").returncode == 0


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("x.json", {"a": 1}, "is no result file of a tool that is known"),
        ("x.json", "{", "is not JSON"),
        ("x.csv", "user_input,reference\na,b\n", "holds no scores of ragas"),
        ("x.json", {"testCases": [{"metricsData": [{"name": "F", "score": 1}]}]}, "item 1: input: is missing or empty"),
        ("x.json", {"results": {"results": [7]}}, "is not as promptfoo writes its results"),
        (
            "x.json",
            {"results": {"results": [{"provider": {"id": name}, "vars": {"question": "q?"}} for name in "ab"]}},
            "x.json: holds the results of 2 systems (a, prompt 1; b, prompt 1)",
        ),
        (
            "x.json",
            {"results": {"results": [{"provider": "a", "promptIdx": n, "vars": {"question": "q?"}} for n in (0, 1)]}},
            "x.json: holds the results of 2 systems (a, prompt 1; a, prompt 2)",
        ),
        ("x.csv", "question,[a] {{q}},Named Scores,[b] {{q}}\nq?,x,{},y\n", "x.csv: holds the results of 2 systems"),
    ],
)
def test_what_is_no_result_file_is_one_line_and_nothing_is_written(
    workspace: Workspace, name: str, content: Any, said: str
) -> None:
    write(workspace, name, content)
    done = workspace.ragscore("import", name, "--suite", "drinks")
    assert done.returncode == 2
    assert said in done.stderr
    assert not workspace.history.exists()


def test_no_score_takes_the_place_of_another(workspace: Workspace) -> None:
    both = {"llm_context_precision_with_reference": 0.25, "llm_context_precision_without_reference": 1}
    ragas = read_results(write(workspace, "ragas.json", [{"user_input": "What is tea?", **both}]))
    assert {name: float(each.exact or 0) for name, each in ragas.items[0].scores.items()} == both

    asked = [("is polite", 0, "rude"), ("is short", 1, "short")]
    components = [
        {"assertion": {"type": "llm-rubric", "value": value}, "score": score, "reason": reason}
        for value, score, reason in asked
    ]
    result = {"vars": {"query": "?"}, "response": {"output": "!"}, "gradingResult": {"componentResults": components}}
    promptfoo = read_results(write(workspace, "promptfoo.json", {"results": {"results": [result]}}))
    (score,) = promptfoo.items[0].scores.values()
    assert (score.exact, score.reason) == (Fraction(1, 2), "rude\nshort")


def test_the_worst_grade_of_mlflow_is_not_perfect(workspace: Workspace) -> None:
    columns = ["inputs", "answer_correctness/v1/score", "exact_match/v1/score"]
    (item,) = read_results(write(workspace, "mlflow.json", {"columns": columns, "data": [["?", 1, 1]]})).items
    found = {name: (score.exact, score.scale) for name, score in item.scores.items()}
    whole = Fraction(1)
    assert found == {"answer_correctness": (Fraction(1, 5), Fraction(5)), "exact_match": (whole, whole)}


@pytest.mark.parametrize("mark", ["\u2028", "\x85", "\x0c"])
def test_what_only_unicode_takes_for_the_end_of_a_line_ends_none(workspace: Workspace, mark: str) -> None:
    asked = f"What is{mark}tea?"
    row = json.dumps({"user_input": asked, "context_recall": 0.5}, ensure_ascii=False)
    named = {
        "rows.jsonl": f"{row}\r\n{row}\r\n",
        "rows.csv": f"user_input,context_recall\r\n{asked},0.5\r\n{asked},1\r\n",
    }
    for name, text in named.items():
        results = read_results(write(workspace, name, text))
        assert [item.row["input"] for item in results.items] == [asked, asked]


def test_a_cell_may_be_as_long_as_the_contexts_of_an_item(workspace: Workspace) -> None:
    contexts = ["x" * 140_000]
    path = write(workspace, "long.csv", f'user_input,retrieved_contexts,context_recall\n?,"{contexts}",0.5\n')
    assert read_results(path).items[0].row["contexts"] == contexts
