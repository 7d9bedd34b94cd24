"""Where the contexts of an item come from, by the precedence of the design, and what is said when there are none."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ragscore.assembly import assemble
from ragscore.contexts import Resolver, resolver_for
from ragscore.contexts.path import compiled
from ragscore.engine import evaluate_locally
from ragscore.errors import SuiteError
from ragscore.history import History, item_detail
from ragscore.items import Context, ContextSet, Item, Response, Status
from ragscore.runs import begin
from ragscore.suite import ContextsPart
from ragscore.suite_file import read_suite
from tests.workspace import Workspace, items

ITEM = Item("q", "why?", contexts=(Context("of the row"),))
RESPONSE = Response("said", (Context("of the target"),), raw={"hits": [{"text": "by path"}]})
RECALL, PRECISION = "context_recall", "context_precision"


async def resolved(kind: str, item: Item = ITEM, response: Response = RESPONSE, /, **part: Any) -> ContextSet:
    declared = ContextsPart(**part) if part else None
    return await resolver_for(kind, declared, where="suite.yaml: contexts").resolve(item, response)


def texts(found: ContextSet) -> list[str]:
    assert found.error is None
    return [context.text for context in found.contexts]


@pytest.mark.parametrize("kind", [RECALL, PRECISION])
@pytest.mark.parametrize(
    ("part", "text", "source"),
    [
        ({}, "of the target", "response"),
        ({"response": True}, "of the target", "response"),
        ({"item": True}, "of the row", "item"),
        ({"path": "hits[*].text"}, "by path", "path:hits[*].text"),
        ({"static": ["fixed"]}, "fixed", "static:"),
    ],
)
async def test_one_source_named_is_taken_by_every_scorer(
    kind: str, part: dict[str, Any], text: str, source: str
) -> None:
    found = await resolved(kind, **part)
    assert texts(found) == [text]
    assert found.source.startswith(source)


@pytest.mark.parametrize("extractor", [{"response": True}, {"item": True}, {"path": "hits[*].text"}])
async def test_with_static_contexts_and_an_extractor_precision_takes_the_extractor_and_recall_the_static_ones(
    extractor: dict[str, Any],
) -> None:
    assert texts(await resolved(RECALL, static=["fixed"], **extractor)) == ["fixed"]
    assert texts(await resolved(PRECISION, static=["fixed"], **extractor)) != ["fixed"]


async def test_equal_static_contexts_are_one_source_and_others_another() -> None:
    one, same, other = [(await resolved(RECALL, static=[text])).source for text in ("a", "a", "b")]
    assert one == same
    assert one != other


@pytest.mark.parametrize(
    ("part", "item", "response", "said"),
    [
        ({}, ITEM, Response("text only"), "the target returned no contexts"),
        ({"item": True}, Item("q", "why?"), RESPONSE, "the dataset row has no `contexts`"),
        ({"path": "docs"}, ITEM, RESPONSE, "nothing at 'docs'; the response has the keys hits"),
        ({"path": "docs"}, ITEM, Response("t", raw="t"), "nothing at 'docs'"),
        ({"path": "length(docs)"}, ITEM, RESPONSE, "'length(docs)' fails: In function length(), invalid type"),
    ],
)
async def test_a_source_that_is_not_there_is_an_error_of_that_item(
    part: dict[str, Any], item: Item, response: Response, said: str
) -> None:
    found = await resolved(RECALL, item, response, **part)
    assert found.error is not None
    assert found.error.startswith(said)
    assert found.contexts == ()


@pytest.mark.parametrize(("item", "response"), [(Item("q", "?", contexts=()), Response("t", ()))])
async def test_nothing_retrieved_is_no_error(item: Item, response: Response) -> None:
    assert texts(await resolved(RECALL, item, response)) == []
    assert texts(await resolved(RECALL, item, response, item=True)) == []
    assert texts(await resolved(RECALL, item, Response("t", raw={"hits": []}), path="hits[*].text")) == []


def by_path(expression: str, raw: Any) -> tuple[Context, ...]:
    return compiled(expression, where="suite.yaml: contexts")(ITEM, Response(raw=raw))


@pytest.mark.parametrize(
    ("expression", "raw", "contexts"),
    [
        ("hits[*].text", {"hits": [{"text": "a"}, {"text": "b"}]}, (Context("a"), Context("b"))),
        ("hits", {"hits": ["a", {"content": "b", "id": 2, "score": 0.5}]}, (Context("a"), Context("b", "2", 0.5))),
        ("hits[*].{text: t, id: i}", {"hits": [{"t": "a", "i": "x"}]}, (Context("a", id="x"),)),
        ("best.text", {"best": {"text": "a"}}, (Context("a"),)),
        ("@", "a", (Context("a"),)),
        ("[*].text", [{"text": "a"}], (Context("a"),)),
        ("hits[?score > `0.5`].text", {"hits": [{"score": 0.4, "x": 1}, {"score": 1, "text": "a"}]}, (Context("a"),)),
        ("hits[?score > `0.5`].text", {"hits": [{"score": 0.4, "text": "a"}]}, ()),
        ("hits[:1].text", {"hits": [{"text": "a"}, {"x": 1}]}, (Context("a"),)),
        ("hits[].chunks[].text", {"hits": [{"chunks": [{"text": "a"}]}, {"chunks": []}]}, (Context("a"),)),
        ("hits[*].text", {"hits": []}, ()),
        ("hits", {"hits": []}, ()),
    ],
)
def test_a_path_gives_a_text_texts_or_objects_with_a_text(
    expression: str, raw: Any, contexts: tuple[Context, ...]
) -> None:
    assert by_path(expression, raw) == contexts


@pytest.mark.parametrize(
    ("expression", "raw", "said"),
    [
        ("hits", {"hits": 3}, "'hits' gave int, not a list of texts"),
        ("hits", {"hits": {"a": 1}}, "'hits' gave dict, not a list of texts"),
        ("hits", {"hits": True}, "'hits' gave bool, not a list of texts"),
        ("hits", {"hits": [1, 2]}, "a list with entries that have no text"),
        ("hits", {"hits": ["a", None]}, "a list with entries that have no text"),
        ("hits[*].{text: t}", {"hits": [{"x": "a"}]}, "a list with entries that have no text"),
    ],
)
def test_a_path_that_gives_something_else_says_what(expression: str, raw: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        by_path(expression, raw)


@pytest.mark.parametrize(
    ("expression", "entries", "said"),
    [
        ("hits[*].txt", [{"text": "a"}, {"text": "b"}], "finds 2 entries, none with a text"),
        ("hits[].txt", [{"text": "a"}], "finds 1 entries, none with a text"),
        ("hits[*].text", [{"text": "a"}, {"x": 1}, {"text": "c"}], "finds 3 entries, only 2 with a text"),
        ("hits[?ok].text", [{"ok": True}, {"ok": False}], "finds 1 entries, none with a text"),
    ],
)
def test_entries_that_a_projection_would_leave_out_silently_are_an_error_because_ranks_would_shift(
    expression: str, entries: list[Any], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        by_path(expression, {"hits": entries})


@pytest.mark.parametrize("expression", ["hits[*", "hits[?x >", "", "a..b", "unknown_function(@"])
def test_what_is_no_jmespath_is_a_suite_error_with_an_example(expression: str) -> None:
    with pytest.raises(SuiteError) as caught:
        compiled(expression, where="suite.yaml: contexts")
    said = str(caught.value)
    assert said.startswith("suite.yaml: contexts: ")
    assert said.endswith("e.g. hits[*].text")
    assert "\n" not in said


async def test_scorers_resolve_for_themselves_and_each_row_names_its_set(workspace: Workspace) -> None:
    workspace.write_items([{**items(["tea"])[0], "contexts": ["The harbour was closed."]}])
    workspace.write_suite(
        contexts={"static": ["Tea is made from leaves of Camellia sinensis. Green tea is not oxidised."], "item": True},
        scorers=[
            RECALL,
            PRECISION,
            {RECALL: {"name": "recall_of_row", "contexts": {"item": True}}},
            {PRECISION: {"name": "precision_of_response", "contexts": {"response": True}}},
        ],
    )
    history, run_id = await run(workspace)
    detail = item_detail(history, run_id, "tea")
    found = {score.scorer: (score.value, str(score.context_set).partition(":")[0]) for score in detail.scores}
    assert found == {
        RECALL: (1.0, "static"),
        PRECISION: (0.0, "item"),
        "recall_of_row": (0.0, "item"),
        "precision_of_response": (1.0, "response"),
    }
    assert {source.partition(":")[0] for source in detail.context_sets} == {"static", "item", "response"}


async def test_an_extractor_that_fails_concerns_only_the_scorers_that_use_it(workspace: Workspace) -> None:
    workspace.write_items(items(["tea"]))
    workspace.write_suite(scorers=[RECALL, {PRECISION: {"contexts": {"item": True}}}])
    history, run_id = await run(workspace)
    by_scorer = {score.scorer: score.status for score in item_detail(history, run_id, "tea").scores}
    assert by_scorer == {RECALL: Status.OK, PRECISION: Status.CONTEXT_ERROR}


async def test_an_extractor_is_asked_once_per_item_for_all_scorers_that_use_it(workspace: Workspace) -> None:
    asked: list[str] = []

    def extract(item: Item, response: Response) -> tuple[Context, ...]:
        asked.append(item.id)
        return response.contexts or ()

    workspace.write_suite(scorers=[RECALL, PRECISION, {PRECISION: {"name": "precision10", "scale": 10}}])
    history, run_id = await run(workspace, Resolver("counted", extract))
    assert sorted(asked) == sorted(item["id"] for item in items())
    assert list(item_detail(history, run_id, "tea").context_sets) == ["counted"]


async def run(workspace: Workspace, resolver: Resolver | None = None) -> tuple[History, str]:
    """Carry out the workspace's suite, with one resolver for all scorers where it is given."""
    parts = assemble(read_suite(workspace.suite))
    if resolver is not None:
        parts = replace(parts, resolvers=dict.fromkeys(parts.resolvers, resolver))
    history = History(workspace.history)
    opened = begin(parts, history)
    await evaluate_locally(opened)
    assert history.finish_run(opened.run_id, status="complete").ok
    return history, opened.run_id
