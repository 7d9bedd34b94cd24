"""The further tasks through the real LiteLLM: a local server answers each by the name of its reply form."""

from __future__ import annotations

import json
import threading
from collections.abc import AsyncIterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from ragscore.items import Status, digest
from ragscore.judges import (
    AnswerForm,
    Claim,
    ContradictClaims,
    CrossClaims,
    ExtractEntities,
    GradeContexts,
    MapClaims,
    Passage,
    RateStatements,
    Task,
)
from ragscore.judges.judgement_store import JudgementStore
from ragscore.judges.llm.declared import llm_judge
from ragscore.judges.llm.further_rows import parse_form, schema_of
from ragscore.judges.llm.judge import LLMJudge
from ragscore.judges.llm.prompts import prompt, prompt_version, template
from ragscore.judges.llm.replies import ReplyError
from ragscore.judges.memory import RememberingJudge
from ragscore.judges.tasks import RateContexts
from ragscore.suite import JudgePart

PASSAGES = (
    Passage("p1", "The tower was completed in 1889."),
    Passage("p2", "Bananas are yellow."),
    Passage("p3", "In 1889 the tower was completed."),
)
CLAIMS = (Claim("c1", "The tower was completed in 1889."), Claim("c2", "It burned down."))
MAP = MapClaims("When?", CLAIMS, PASSAGES)
CROSS = CrossClaims(
    "When?",
    (*CLAIMS, Claim("o1", "It was completed in 1889."), Claim("o2", "It is yellow.")),
    PASSAGES,
    reference="The tower was completed in 1889. It burned down.",
    output="It was completed in 1889. It is yellow.",
)
CONTRADICT = ContradictClaims("When?", (Claim("c1", "The tower was completed in 1900."), CLAIMS[1]), PASSAGES)
STATEMENTS = RateStatements("When?", (*CLAIMS, Claim("c3", "Hello.")))
GRADES = GradeContexts("When?", "In 1889.", "output", PASSAGES)
ENTITIES = ExtractEntities("When?", "Gustave Eiffel's tower was completed in 1889.")
FORM = AnswerForm(
    "Is it polite?", (("output", "Please."),), (("polite", "boolean"), ("tone", "number"), ("why", "text"))
)
TASKS: tuple[Task, ...] = (MAP, CROSS, CONTRADICT, STATEMENTS, GRADES, ENTITIES, FORM)
REPLIES: dict[str, Any] = {
    "rate_contexts": {"verdicts": [{"id": "p1", "relevant": True, "why": "so"}]},
    "map_claims": {
        "verdicts": [
            {"id": "c1", "supported": True, "contexts": ["p3", "p1", "p9"], "quote": "completed in 1889"},
            {"id": "c2", "supported": "no", "contexts": [], "quote": ""},
        ]
    },
    "cross_claims": {
        "verdicts": [
            {"id": "c1", "supported": True, "contexts": ["p1"], "quote": "completed in 1889", "elsewhere": "yes"},
            {"id": "c2", "supported": False, "contexts": [], "quote": "", "elsewhere": False},
            {"id": "o1", "supported": True, "contexts": ["p3"], "quote": "completed", "elsewhere": True},
            {"id": "o2", "supported": True, "contexts": ["p2"], "quote": "yellow", "elsewhere": "no"},
        ]
    },
    "contradict_claims": {
        "verdicts": [
            {"id": "c1", "contradicted": True, "contexts": ["p1"], "quote": "completed in 1889"},
            {"id": "c2", "contradicted": False, "contexts": [], "quote": ""},
        ]
    },
    "rate_statements": {
        "verdicts": [
            {"id": "c1", "answers": "Yes.", "why": "the year"},
            {"id": "c2", "answers": "unsure", "why": ""},
            {"id": "c3", "answers": "no", "why": ""},
        ]
    },
    "grade_contexts": {
        "verdicts": [
            {"id": "p1", "relevance": "High", "used": True, "why": "the year"},
            {"id": "p2", "relevance": "none", "used": False, "why": ""},
            {"id": "p3", "relevance": "low", "used": "no", "why": ""},
        ]
    },
    "extract_entities": {"claims": ["Gustave Eiffel", "1889"]},
    "answer_form": {"polite": "yes", "tone": "7", "why": "it says please"},
}


class _Answers(BaseHTTPRequestHandler):
    asked: list[str] = []

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        name = body["response_format"]["json_schema"]["name"]
        self.asked.append(name)
        message = {"role": "assistant", "content": json.dumps(REPLIES[name])}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        reply = {"id": "x", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage}
        payload = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, *arguments: object) -> None: ...


