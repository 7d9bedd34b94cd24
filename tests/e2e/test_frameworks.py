"""Retrievers, chains, query engines and pipelines of the real frameworks, asked as they are.

Needs langchain-core, llama-index-core and haystack-ai; what is not installed is skipped.
"""

from __future__ import annotations

import asyncio
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ragscore.assembly import assemble
from ragscore.engine import evaluate_locally
from ragscore.history import History, select
from ragscore.items import Item, Response
from ragscore.runs import begin
from ragscore.suite_file import check_suite
from ragscore.targets import Target, make_target

# The frameworks warn of their own deprecations when they are imported.
pytestmark = [pytest.mark.e2e, pytest.mark.filterwarnings("ignore")]

LANGCHAIN = """
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnableParallel, RunnablePassthrough

class Retriever(BaseRetriever):
    def _get_relevant_documents(self, query, *, run_manager):
        first = Document(page_content=f"about {query}", metadata={"source": "tea.md"}, id="d1")
        return [first, Document(page_content="fog")]

retriever = Retriever()
model = FakeListChatModel(responses=["said"])
prompt = ChatPromptTemplate.from_template("{question} {context}")
parallel = RunnableParallel(context=retriever, question=RunnablePassthrough())
answering = parallel.assign(answer=prompt | model)
of_mapping = RunnablePassthrough.assign(context=RunnableLambda(lambda x: x["input"]) | retriever).assign(
    answer=ChatPromptTemplate.from_template("{input} {context}") | model | StrOutputParser()
)
of_text = ChatPromptTemplate.from_template("{question}") | model
agent = RunnableLambda(lambda state: {"messages": [
    *state["messages"],
    AIMessage("", tool_calls=[{"name": "search", "args": {}, "id": "1"}]),
    ToolMessage('[{"text": "about tea"}, {"text": "fog"}]', tool_call_id="1"),
    AIMessage("said"),
]}).with_types(input_type=dict)
def graph(messages):
    return agent.invoke({"messages": messages})
async def batch(question):
    return await retriever.ainvoke(question)
"""
LLAMA_INDEX = """
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode

class Retriever(BaseRetriever):
    def _retrieve(self, query_bundle):
        node = TextNode(text=f"about {query_bundle.query_str}", id_="n1", metadata={"source": "tea.md"})
        return [NodeWithScore(node=node, score=0.5), NodeWithScore(node=TextNode(text="fog"), score=0.25)]

retriever = Retriever()
engine = RetrieverQueryEngine(retriever, get_response_synthesizer(llm=MockLLM(), response_mode="compact"))
"""
HAYSTACK = """
from haystack import Document, Pipeline, component
from haystack.components.builders import PromptBuilder
from haystack.components.joiners import DocumentJoiner
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
from haystack.document_stores.in_memory import InMemoryDocumentStore

store = InMemoryDocumentStore()
store.write_documents([
    Document(id="h1", content="about tea", meta={"source": "tea.md"}),
    Document(id="h2", content="tea in the fog of the harbour"),
])

@component
class Model:
    @component.output_types(replies=list[str])
    def run(self, prompt: str):
        return {"replies": ["said"]}

@component
class Ranker:
    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document]):
        return {"documents": documents[:1]}

retriever = InMemoryBM25Retriever(store)

retrieval = Pipeline()
retrieval.add_component("retriever", InMemoryBM25Retriever(store))

pipeline = Pipeline()
pipeline.add_component("model", Model())
pipeline.add_component("ranker", Ranker())
pipeline.add_component("prompt", PromptBuilder("{% for d in documents %}{{ d.content }}{% endfor %} {{ question }}"))
pipeline.add_component("retriever", InMemoryBM25Retriever(store))
pipeline.connect("retriever.documents", "ranker.documents")
pipeline.connect("ranker.documents", "prompt.documents")
pipeline.connect("prompt.prompt", "model.prompt")

embedded = Pipeline()
@component
class NeedsVector:
    @component.output_types(documents=list[Document])
    def run(self, query_embedding: list[float]):
        return {"documents": []}
embedded.add_component("retriever", NeedsVector())
"""


