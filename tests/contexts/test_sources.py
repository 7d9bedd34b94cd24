"""Context sources in whole runs: functions, tools of agents, top_k, and what is said when there is nothing."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ragscore.assembly import assemble
from ragscore.engine import evaluate_locally
from ragscore.errors import ConfigError, SuiteError
from ragscore.history import History
from ragscore.items import Batch
from ragscore.runs import Silent, begin
from ragscore.suite_file import check_suite, read_suite
from tests.workspace import Workspace, items

EXTRACTORS = """
import asyncio
def hits(input, output):
    return [hit["text"] for hit in output["hits"]]
async def hits_async(input, output):
    await asyncio.sleep(0)
    return output["hits"]
def of_item(input, output, item):
    return [item.metadata["gold"], f"{input} of {item.id}"]
class Extractor:
    def __call__(self, input, output, *, item):
        return [output["hits"][0]]
extractor = Extractor()
def fails(input, output):
    if "tea" in input:
        raise KeyError("no tea")
    return output["hits"]
def nothing(input, output):
    return []
def wrong(input, output):
    return 3
def only_one(input):
    return []
"""
SEARCH = {"python": "drinks:retrieve_async", "version": "v1"}


class Listener(Silent):
    """Keeps notes and stages in order."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def stage(self, name: str, batch: Batch) -> None:
        self.told.append(name)

    def note(self, text: str) -> None:
        self.told.append(text)


def carried_out(workspace: Workspace, **changes: Any) -> list[str]:
    (workspace.folder / "extractors.py").write_text(EXTRACTORS, encoding="utf-8")
    workspace.write_suite(**changes)
    listener = Listener()
    run = begin(assemble(read_suite(workspace.suite)), History(workspace.history), observer=listener)
    asyncio.run(evaluate_locally(run))
    assert run.history.finish_run(run.run_id, status="complete").ok
    return listener.told


@pytest.mark.parametrize("name", ["hits", "hits_async", "extractor"])
def test_a_function_gives_the_contexts(workspace: Workspace, name: str) -> None:
    carried_out(workspace, target=SEARCH, contexts={"function": f"extractors:{name}"})
    assert workspace.sql("select distinct status, score from scores") == [("ok", 1.0)]
    assert workspace.sql("select distinct context_set from contexts") == [(f"function:extractors:{name}",)]


def test_a_function_may_take_the_item_too(workspace: Workspace) -> None:
    workspace.write_items([{**row, "gold": row["reference"]} for row in items()])
    carried_out(workspace, target=SEARCH, contexts={"function": "extractors:of_item"})
    assert workspace.sql("select distinct score from scores where scorer = 'context_recall'") == [(1.0,)]
    assert workspace.sql("select text from contexts where item_id = 'tea' and rank = 2") == [
        ("What about tea? of tea",)
    ]


def test_a_function_that_fails_concerns_its_item_only(workspace: Workspace) -> None:
    carried_out(workspace, target=SEARCH, contexts={"function": "extractors:fails"})
    rows = workspace.sql("select item_id, status, error from scores where scorer = 'context_recall' order by 1")
    assert rows[-1] == ("tea", "context_error", "KeyError: 'no tea'")
    assert {status for item_id, status, _ in rows if item_id != "tea"} == {"ok"}
    carried_out(workspace, target=SEARCH, contexts={"function": "extractors:wrong"})
    said = workspace.sql("select distinct error from scores where context_set = 'function:extractors:wrong'")
    assert said == [("extractors:wrong gave int, not a list of texts",)]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("only_one", "extractors:only_one cannot be called with input and output: too many positional arguments"),
        ("hit", "extractors has no 'hit' — did you mean 'hits'?"),
    ],
)
def test_a_function_that_cannot_be_called_so_is_found_before_the_run(
    workspace: Workspace, name: str, said: str
) -> None:
    (workspace.folder / "extractors.py").write_text(EXTRACTORS, encoding="utf-8")
    workspace.write_suite(target=SEARCH, contexts={"function": f"extractors:{name}"})
    with pytest.raises(ConfigError) as caught:
        assemble(read_suite(workspace.suite))
    assert "suite.yaml:" in str(caught.value)
    assert said in str(caught.value)


AGENT = """
import json
from drinks import retrieve
def agent(messages):
    found = retrieve(messages[-1]["content"])
    return {"messages": [
        *messages,
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "1", "type": "function", "function": {"name": "search", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "1", "content": json.dumps([{"text": text} for text in found])},
        {"role": "assistant", "content": "said"},
    ]}
"""


