"""What `python:` may name: functions, objects with invoke, query, retrieve or run, classes; and what it may not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ragscore.assembly import assemble
from ragscore.engine import evaluate_locally
from ragscore.errors import ConfigError
from ragscore.history import History
from ragscore.items import Item
from ragscore.runs import begin
from ragscore.suite_file import read_suite
from ragscore.targets import PythonTarget
from ragscore.targets.calling import way_to_call
from tests.workspace import Workspace

ITEM = Item("q1", "why?")
TALK = [
    {"role": "user", "content": "hi"},
    {"role": "assistant", "content": "yes?"},
    {"role": "user", "content": "why?"},
]


async def said(found: Any, item: Item = ITEM) -> Any:
    way = way_to_call(found, name="my_app:it", where="suite.yaml: target.python")
    return (await PythonTarget(way.function, argument=way.argument, need_contexts=False).invoke(item)).raw


def complaint(found: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        way_to_call(found, name="my_app:it", where="suite.yaml: target.python")
    return str(caught.value)


def with_method(name: str, answer: Callable[..., Any]) -> Any:
    return type("Custom", (), {name: answer})()


@pytest.mark.parametrize("name", ["invoke", "query", "retrieve", "run", "__call__"])
async def test_an_object_is_asked_by_the_method_that_it_has(name: str) -> None:
    assert await said(with_method(name, lambda self, text: f"{name} {text}")) == f"{name} why?"


@pytest.mark.parametrize("name", ["ainvoke", "aquery", "aretrieve", "run_async"])
async def test_an_object_that_is_async_only_is_asked_by_the_twin(name: str) -> None:
    async def answer(self: Any, text: str, config: Any = None) -> str:
        return f"{name} {text}"

    assert await said(with_method(name, answer)) == f"{name} why?"


async def test_the_blocking_method_is_taken_before_its_twin_and_query_before_retrieve() -> None:
    class Engine:
        def retrieve(self, text: str) -> str:
            return "retrieve"

        def query(self, text: str) -> str:
            return "query"

        async def aquery(self, text: str) -> str:
            return "aquery"

    assert await said(Engine()) == "query"
    assert await said(Engine().retrieve) == "retrieve"
    assert await said(Engine().aquery) == "aquery"


async def test_a_class_is_made_an_instance_once() -> None:
    made: list[int] = []

    class Retriever:
        def __init__(self, k: int = 3) -> None:
            made.append(k)

        def retrieve(self, text: str) -> str:
            return text

    way = way_to_call(Retriever, name="my_app:it", where="w")
    assert [way.function("a"), way.function("b"), made] == ["a", "b", [3]]


async def test_a_parameter_called_messages_gets_the_conversation() -> None:
    def agent(messages: list[Any]) -> Any:
        return {"got": messages}

    assert await said(agent) == {"got": [{"role": "user", "content": "why?"}]}
    assert await said(agent, Item("q", "why?", metadata={"messages": TALK})) == {"got": TALK}
    assert await said(lambda text: text, Item("q", "why?", metadata={"messages": TALK})) == "why?"


@pytest.mark.parametrize(
    ("schema", "given"),
    [
        ({"type": "string"}, "why?"),
        ({"type": "object", "properties": {"question": {}}, "required": ["question"]}, {"question": "why?"}),
        ({"type": "object", "properties": {"input": {}}}, {"input": "why?"}),
        ({"type": "object", "properties": {"messages": {}, "step": {}}}, {"messages": TALK}),
        ({"type": "object", "properties": {"a": {}, "b": {}}}, "why?"),
        (ValueError("cannot tell"), "why?"),
    ],
    ids=str,
)
async def test_a_chain_is_given_the_mapping_that_it_takes(schema: Any, given: Any) -> None:
    class Chain:
        def get_input_jsonschema(self) -> Any:
            if isinstance(schema, Exception):
                raise schema
            return schema

        def invoke(self, input: Any, config: Any = None, **more: Any) -> Any:
            return {"given": input}

    assert await said(Chain(), Item("q", "why?", metadata={"messages": TALK})) == {"given": given}


class NeedsArguments:
    def __init__(self, index: str) -> None: ...

    def retrieve(self, text: str) -> None: ...


def needs_two(text: str, k: int) -> None: ...


def needs_keyword(text: str, *, k: int) -> None: ...


def builds() -> None: ...


@pytest.mark.parametrize(
    ("found", "what", "mend"),
    [
        (needs_two, "cannot be called with the question alone: missing a required argument: 'k'", "give its other"),
        (needs_keyword, "cannot be called with the question alone: missing a required argument: 'k'", "give its other"),
        (builds, "cannot be called with the question alone: too many positional", "if it builds the retriever, write"),
        (
            NeedsArguments,
            "is a class, and NeedsArguments() fails: TypeError",
            "write e.g. `retriever = NeedsArguments(",
        ),
        (NeedsArguments.retrieve, "cannot be called with the question alone: missing a required argument", "give its"),
        (object(), "is a object, which has none of invoke, query, retrieve, run", "name a function, or an object"),
        ("text", "is a str, which has none of", "name a function"),
        ({"a": 1}, "is a dict, which has none of", "name a function"),
    ],
    ids=["two", "keyword", "none", "class", "unbound", "object", "text", "mapping"],
)
def test_what_cannot_be_asked_is_found_before_the_run(found: Any, what: str, mend: str) -> None:
    complained = complaint(found)
    assert complained.startswith(f"suite.yaml: target.python: my_app:it {what}")
    assert f" — {mend}" in complained
    assert "\n" not in complained


OBJECT = """
from drinks import retrieve
class Assistant:
    def retrieve(self, question):
        return retrieve(question)
assistant = Assistant()
def two(question, k):
    return []
"""


@pytest.mark.parametrize("name", ["assistant", "Assistant", "assistant.retrieve"])
def test_a_suite_may_name_an_object_a_class_or_a_method(workspace: Workspace, name: str) -> None:
    (workspace.folder / "objects.py").write_text(OBJECT, encoding="utf-8")
    workspace.write_suite(target={"python": f"objects:{name}", "top_k": 1, "rps": 10_000})
    run = begin(assemble(read_suite(workspace.suite)), History(workspace.history))
    asyncio.run(evaluate_locally(run))
    assert run.history.finish_run(run.run_id, status="complete").ok
    assert workspace.sql("select distinct status, score from scores") == [("ok", 1.0)]
    assert workspace.sql("select max(rank) from contexts") == [(1,)]


def test_a_function_that_needs_more_is_refused_before_anything_is_asked(workspace: Workspace) -> None:
    (workspace.folder / "objects.py").write_text(OBJECT, encoding="utf-8")
    workspace.write_suite(target={"python": "objects:two"})
    done = workspace.ragscore("run", "suite.yaml", "--engine", "local")
    assert done.returncode == 2
    assert "target.python: objects:two cannot be called with the question alone" in done.stderr
    assert not Path(workspace.folder / "calls.log").exists()