@pytest_asyncio.fixture
async def judge() -> AsyncIterator[LLMJudge]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    _Answers.asked.clear()
    part = JudgePart(model="openai/any", base_url=f"http://127.0.0.1:{server.server_address[1]}/v1")
    made = llm_judge(part, environment={})
    await made.prepare()
    yield made
    await made.aclose()
    server.shutdown()
    server.server_close()


async def test_each_further_task_is_one_call_and_says_what_it_is_to_say(judge: LLMJudge) -> None:
    answered = [await judge.ask(task) for task in TASKS]
    assert [each.status for each in answered] == [Status.OK] * len(TASKS)
    mapped, crossed, contradicted, statements, grades, entities, form = answered
    assert _Answers.asked[1:] == [task.name for task in TASKS]  # the first one is the probe
    assert [v.positive for v in mapped.verdicts] == [True, False]
    evidence = {e.passage: (e.quote, e.verified) for e in mapped.verdicts[0].evidence}
    assert evidence == {"p1": ("completed in 1889", True), "p3": ("", False)}  # p9 was never given out
    assert [(v.id, v.positive, v.label) for v in crossed.verdicts] == [
        ("c1", True, "elsewhere"),
        ("c2", False, "only here"),
        ("o1", True, "elsewhere"),
        ("o2", True, "only here"),
    ]
    assert [v.positive for v in contradicted.verdicts] == [True, False]
    assert contradicted.verdicts[0].evidence[0].quote == "completed in 1889"
    assert [v.label for v in statements.verdicts] == ["yes", "unsure", "no"]
    assert [v.label for v in grades.verdicts] == ["high used", "none", "low"]
    assert [v.positive for v in grades.verdicts] == [True, False, True]
    assert entities.claims == ("Gustave Eiffel", "1889")
    assert json.loads(form.claims[0]) == {"polite": True, "tone": 7, "why": "it says please"}


async def test_what_was_decided_is_remembered_with_its_labels(judge: LLMJudge, tmp_path: Path) -> None:
    store = JudgementStore(tmp_path / "judgements.sqlite")
    remembering = RememberingJudge(judge, store)
    first = [await remembering.ask(task) for task in TASKS]
    calls = len(_Answers.asked)
    again = [await remembering.ask(task) for task in TASKS]
    assert len(_Answers.asked) == calls
    for one, other in zip(first, again, strict=True):
        assert one.claims == other.claims
        assert [(v.id, v.positive, v.label) for v in one.verdicts] == [
            (v.id, v.positive, v.label) for v in other.verdicts
        ]
        assert other.usage.calls == 0
        assert other.usage.remembered > 0
    assert not set(remembering.keys(GRADES)) & set(
        remembering.keys(RateContexts(GRADES.question, GRADES.expected, GRADES.against, PASSAGES))
    )
    store.close()


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_the_prompt_fences_the_data_and_names_every_field(task: Task) -> None:
    made = prompt(task)
    system, user = (message["content"] for message in made.messages)
    assert system == template(prompt_version(task))
    assert "<<<…>>>" in system
    names = [name for name, _ in FORM.fields] if task is FORM else _names(schema_of(task))
    assert all(f'"{name}"' in system + user for name in names)
    assert f"<<<{made.marker} end>>>" in user


def test_a_changed_template_or_reply_form_needs_a_new_version() -> None:
    """If this fails: keep the old template, add the new one as the next version, and write its digest here."""
    pinned = {prompt_version(task): digest(template(prompt_version(task)), schema_of(task))[:8] for task in TASKS}
    assert pinned == {
        "answer_form.v1": "63fec546",
        "contradict_claims.v1": "87b42ab0",
        "cross_claims.v1": "28742e8e",
        "extract_entities.v1": "686bf882",
        "grade_contexts.v1": "be49156f",
        "map_claims.v1": "5b144d95",
        "rate_statements.v1": "669d5110",
    }


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ("polite", "no JSON object"),
        ('{"polite": "perhaps", "tone": 1, "why": ""}', '"polite" must be true or false'),
        ('{"polite": true, "tone": "NaN", "why": ""}', '"tone" must be a number'),
        ('{"polite": true, "tone": 1}', '"why" must be text'),
    ],
)
def test_a_form_that_is_not_filled_in_is_told_to_the_model(reply: str, said: str) -> None:
    with pytest.raises(ReplyError, match=said):
        parse_form(reply, FORM)


def test_a_form_is_found_in_what_models_wrap_around_it() -> None:
    reply = '<think>hm</think>Sure!\n```json\n{"polite": true, "tone": 0.5, "why": "so"}\n```'
    assert json.loads(parse_form(reply, FORM)[0]) == {"polite": True, "tone": 0.5, "why": "so"}


def _names(schema: dict[str, Any]) -> set[str]:
    found = set(schema.get("properties", ()))
    for part in schema.get("properties", {}).values():
        found |= _names(part.get("items", part)) if isinstance(part, dict) else set()
    return found