def target_of(folder: Path, name: str, source: str, **more: Any) -> Target:
    module = name.partition(":")[0]
    (folder / f"{module}.py").write_text(source, encoding="utf-8")
    sys.modules.pop(module, None)
    written = {"python": name, **more}
    file = check_suite({"name": "n", "dataset": "d", "target": written}, base_dir=folder)
    return make_target(file.suite.target, written=written, base_dir=folder, where=partial(file.where, "target"))


def asked(folder: Path, name: str, source: str) -> Response:
    target = target_of(folder, name, source, timeout_s=60)
    return asyncio.run(target.invoke(Item("q", "tea")))


def seen(response: Response) -> list[tuple[str, str | None]]:
    """Text and id of each context."""
    return [(context.text, context.id) for context in response.contexts or ()]


@pytest.mark.parametrize(
    ("name", "output", "found"),
    [
        ("retriever", None, True),
        ("Retriever", None, True),
        ("retriever.ainvoke", None, True),
        ("batch", None, True),
        ("parallel", None, True),
        ("answering", "said", True),
        ("of_mapping", "said", True),
        ("of_text", "said", False),
    ],
)
def test_langchain(tmp_path: Path, name: str, output: str | None, found: bool) -> None:
    pytest.importorskip("langchain_core")
    response = asked(tmp_path, f"rs_langchain:{name}", LANGCHAIN)
    assert response.output == output
    if not found:
        assert response.contexts is None
        return
    assert seen(response) == [("about tea", "d1"), ("fog", None)]
    assert response.contexts is not None
    assert response.contexts[0].metadata == {"source": "tea.md"}


def test_messages_of_a_langchain_agent_give_their_documents(tmp_path: Path) -> None:
    pytest.importorskip("langchain_core")
    (tmp_path / "rs_langchain.py").write_text(LANGCHAIN, encoding="utf-8")
    sys.modules.pop("rs_langchain", None)
    (tmp_path / "d.jsonl").write_text('{"id": "a", "input": "tea", "reference": "about tea"}\n', encoding="utf-8")
    document = {
        "name": "n",
        "dataset": "d.jsonl",
        "target": {"python": "rs_langchain:graph"},
        "contexts": {"tool_results": True},
    }
    history = History(tmp_path / "history.duckdb")
    run = begin(assemble(check_suite(document, base_dir=tmp_path)), history)
    asyncio.run(evaluate_locally(run))
    history.finish_run(run.run_id, status="complete")
    assert select(history.path, "select text, context_set from contexts order by rank").rows == [
        ("about tea", "tool_results"),
        ("fog", "tool_results"),
    ]
    assert select(history.path, "select distinct output from items").rows == [("said",)]


@pytest.mark.parametrize("name", ["retriever", "Retriever", "retriever.aretrieve", "engine", "engine.aquery"])
def test_llama_index(tmp_path: Path, name: str) -> None:
    pytest.importorskip("llama_index.core")
    response = asked(tmp_path, f"rs_llama:{name}", LLAMA_INDEX)
    assert seen(response)[0] == ("about tea", "n1")
    assert response.contexts is not None
    assert [context.score for context in response.contexts] == [0.5, 0.25]
    assert response.contexts[0].metadata == {"source": "tea.md"}
    assert (response.output is not None) == name.startswith("engine")


@pytest.mark.parametrize(("name", "output"), [("retriever", None), ("retrieval", None), ("pipeline", "said")])
def test_haystack(tmp_path: Path, name: str, output: str | None) -> None:
    pytest.importorskip("haystack")
    response = asked(tmp_path, f"rs_haystack:{name}", HAYSTACK)
    assert response.output == output
    assert seen(response)[0] == ("about tea", "h1")
    assert len(seen(response)) == (1 if name == "pipeline" else 2)
    assert response.contexts is not None
    assert response.contexts[0].metadata == {"source": "tea.md"}
    assert response.contexts[0].score is not None


def test_a_haystack_pipeline_that_needs_more_than_the_question_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("haystack")
    with pytest.raises(Exception, match=r"whose retriever.query_embedding needs list\[float\] — write a function"):
        target_of(tmp_path, "rs_haystack:embedded", HAYSTACK)
