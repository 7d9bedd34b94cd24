"""The client: the real LiteLLM against a real server, every outcome a fault of ours."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
import pytest_asyncio

from ragscore.judges.llm.addresses import effective_base_url
from ragscore.judges.llm.client import (
    LiteLLMClient,
    Price,
    parameter_at_fault,
    retry_after,
)
from ragscore.judges.llm.prompts import prompt
from ragscore.judges.llm.wire import (
    BadRequest,
    CallFault,
    Completion,
    PassingFault,
    RefusedFault,
    Request,
    Throttled,
    TimedOut,
    TooLong,
)
from ragscore.judges.tasks import Passage, RateContexts
from tests.llm_server.running import RunningServer

SHOWN = prompt(RateContexts("Is water wet?", "Water is wet.", "reference", (Passage("p1", "Water is wet."),)))
REQUEST = Request("rate_contexts", SHOWN.messages, SHOWN.schema_name, SHOWN.schema, "json_schema", 300)


@pytest_asyncio.fixture
async def client(server: RunningServer) -> AsyncIterator[Callable[..., LiteLLMClient]]:
    made: list[LiteLLMClient] = []

    def make(model: str = "openai/lexical", **options: Any) -> LiteLLMClient:
        made.append(LiteLLMClient(model, **{"base_url": server.url, **options}))
        return made[-1]

    yield make
    for one in made:
        await one.aclose()


async def send(client: LiteLLMClient, request: Request = REQUEST, timeout_s: float = 10.0, **params: Any) -> Completion:
    return await client.complete(request, params=params, timeout_s=timeout_s)


async def fault(client: LiteLLMClient, **options: Any) -> CallFault:
    with pytest.raises(CallFault) as raised:
        await send(client, **options)
    return raised.value


async def test_a_completion_says_what_it_took(client: Callable[..., LiteLLMClient], server: RunningServer) -> None:
    one = client()
    await send(one)
    completion = await send(one)
    assert completion.text.startswith('{"verdicts"')
    assert completion.finish_reason == "stop"
    assert completion.prompt_tokens
    assert completion.completion_tokens
    assert completion.cached_tokens  # the system message was seen before
    assert completion.latency_ms
    assert completion.cost_usd is None  # nobody knows what this model costs
    assert not one.has_price()
    assert one.window() is None


async def test_a_request_is_sent_as_it_is_and_once(client: Callable[..., LiteLLMClient], server: RunningServer) -> None:
    server.control(always=["500"])
    await fault(client(), temperature=0.0, seed=7)
    assert server.stats()["requests"] == 1
    body = server.stats()["last"][-1]["body"]
    schema = {"name": "rate_contexts", "strict": True, "schema": REQUEST.schema}
    assert body == {
        "model": "lexical",
        "messages": [dict(message) for message in REQUEST.messages],
        "temperature": 0.0,
        "seed": 7,
        "max_tokens": 300,
        "response_format": {"type": "json_schema", "json_schema": schema},
    } | {key: body[key] for key in ("stream",) if key in body}
    assert not body.get("stream")


async def test_structure_is_asked_for_as_the_mode_says(
    client: Callable[..., LiteLLMClient], server: RunningServer
) -> None:
    one = client()
    await send(one, replace(REQUEST, mode="json_object"))
    await send(one, replace(REQUEST, mode="text"))
    formats = [last["body"].get("response_format") for last in server.stats()["last"]]
    assert formats == [{"type": "json_object"}, None]


async def test_room_goes_by_the_name_that_params_give(
    client: Callable[..., LiteLLMClient], server: RunningServer
) -> None:
    await send(client(), max_completion_tokens=111)
    await send(client(), max_tokens=None)
    first, second = (last["body"] for last in server.stats()["last"])
    assert (first.get("max_tokens"), first["max_completion_tokens"]) == (None, 111)
    assert "max_tokens" not in second


@pytest.mark.parametrize(
    ("always", "kind"),
    [
        ("429", Throttled),
        ("500", PassingFault),
        ("503", PassingFault),
        ("drop", PassingFault),
        ("401", RefusedFault),
        ("no_credit", RefusedFault),
    ],
)
async def test_each_failure_is_a_fault_of_its_kind(
    client: Callable[..., LiteLLMClient], server: RunningServer, always: str, kind: type[CallFault]
) -> None:
    server.control(always=[always])
    raised = await fault(client())
    assert type(raised) is kind
    assert raised.what
    assert "litellm" not in raised.what
    if always == "429":
        assert raised.retry_after_s == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("always", "parameter"),
    [
        ("rejects_temperature", "temperature"),
        ("rejects_max_tokens", "max_tokens"),
        ("rejects_response_format", "response_format"),
        ("rejects_json_schema", "response_format"),
    ],
)
async def test_an_objection_names_its_parameter(
    client: Callable[..., LiteLLMClient], server: RunningServer, always: str, parameter: str
) -> None:
    server.control(always=[always])
    raised = await fault(client(), temperature=0.0)
    assert type(raised) is BadRequest
    assert raised.parameter == parameter


async def test_a_hanging_server_is_left_after_the_attempts_time(
    client: Callable[..., LiteLLMClient], server: RunningServer
) -> None:
    server.control(always=["hang"])
    assert type(await fault(client(), timeout_s=0.2)) is TimedOut


async def test_a_prompt_beyond_the_window_is_too_long(
    client: Callable[..., LiteLLMClient], server: RunningServer
) -> None:
    server.control(window=100)
    raised = await fault(client())
    assert type(raised) is TooLong
    assert "100 tokens" in raised.what


async def test_an_unknown_model_is_refused(client: Callable[..., LiteLLMClient], server: RunningServer) -> None:
    server.control(only_model="other")
    assert type(await fault(client())) is RefusedFault


async def test_a_model_without_a_provider_is_refused_without_a_request(
    client: Callable[..., LiteLLMClient], server: RunningServer
) -> None:
    assert type(await fault(client("no-such-thing"))) is RefusedFault
    assert server.stats()["requests"] == 0


async def test_nobody_there_is_a_passing_fault() -> None:
    one = LiteLLMClient("openai/lexical", base_url="http://127.0.0.1:9/v1")
    assert isinstance(await fault(one), PassingFault)
    await one.aclose()


async def test_the_key_given_is_sent_and_is_in_no_message(
    client: Callable[..., LiteLLMClient], server: RunningServer
) -> None:
    server.control(api_key="right-key-123456")
    await send(client(api_key="right-key-123456"))
    raised = await fault(client(api_key="wrong-key-123456"))
    assert type(raised) is RefusedFault
    assert "wrong-key-123456" not in raised.what


async def test_a_key_from_the_environment_never_goes_to_a_named_address(
    client: Callable[..., LiteLLMClient], server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "LITELLM_API_KEY"):
        monkeypatch.setenv(name, "sk-of-somebody-else")
    await send(client())
    assert "sk-of-somebody-else" not in str(server.stats()["last"])


async def test_errors_print_nothing(
    client: Callable[..., LiteLLMClient], server: RunningServer, capfd: pytest.CaptureFixture[str]
) -> None:
    server.control(always=["500"])
    await fault(client())
    await fault(client("no-such-thing"))
    assert capfd.readouterr() == ("", "")


def test_importing_the_judge_does_not_import_litellm() -> None:
    code = "import sys, ragscore.judges.llm.judge; sys.exit('litellm' in sys.modules or 'openai' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_price_of_the_suite_counts_cached_tokens_apart() -> None:
    price = Price(input_per_million=2.0, output_per_million=10.0, cached_per_million=0.5)
    assert price.of(1000, 100, 400) == pytest.approx((600 * 2 + 400 * 0.5 + 100 * 10) / 1e6)
    assert Price(2.0, 10.0).of(1000, 100, 400) == pytest.approx((1000 * 2 + 100 * 10) / 1e6)
    assert price.of(None, 100, 0) is None


async def test_cost_comes_from_the_suite_else_from_the_list(client: Callable[..., LiteLLMClient]) -> None:
    completion = await send(client(price=Price(1.0, 1.0)))
    assert completion.prompt_tokens is not None
    assert completion.completion_tokens is not None
    assert completion.cost_usd == pytest.approx((completion.prompt_tokens + completion.completion_tokens) / 1e6)
    listed = client("openai/gpt-4o-mini")
    assert listed.has_price()
    assert (listed.window() or 0) > 100_000
    priced = await send(listed)
    assert priced.cost_usd
    assert listed.price_of(1000, 0)


def test_tokens_are_counted_without_a_download() -> None:
    assert 2 <= LiteLLMClient("openai/lexical").count_tokens("Water is wet.") <= 8
    assert LiteLLMClient("ollama/llama3").count_tokens("Water is wet.")


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "2"}, 2.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:10 GMT"}, 10.0),
        ({"retry-after": "Wed, 21 Oct 2015 07:27:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
def test_retry_after_in_every_form(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, now=datetime(2015, 10, 21, 7, 28, 0, tzinfo=UTC)) == seconds


@pytest.mark.parametrize(
    ("message", "named", "parameter"),
    [
        ("Unsupported parameter: 'max_tokens' … Use 'max_completion_tokens' instead.", None, "max_tokens"),
        ("`temperature` and `top_p` cannot both be specified", None, "temperature"),
        ("doesn't support temperature=0.0. Only temperature=1 is supported", None, "temperature"),
        ("Failed to parse grammar", None, "response_format"),
        ("bad request", "response_format.json_schema", "response_format"),
        ("unknown field my_option", None, "my_option"),
        ("seed is not supported", None, None),  # was not sent
        ("something else", "messages", None),
    ],
)
def test_the_parameter_at_fault_is_read_from_the_message(
    message: str, named: str | None, parameter: str | None
) -> None:
    sent = {"temperature", "top_p", "max_tokens", "response_format", "my_option", "model", "stream"}
    assert parameter_at_fault(message, sent, named=named) == parameter


def test_the_address_of_the_suite_goes_before_that_of_the_environment() -> None:
    environment = {"OPENAI_API_BASE": "http://env/v1", "OLLAMA_API_BASE": "http://ollama"}
    assert effective_base_url("openai/x", "http://suite/v1", environment) == "http://suite/v1"
    assert effective_base_url("openai/x", None, environment) == "http://env/v1"
    assert effective_base_url("ollama/x", None, environment) == "http://ollama"
    assert effective_base_url("anthropic/x", None, environment) is None
