"""What targets return, recognised by shape; what cannot be read is a failure that names it."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import AsyncIterator, Iterator
from types import SimpleNamespace
from typing import Any

import numpy
import pytest
from pydantic import BaseModel

from ragscore.items import Context
from ragscore.targets import TargetFailure
from ragscore.targets.shapes import context_of, response_of


@dataclasses.dataclass
class Answer:
    output: str
    contexts: list[Any]


class Model(BaseModel):
    answer: str
    documents: list[str]


class Document(BaseModel):
    page_content: str
    metadata: dict[str, Any] = {}


@dataclasses.dataclass(slots=True)
class Unknown:
    number: int


class Plain:
    def __init__(self) -> None:
        self.response = "said"
        self.source_documents = [SimpleNamespace(page_content="p1", metadata={"page": 1}), SimpleNamespace(text="p2")]

    def text(self) -> str:
        raise AssertionError("methods are not called")


A, B = Context("a"), Context("b")


@pytest.mark.parametrize(
    ("value", "output", "contexts"),
    [
        ("text", "text", None),
        ("", "", None),
        (["a", "b"], None, (A, B)),
        (("a", "b"), None, (A, B)),
        ([], None, ()),
        ((), None, ()),
        (("said", ["a", "b"]), "said", (A, B)),
        (("said", []), "said", ()),
        (["a", {"text": "b"}], None, (A, B)),
        ([Context("a", id="1", score=0.5)], None, (Context("a", id="1", score=0.5),)),
        (numpy.array(["a", "b"]), None, (A, B)),
        ({"output": "said"}, "said", None),
        ({"output": "said", "contexts": ["a"]}, "said", (A,)),
        ({"output": "said", "contexts": ("a", "b")}, "said", (A, B)),
        ({"output": "said", "contexts": numpy.array(["a", "b"])}, "said", (A, B)),
        ({"output": "said", "contexts": None}, "said", None),
        ({"contexts": []}, None, ()),
        ({"answer": "said", "documents": [{"content": "a"}]}, "said", (A,)),
        ({"response": "said", "contexts": None, "source_documents": ["a"]}, "said", (A,)),
        (Answer("said", ["a"]), "said", (A,)),
        (Model(answer="said", documents=["a"]), "said", (A,)),
        ([Document(page_content="a")], None, (A,)),
        (SimpleNamespace(output="said", contexts=["a"]), "said", (A,)),
        (Plain(), "said", (Context("p1", metadata={"page": 1}), Context("p2"))),
    ],
    ids=lambda value: str(value).partition(" at 0x")[0][:40],
)
def test_text_contexts_or_both_are_recognised(
    value: Any, output: str | None, contexts: tuple[Context, ...] | None
) -> None:
    response = response_of(value)
    assert (response.output, response.contexts) == (output, contexts)


@pytest.mark.parametrize(
    ("value", "output", "contexts"),
    [
        ({"retriever": {"documents": ["a"]}}, None, (A,)),
        ({"retriever": {"documents": ["a", "b"]}, "ranker": {"documents": ["b"]}}, None, (B,)),
        ({"retriever": {"documents": ["a"]}, "llm": {"replies": ["said"], "meta": [{}]}}, "said", (A,)),
        ({"llm": {"replies": [SimpleNamespace(text="said")]}}, "said", None),
        ({"builder": {"answers": [SimpleNamespace(data="said", documents=["a"])]}}, "said", (A,)),
        ({"retriever": {"documents": []}}, None, ()),
    ],
    ids=str,
)
def test_the_result_of_a_pipeline_is_read_from_its_components(
    value: Any, output: str | None, contexts: tuple[Context, ...] | None
) -> None:
    response = response_of(value)
    assert (response.output, response.contexts) == (output, contexts)


def endless() -> Iterator[str]:
    return (str(number) for number in itertools.count())


async def streamed() -> AsyncIterator[str]:
    yield "a"


@pytest.mark.parametrize(
    ("value", "named"),
    [
        (None, "NoneType"),
        (3, "int"),
        (b"text", "bytes"),
        ({}, "empty dict"),
        ({"foo": 1, "bar": 2}, "dict with the keys foo, bar"),
        ({"text": "one piece alone"}, "dict with the keys text"),
        (Unknown(1), "Unknown"),
        (Answer, "type"),
        ({"a"}, "set"),
        (object(), "object"),
        (endless(), "generator; "),
        (map(str, [1]), "map; "),
        (streamed(), "async_generator; "),
    ],
    ids=lambda value: str(value).partition(" at 0x")[0][:40],
)
def test_what_cannot_be_read_names_what_came_and_what_would_do(value: Any, named: str) -> None:
    with pytest.raises(TargetFailure) as caught:
        response_of(value)
    said = str(caught.value)
    assert said.startswith(f"returned {named.removesuffix('; ')}; expected text, a list of contexts")
    assert said.endswith("make a list of it") == named.endswith("; ")


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ([None], "number 1 is NoneType"),
        (["a", 3], "number 2 is int"),
        (["a", "b", {"foo": 1}], "number 3 is dict with the keys foo"),
        ({"output": "said", "contexts": ["a", {"text": None}]}, "number 2 is dict with the keys text"),
        ([["nested"]], "number 1 is list"),
        (numpy.array([1.0, 2.0]), "number 1 is float"),
    ],
    ids=str,
)
def test_a_context_without_text_is_named_by_its_place_and_never_left_out(value: Any, place: str) -> None:
    with pytest.raises(TargetFailure, match=f"returned contexts of which {place}; expected text"):
        response_of(value)


@pytest.mark.parametrize("value", [None, 3, {"foo": 1}, Unknown(1), [1, 2], {"contexts": [{"foo": 1}]}], ids=str)
def test_any_shape_will_do_when_contexts_come_from_elsewhere(value: Any) -> None:
    response = response_of(value, need_contexts=False)
    assert (response.output, response.contexts) == (None, None)


@pytest.mark.parametrize(
    ("value", "raw"),
    [
        (Answer("said", ["a"]), {"output": "said", "contexts": ["a"]}),
        (Model(answer="said", documents=["a"]), {"answer": "said", "documents": ["a"]}),
        ({"hits": numpy.array([[1, 2]]), "n": numpy.float32(0.5)}, {"hits": [[1, 2]], "n": 0.5}),
        (
            SimpleNamespace(output="o", contexts=[SimpleNamespace(text="a")]),
            {"output": "o", "contexts": [{"text": "a"}]},
        ),
        ({"data": b"\x00\xff", "s": {1}}, {"data": "AP8=", "s": [1]}),
    ],
    ids=lambda value: str(value).partition(" at 0x")[0][:40],
)
def test_the_response_is_kept_as_json_for_extractors(value: Any, raw: Any) -> None:
    assert response_of(value, need_contexts=False).raw == raw


@pytest.mark.parametrize(
    ("value", "context"),
    [
        ("a", A),
        ({"text": "a", "id": 0}, Context("a", id="0")),
        ({"content": "a", "_id": "x", "score": 2}, Context("a", id="x", score=2.0)),
        ({"page_content": "a", "metadata": {"page": numpy.int64(3)}}, Context("a", metadata={"page": 3})),
        ({"text": "a", "score": numpy.float32(0.5)}, Context("a", score=0.5)),
        ({"text": "a", "score": float("nan")}, A),
        ({"text": "a", "score": float("inf")}, A),
        ({"text": "a", "score": True}, A),
        ({"text": "a", "score": "0.5"}, A),
        ({"text": "", "id": None}, Context("")),
        ({"text": "a", "source": "f.md", "rank": 2}, Context("a", metadata={"source": "f.md", "rank": 2})),
        ({"text": "a", "url": "u", "metadata": {"url": "own"}}, Context("a", metadata={"url": "own"})),
        ({"content": "a", "meta": {"page": 1}}, Context("a", metadata={"page": 1})),
        ({"id": 1, "score": 2, "metadata": {"text": "a"}}, Context("a", id="1", score=2.0, metadata={"text": "a"})),
        ({"_id": "x", "_score": 2.5, "_source": {"body": "a"}}, Context("a", id="x", score=2.5)),
        ({"payload": {"document": "a", "id": "p"}}, Context("a", id="p")),
        ({"document": {"content": "a", "id": "d"}, "score": 1}, Context("a", id="d", score=1.0)),
        ({"node": {"text": "a", "metadata": {"m": 1}}, "score": 1}, Context("a", score=1.0, metadata={"m": 1})),
        (SimpleNamespace(id=1, score=0.5, payload={"text": "a"}), Context("a", id="1", score=0.5)),
        ((Document(page_content="a"), numpy.float32(0.5)), Context("a", score=0.5)),
        ([{"text": "a", "id": "x"}, 2], Context("a", id="x", score=2.0)),
        (("a", "b"), None),
        (({"title": "a"}, 1), None),
        ({"title": "a"}, None),
        ({"metadata": {"page": 1}}, None),
        (None, None),
    ],
    ids=str,
)
def test_a_context_is_text_with_id_score_and_metadata_under_the_usual_names(
    value: Any, context: Context | None
) -> None:
    assert context_of(value) == context
