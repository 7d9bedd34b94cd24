"""The judge, through the real LiteLLM, against a server that misbehaves."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from ragscore.errors import ConfigError, JudgeRefused, JudgeUnavailable
from ragscore.items import Judgement, Status
from ragscore.judges.llm.declared import llm_judge
from ragscore.judges.llm.judge import LLMJudge
from ragscore.judges.llm.modes import Manners
from ragscore.judges.llm.wire import BadRequest, Request
from ragscore.judges.protocol import PreparedJudge
from ragscore.judges.tasks import AttributeClaims, Claim, ExtractClaims, Passage, RateContexts, Task
from ragscore.suite import JudgePart
from tests.judges.llm.conftest import Kept
from tests.llm_server.faults import DRESSED, NOTICEABLE
from tests.llm_server.running import RunningServer

Make = Callable[..., LLMJudge]

QUESTION = "When was the Eiffel Tower finished and who built it?"
REFERENCE = "The Eiffel Tower was completed in 1889. Gustave Eiffel's company built it. It burned down twice."
CLAIMS = (
    Claim("c1", "The Eiffel Tower was completed in 1889."),
    Claim("c2", "Gustave Eiffel's company built the tower."),
    Claim("c3", "Volcanoes erupted nearby yesterday evening."),
)
PASSAGES = (
    Passage("p1", "The famous Eiffel Tower was completed in 1889, in spring."),
    Passage("p2", "Bananas contain plenty of potassium."),
    Passage("p3", "Gustave Eiffel's company built the tower within two years."),
)
EXTRACT = ExtractClaims(QUESTION, REFERENCE)
ATTRIBUTE = AttributeClaims(QUESTION, CLAIMS, PASSAGES)
RATE = RateContexts(QUESTION, REFERENCE, "reference", PASSAGES)
TASKS: tuple[Task, ...] = (EXTRACT, ATTRIBUTE, RATE)
SUPPORTED = {"c1": True, "c2": True, "c3": False}
RELEVANT = {"p1": True, "p2": False, "p3": True}


def verdicts(judgement: Judgement) -> dict[str, bool]:
    return {verdict.id: verdict.positive for verdict in judgement.verdicts}


def outcomes(judgement: Judgement) -> list[str]:
    return [call.outcome for call in judgement.calls]


async def test_each_task_is_one_call(judging: Make, server: RunningServer) -> None:
    judge = judging()
    claims, supported, relevant = [await judge.ask(task) for task in TASKS]
    assert len(claims.claims) == 3
    assert verdicts(supported) == SUPPORTED
    assert verdicts(relevant) == RELEVANT
    assert all(verdict.why for verdict in relevant.verdicts)
    assert [(e.passage, e.verified) for e in supported.verdicts[1].evidence] == [("p3", True)]
    for judgement, task in zip((claims, supported, relevant), TASKS, strict=True):
        assert judgement.status is Status.OK
        assert judgement.usage.calls == len(judgement.calls) == 1
        assert judgement.usage.prompt_tokens
        assert judgement.prompt_version == f"{task.name}.v1" == judge.prompt_version(task)
        assert json.loads(judgement.params) == {"mode": "json_schema", "temperature": 0.0}
        assert judgement.raw is None
    assert server.stats()["requests"] == 3


@pytest.mark.parametrize("fault", DRESSED)
async def test_what_is_wrapped_around_an_honest_answer_costs_no_call(
    judging: Make, server: RunningServer, fault: str
) -> None:
    server.control(always=[fault])
    judge = judging()
    assert verdicts(await judge.ask(ATTRIBUTE)) == SUPPORTED
    assert verdicts(await judge.ask(RATE)) == RELEVANT
    assert server.stats()["requests"] == 2


async def test_a_malformed_reply_is_shown_with_its_error_once_then_given_up(
    judging: Make, server: RunningServer
) -> None:
    server.control(always=["malformed"])
    judgement = await judging().ask(RATE)
    assert judgement.status is Status.JUDGE_ERROR
    assert outcomes(judgement) == ["malformed"] * 3
    assert judgement.usage.calls == 3
    assert judgement.verdicts == ()
    assert judgement.error is not None
    assert "malformed" in judgement.error
    assert judgement.raw
    roles = [[m["role"] for m in last["body"]["messages"]] for last in server.stats()["last"]]
    assert roles == [["system", "user"], ["system", "user", "assistant", "user"], ["system", "user"]]


async def test_missing_verdicts_are_asked_for_alone(judging: Make, server: RunningServer) -> None:
    server.control(always=["omitted"])
    judgement = await judging().ask(ATTRIBUTE)
    asked = [last["body"]["messages"][1]["content"].count("[c") for last in server.stats()["last"]]
    assert asked[0] == 3
    assert asked[1] < 3
    assert judgement.status is Status.JUDGE_ERROR  # it always leaves some out
    assert judgement.error is not None
    assert judgement.error.startswith("no verdict for ")
    undecided = set(SUPPORTED) - set(verdicts(judgement))
    assert undecided  # not "no"
    assert all(id in judgement.error for id in undecided)
    assert set(outcomes(judgement)) == {"incomplete"}


async def test_one_omission_is_made_good(judging: Make, server: RunningServer) -> None:
    server.control(faults=["omitted"], share=1.0, in_a_row=1)
    judgement = await judging().ask(RATE)
    assert judgement.status is Status.OK
    assert verdicts(judgement) == RELEVANT
    assert judgement.calls[0].outcome == "incomplete"


async def test_a_reply_that_was_cut_off_gets_more_room(judging: Make, server: RunningServer) -> None:
    server.control(always=["truncated"])  # with more room it is whole
    judgement = await judging(max_tokens=200).ask(ATTRIBUTE)
    assert verdicts(judgement) == SUPPORTED
    assert outcomes(judgement) == ["truncated", "ok"]
    assert [last["body"]["max_tokens"] for last in server.stats()["last"]] == [200, 400]


async def test_a_reply_that_never_fits_is_split_into_fewer_verdicts(judging: Make, server: RunningServer) -> None:
    passages = tuple(Passage(f"p{n}", f"Tower number {n} was completed in 1889.") for n in range(1, 25))
    judgement = await judging(max_tokens=64).ask(RateContexts(QUESTION, REFERENCE, "reference", passages))
    assert judgement.status is Status.OK
    assert [verdict.id for verdict in judgement.verdicts] == [passage.id for passage in passages]
    assert outcomes(judgement).count("truncated") >= 3
    assert server.stats()["per_task"]["relevance"] == len(judgement.calls)


async def test_truncation_that_cannot_be_mended_is_reported_as_such(judging: Make) -> None:
    judgement = await judging(max_tokens=16).ask(ExtractClaims(QUESTION, "A very long sentence about towers. " * 20))
    assert judgement.status is Status.OK  # one claim: it is the same sentence again and again
    long = " ".join(f"Tower {number} was completed early." for number in range(100))
    judgement = await judging(max_tokens=16).ask(ExtractClaims(QUESTION, long))
    assert judgement.status is Status.JUDGE_ERROR
    assert judgement.error is not None
    assert "truncated" in judgement.error
    assert "max_tokens" in judgement.error


async def test_faults_that_pass_are_retried_and_every_attempt_is_recorded(judging: Make, server: RunningServer) -> None:
    server.control(faults=["429"], share=1.0, in_a_row=1)
    judgement = await judging().ask(RATE)
    assert judgement.status is Status.OK
    assert outcomes(judgement) == ["throttled", "ok"]
    assert judgement.usage.calls == 1


async def test_a_judge_that_stays_silent_is_a_judge_error_with_the_fault(judging: Make, server: RunningServer) -> None:
    server.control(always=["503"])
    judgement = await judging(max_retries=1).ask(RATE)
    assert judgement.status is Status.JUDGE_ERROR
    assert judgement.error is not None
    assert "server_error" in judgement.error
    assert judgement.usage.calls == 0
    assert len(judgement.calls) == 2


async def test_a_spent_budget_is_a_status(judging: Make) -> None:
    judge = judging(budget_tokens=10)
    assert (await judge.ask(RATE)).status is Status.OK  # one may pass the limit
    judgement = await judge.ask(ATTRIBUTE)
    assert judgement.status is Status.BUDGET
    assert judgement.calls == ()


@pytest.mark.parametrize(
    ("always", "mode", "params"),
    [
        ("rejects_response_format", "text", {"temperature": 0.0}),
        ("rejects_json_schema", "json_object", {"temperature": 0.0}),
        ("rejects_temperature", "json_schema", {}),
        ("rejects_max_tokens", "json_schema", {"temperature": 0.0}),
    ],
)
async def test_what_a_model_refuses_is_learnt_once_and_kept(
    judging: Make, server: RunningServer, always: str, mode: str, params: dict[str, Any]
) -> None:
    server.control(always=[always])
    learnt = Kept()
    judge = judging(learnt=learnt)
    await judge.prepare()
    assert json.loads(judge.identity)["params"] == params
    learning = server.stats()["requests"]
    assert learning > 1
    judgement = await judge.ask(RATE)
    assert json.loads(judgement.params) == params | {"mode": mode}
    assert outcomes(judgement) == ["ok"]
    again = judging(learnt=learnt)
    await again.prepare()
    assert again.identity == judge.identity
    assert outcomes(await again.ask(RATE)) == ["ok"]
    assert server.stats()["requests"] == learning + 2


async def test_prepare_is_one_small_call_and_none_when_learnt(judging: Make, server: RunningServer) -> None:
    learnt = Kept()
    judge = judging(learnt=learnt)
    with pytest.raises(RuntimeError, match="prepare"):
        _ = judge.identity
    await judge.prepare()
    await judge.prepare()
    assert server.stats()["requests"] == 1
    assert server.stats()["prompt_chars"] < 700
    assert [call.task for call in judge.probe_calls] == ["probe"]
    await judging(learnt=learnt).prepare()
    assert server.stats()["requests"] == 1
    await judging(learnt=learnt, temperature=1.0).prepare()  # other parameters may be refused
    assert server.stats()["requests"] == 2
    prepared: PreparedJudge = judge
    assert prepared is judge


async def test_what_is_learnt_after_the_probe_does_not_change_the_identity(
    judging: Make, server: RunningServer
) -> None:
    learnt = Kept()
    judge = judging(learnt=learnt)
    await judge.prepare()
    before = judge.identity
    server.control(always=["rejects_temperature"])
    judgement = await judge.ask(RATE)
    assert outcomes(judgement) == ["bad_request", "ok"]
    assert "temperature" not in json.loads(judgement.params)
    assert judge.identity == before
    next_run = judging(learnt=learnt)
    await next_run.prepare()
    assert next_run.identity == before


async def test_identities_differ_by_model_address_and_parameters(judging: Make, server: RunningServer) -> None:
    address = server.url.replace("127.0.0.1", "localhost")
    variants: list[dict[str, Any]] = [
        {},
        {"model": "openai/other"},
        {"base_url": address},
        {"temperature": 0.5},
        {"params": {"seed": 1}},
    ]
    judges = [judging(**variant) for variant in variants]
    for judge in judges:
        await judge.prepare()
    assert len({judge.identity for judge in judges}) == len(variants)


@pytest.mark.parametrize("always", ["401", "no_credit"])
async def test_a_refusal_stops_before_the_first_item_and_names_variable_and_address(
    judging: Make, server: RunningServer, always: str
) -> None:
    server.control(always=[always])
    judge = judging(api_key_env="MY_JUDGE_KEY", environment={"MY_JUDGE_KEY": "key-that-must-not-show"})
    with pytest.raises(JudgeRefused) as raised:
        await judge.prepare()
    assert "MY_JUDGE_KEY" in str(raised.value)
    assert server.url in str(raised.value)
    assert "key-that-must-not-show" not in str(raised.value)
    assert server.stats()["requests"] == 1  # never retried


async def test_nobody_there_is_unavailable() -> None:
    part = JudgePart(model="openai/lexical", base_url="http://127.0.0.1:9/v1", max_retries=0)
    judge = llm_judge(part, environment={})
    with pytest.raises(JudgeUnavailable, match=r"127\.0\.0\.1:9"):
        await judge.prepare()
    await judge.aclose()


def test_a_missing_key_is_a_config_error() -> None:
    with pytest.raises(ConfigError, match="MY_KEY is not set"):
        llm_judge(JudgePart(model="openai/x", api_key_env="MY_KEY"), environment={})


def test_parameters_that_are_ours_cannot_be_set() -> None:
    with pytest.raises(ConfigError, match=r"judge\.max_tokens"):
        llm_judge(JudgePart(model="openai/x", params={"max_tokens": 5}), environment={})


def test_parameters_must_be_json() -> None:
    with pytest.raises(ConfigError, match="not JSON"):
        llm_judge(JudgePart(model="openai/x", params={"stop": {1}}), environment={})


async def test_long_lists_of_contexts_are_split_and_merged_by_id(judging: Make, server: RunningServer) -> None:
    judgement = await judging(max_contexts_per_call=1).ask(RATE)
    assert verdicts(judgement) == RELEVANT
    assert server.stats()["requests"] == 3


async def test_claims_that_no_part_supports_get_one_more_look_at_the_nearest_excerpts(
    judging: Make, server: RunningServer
) -> None:
    judgement = await judging(max_contexts_per_call=1).ask(ATTRIBUTE)
    assert verdicts(judgement) == SUPPORTED
    # c1 is supported by p1 and is not asked again; c3 shares no word with any context: there is no last look
    asked = [last["body"]["messages"][1]["content"].count("[c") for last in server.stats()["last"]]
    assert asked == [3, 2, 2]
    server.control(reset=True)
    spread = Claim("c4", "Gustave Eiffel's company eats bananas, famous volcanoes, rivers, mountains.")
    judgement = await judging(max_contexts_per_call=1).ask(AttributeClaims(QUESTION, (*CLAIMS, spread), PASSAGES))
    assert judgement.status is Status.OK
    last = server.stats()["last"][-1]["body"]["messages"][1]["content"]
    assert server.stats()["requests"] == 4
    assert all(f"context {id}>>>" in last for id in ("p1", "p2", "p3"))
    assert "[c4]" in last
    assert "[c1]" not in last


async def test_a_small_window_is_learnt_from_the_server_and_everything_is_still_decided(
    judging: Make, server: RunningServer
) -> None:
    server.control(window=1200)
    filler = "Something else entirely is told at length in this sentence. " * 12
    passages = tuple(Passage(f"p{n}", f"{filler}Tower {n} was completed in 1889. {filler}") for n in range(1, 7))
    learnt = Kept()
    judge = judging(learnt=learnt)
    await judge.prepare()
    rated = await judge.ask(RateContexts(QUESTION, REFERENCE, "reference", passages))
    assert rated.status is Status.OK, rated.error
    assert len(rated.verdicts) == 6
    attributed = await judge.ask(AttributeClaims(QUESTION, CLAIMS, (*passages, *PASSAGES[1:])))
    assert attributed.status is Status.OK, attributed.error
    assert set(verdicts(attributed)) == set(SUPPORTED)
    assert "too_long" not in outcomes(attributed)


async def test_what_fits_no_window_is_a_judge_error_that_says_so(judging: Make, server: RunningServer) -> None:
    server.control(window=300)
    judgement = await judging().ask(RateContexts("Why? " * 2000, REFERENCE, "reference", PASSAGES))
    assert judgement.status is Status.JUDGE_ERROR
    assert judgement.error is not None
    assert "too long" in judgement.error


async def test_with_a_fifth_of_replies_faulty_all_is_decided_as_without_faults(
    judging: Make, server: RunningServer
) -> None:
    tasks: list[Task] = []
    for number in range(40):
        passages = tuple(Passage(p.id, f"{p.text} Item {number}.") for p in PASSAGES)
        tasks += [
            ExtractClaims(f"{QUESTION} {number}", REFERENCE),
            AttributeClaims(f"{QUESTION} {number}", CLAIMS, passages),
            RateContexts(f"{QUESTION} {number}", REFERENCE, "reference", passages),
        ]
    judge = judging(concurrency=32, timeout_s=1.0)
    await judge.prepare()
    expected = [await judge.ask(task) for task in tasks[:3]]
    faults = [fault for fault in NOTICEABLE if fault != "hang"]  # which costs a second each
    server.control(reset=True, faults=faults, share=0.2, retry_after_s=0.0)
    told = await asyncio.gather(*(judge.ask(task) for task in tasks))
    assert {judgement.error for judgement in told} == {None}
    for place, judgement in enumerate(told):
        assert judgement.claims == expected[place % 3].claims
        assert verdicts(judgement) == verdicts(expected[place % 3])
    stats = server.stats()
    assert stats["requests"] == sum(len(judgement.calls) for judgement in told)
    assert sum(judgement.usage.calls for judgement in told) <= stats["answered"] + stats["per_fault"].get(
        "malformed", 0
    ) + stats["per_fault"].get("truncated", 0)


def test_requests_in_flight_together_take_one_step_to_a_plainer_mode() -> None:
    manners = Manners("m", None, params={"temperature": 0.0}, max_tokens=100)
    request = Request("probe", (), "x", {}, "json_schema", 100)
    objection = BadRequest("no response_format", parameter="response_format")
    assert manners.learn(objection, request)
    assert manners.learn(objection, request)
    assert manners.mode == "json_object"


def test_room_is_as_large_as_the_model_says() -> None:
    manners = Manners("m", None, params={}, max_tokens=4096)
    request = Request("probe", (), "x", {}, "text", 4096)
    what = "max_tokens is too large: 4096. This model supports at most 1024 completion tokens"
    assert manners.learn(BadRequest(what, parameter="max_tokens"), request)
    assert manners.sent(manners.room()) == {"max_tokens": 1024}
    assert manners.learn(BadRequest("unknown field", parameter="max_tokens"), request)
    assert manners.sent(manners.room()) == {"max_completion_tokens": 1024}
    assert manners.learn(BadRequest("unknown field", parameter="max_completion_tokens"), request)
    assert manners.sent(manners.room()) == {"max_tokens": None}


def test_an_objection_to_nothing_of_ours_teaches_nothing() -> None:
    manners = Manners("m", None, params={"temperature": 0.0}, max_tokens=100)
    request = Request("rate_contexts", (), "x", {}, "json_schema", 100)
    assert not manners.learn(BadRequest("content policy"), request)
    assert manners.mode == "json_schema"