def test_what_an_agents_tools_returned(workspace: Workspace) -> None:
    (workspace.folder / "agents.py").write_text(AGENT, encoding="utf-8")
    carried_out(workspace, target={"python": "agents:agent"}, contexts={"tool_results": "search"})
    assert workspace.sql("select distinct status, score from scores") == [("ok", 1.0)]
    assert workspace.sql("select distinct output, returned_contexts from items") == [("said", None)]
    assert workspace.sql("select context_set, count(*) from contexts group by 1") == [("tool_results:search", 8)]


def test_with_static_contexts_recall_takes_the_extractor_only_for_messages_in_and_out(workspace: Workspace) -> None:
    (workspace.folder / "agents.py").write_text(AGENT, encoding="utf-8")
    talk = [{"role": "user", "content": "What about tea?"}]
    workspace.write_items([{**row, **({"messages": talk} if row["id"] == "tea" else {})} for row in items()])
    both = {"static": ["fixed"], "tool_results": True}
    carried_out(workspace, target={"python": "agents:agent"}, contexts=both)
    found = dict(workspace.sql("select item_id, context_set from scores where scorer = 'context_recall'"))
    static = found.pop("coffee")
    assert static.startswith("static:")
    assert found == {"tea": "tool_results", "cocoa": static, "mate": static}
    by_precision = workspace.sql("select distinct context_set from scores where scorer = 'context_precision'")
    assert by_precision == [("tool_results",)]


def test_messages_without_an_extractor_say_which_one_there_is(workspace: Workspace) -> None:
    (workspace.folder / "agents.py").write_text(AGENT, encoding="utf-8")
    carried_out(workspace, target={"python": "agents:agent"})
    ((error,),) = workspace.sql("select distinct error from scores")
    assert "contexts: {tool_results: true}" in error


def test_top_k_cuts_what_was_extracted_and_not_what_is_static(workspace: Workspace) -> None:
    carried_out(workspace, target={**SEARCH, "top_k": 1}, contexts={"path": "hits", "static": ["a", "b", "c"]})
    counts = workspace.sql("select context_set, max(rank) from contexts group by 1 order by 1")
    assert [(name.partition(":")[0], most) for name, most in counts] == [("path", 1), ("static", 3)]


def test_no_contexts_at_all_is_said_before_any_judge_call_with_what_the_response_has(workspace: Workspace) -> None:
    told = carried_out(workspace, target=SEARCH, contexts={"function": "extractors:nothing"})
    note = told[told.index("extract_contexts") + 1]
    assert note == (
        "no contexts for any of the first 4 items by function:extractors:nothing: the first response has the keys "
        "answer, hits — is that the place? See `contexts:` in the suite"
    )
    assert told[told.index(note) + 1] == "judge"


def test_a_wrong_path_is_said_before_any_judge_call(workspace: Workspace) -> None:
    told = carried_out(workspace, target=SEARCH, contexts="docs[*].text", batch_size=2)
    notes = [each for each in told if " " in each]
    assert len(notes) == 1
    assert "first 2 items by path:docs[*].text: nothing at 'docs[*].text'; the response has the keys answer" in notes[0]


def test_nothing_is_said_when_any_item_of_the_first_batch_has_contexts(workspace: Workspace) -> None:
    workspace.order(**{"What_about_tea?": "nothing"})
    assert not [each for each in carried_out(workspace, target=SEARCH, contexts="hits") if " " in each]


def test_a_run_without_any_context_could_not_evaluate_and_says_so(workspace: Workspace) -> None:
    workspace.order(all_="nothing")
    workspace.write_suite(target=SEARCH, contexts="hits")
    done = workspace.ragscore("run", "suite.yaml", "--engine", "local")
    assert done.returncode == 3
    assert "no contexts for any item of context_recall and context_precision" in " ".join(done.stdout.split())
    workspace.order(**{"What_about_tea?": "nothing"})
    assert workspace.ragscore("run", "suite.yaml", "--engine", "local").returncode == 0


@pytest.mark.parametrize(
    ("contexts", "said"),
    [
        ({"path": "a[*"}, "contexts.path: 'a[*' is not a JMESPath expression"),
        ("a[*", "contexts: 'a[*' is not a JMESPath expression"),
        ({"path": "a", "tool_results": True}, "name one extractor, not path and tool_results"),
        ({"tool_results": False}, "leave it out instead of writing false"),
        ({"tool_results": []}, "names no tool"),
        ({"function": "no_colon"}, "contexts.function"),
        ({}, "name a source: response, item, path, tool_results, function or static"),
    ],
    ids=str,
)
def test_what_is_wrong_with_contexts_is_found_when_the_suite_is_read(contexts: Any, said: str) -> None:
    with pytest.raises(SuiteError) as caught:
        check_suite({"name": "n", "dataset": "d", "target": {"python": "a:b"}, "contexts": contexts})
    assert said in str(caught.value)
