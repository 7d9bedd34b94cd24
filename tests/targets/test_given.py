"""The target `none`: the dataset holds what was answered and retrieved."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ragscore.assembly import assemble
from ragscore.engine import evaluate_locally
from ragscore.errors import ConfigError, SuiteError
from ragscore.history import History
from ragscore.items import Context, Item
from ragscore.runs import begin
from ragscore.suite_file import check_suite, read_suite
from ragscore.targets.given import GivenTarget
from tests.workspace import Workspace, items


def carried_out(workspace: Workspace, **changes: Any) -> None:
    workspace.write_suite(**changes)
    run = begin(assemble(read_suite(workspace.suite)), History(workspace.history))
    asyncio.run(evaluate_locally(run))
    assert run.history.finish_run(run.run_id, status="complete").ok


@pytest.mark.parametrize("target", ["none", {"none": True, "version": "v1"}])
@pytest.mark.parametrize("contexts", [None, {"item": True}, {"response": True}])
def test_contexts_of_the_dataset_are_judged_and_nothing_is_called(
    workspace: Workspace, target: Any, contexts: Any
) -> None:
    workspace.write_items([{**row, "contexts": ["fog", row["reference"]], "output": "said"} for row in items()])
    carried_out(workspace, target=target, contexts=contexts)
    assert workspace.sql("select distinct scorer, status, score from scores order by 1") == [
        ("context_precision", "ok", 0.5),
        ("context_recall", "ok", 1.0),
    ]
    assert workspace.sql("select distinct output, latency_ms from items") == [("said", None)]
    assert workspace.sql("select distinct target from runs") == [("none",)]
    assert workspace.calls() == []


def test_only_the_first_contexts_are_judged_where_the_suite_says_so(workspace: Workspace) -> None:
    workspace.write_items([{**row, "contexts": ["fog", row["reference"]]} for row in items()])
    carried_out(workspace, target={"none": True, "top_k": 1})
    assert workspace.sql("select distinct score from scores") == [(0.0,)]


def test_other_columns_are_a_response_for_extractors(workspace: Workspace) -> None:
    workspace.write_items([{**row, "hits": [{"text": row["reference"], "id": "h"}]} for row in items()])
    carried_out(workspace, target="none", contexts="hits")
    assert workspace.sql("select distinct status, score from scores") == [("ok", 1.0)]
    assert workspace.sql("select distinct context_set, context_id from contexts") == [("path:hits", "h")]


async def test_an_agents_messages_are_its_response() -> None:
    talk = [
        {"role": "assistant", "content": "", "tool_calls": []},
        {"role": "tool", "content": "found"},
        {"role": "assistant", "content": "said"},
    ]
    asked = {"messages": [{"role": "user", "content": "why?"}]}
    response = await GivenTarget(need_raw=True).invoke(Item("q", "why?", metadata={**asked, "output_messages": talk}))
    assert (response.output, response.raw["messages"]) == ("said", talk)
    response = await GivenTarget(need_raw=True).invoke(Item("q", "why?", metadata=asked))
    assert response.output is None


async def test_raw_is_made_only_where_an_extractor_looks_at_it() -> None:
    item = Item("q", "why?", contexts=(Context("a"),), output="said", metadata={"x": 1})
    assert (await GivenTarget().invoke(item)).raw is None
    raw = (await GivenTarget(need_raw=True).invoke(item)).raw
    assert (raw["x"], raw["output"], raw["contexts"][0]["text"]) == (1, "said", "a")


def test_a_dataset_without_contexts_is_refused_before_anything_runs(workspace: Workspace) -> None:
    workspace.write_suite(target="none")
    with pytest.raises(ConfigError, match="no row of the dataset has `contexts`, and no target is called"):
        assemble(read_suite(workspace.suite))
    workspace.write_suite(target="none", contexts={"static": ["fixed"]})
    assemble(read_suite(workspace.suite))


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ({"none": True, "python": "a:b"}, "a target is called in one way, not by python and none; remove one"),
        ({"command": ["x"], "http": {"url": "http://h", "json": "{{ input }}"}}, "not by http and command; remove one"),
        ({"version": "1"}, "the target needs `python: module:callable`, or one of http, command, plugin, none"),
        ({"command": []}, "is empty"),
        ({"none": True, "rps": 0}, "0 is out of range"),
        ({"none": True, "top_k": 0}, "0 is out of range"),
    ],
)
def test_a_target_is_called_in_exactly_one_way(target: Any, said: str) -> None:
    with pytest.raises(SuiteError) as caught:
        check_suite({"name": "n", "dataset": "d", "target": target})
    assert said in str(caught.value)
