from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

import httpx
import pytest
import pytest_asyncio
from hypothesis import given, settings
from hypothesis import strategies as st

from ragscore.errors import ConfigError, JudgeRefused
from ragscore.items import Call
from ragscore.judges.budget import Budget, BudgetSpent
from ragscore.judges.limiter import Limiter
from ragscore.judges.llm import sending
from ragscore.judges.llm.sending import Sender
from ragscore.judges.llm.wire import (
    BadRequest,
    CallFault,
    Completion,
    PassingFault,
    RefusedFault,
    Request,
    Throttled,
    TimedOut,
)
from tests.judges.virtual_time import now, run
from tests.llm_server import faults
from tests.llm_server.running import RunningServer, running


class HttpxClient:
    """The plainest client of an OpenAI-compatible server."""

    model = "lexical"

    def __init__(self, url: str) -> None:
        self.base_url: str | None = url
        self.http = httpx.AsyncClient(trust_env=False, limits=httpx.Limits(max_connections=None))

    async def complete(self, request: Request, *, params: Mapping[str, Any], timeout_s: float) -> Completion:
        body = {"model": self.model, "messages": list(request.messages), "max_tokens": request.max_tokens, **params}
        try:
            reply = await self.http.post(f"{self.base_url}/chat/completions", json=body, timeout=timeout_s)
        except httpx.TimeoutException as late:
            raise TimedOut("no answer in time") from late
        except httpx.HTTPError as fault:
            raise PassingFault(str(fault)) from fault
        if reply.status_code == 200:
            answer = reply.json()
            usage = answer["usage"]
            return Completion(
                answer["choices"][0]["message"]["content"],
                answer["choices"][0]["finish_reason"],
                usage["prompt_tokens"],
                usage["completion_tokens"],
                usage["prompt_tokens_details"]["cached_tokens"],
                cost_usd=(usage["prompt_tokens"] + usage["completion_tokens"]) * 1e-6,
            )
        error = reply.json()["error"]
        retry_after = reply.headers.get("retry-after")
        after = None if retry_after is None else float(retry_after)
        if reply.status_code == 429:
            raise Throttled(error["message"], retry_after_s=after)
        if reply.status_code >= 500:
            raise PassingFault(error["message"], retry_after_s=after)
        if reply.status_code == 400:
            raise BadRequest(error["message"], parameter=error["param"])
        raise RefusedFault(error["message"])

    def count_tokens(self, text: str) -> int:
        return -(-len(text) // 4)

    def window(self) -> int | None:
        return None

    def has_price(self) -> bool:
        return True


def question(number: int, *, task: str = "rate_contexts") -> Request:
    data = (
        f"<<<cafe01 question>>>\nWhat is fact {number}?\n<<<cafe01 end>>>\n"
        f"<<<cafe01 expected>>>\nThe answer to fact {number} stands here.\n<<<cafe01 end>>>\n"
        f"<<<cafe01 context p1>>>\nHere stands the answer to fact {number}.\n<<<cafe01 end>>>\n"
        f"<<<cafe01 context p2>>>\nSomething else entirely.\n<<<cafe01 end>>>"
    )
    messages = ({"role": "system", "content": "Rate."}, {"role": "user", "content": data})
    return Request(task, messages, "ratings", {}, max_tokens=500)


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with running(retry_after_s=0.02) as started:
        yield started


@pytest_asyncio.fixture
async def client(server: RunningServer) -> AsyncIterator[HttpxClient]:
    server.control(reset=True, always=[], share=0.0, faults=faults.NOTICEABLE, retry_after_s=0.02, latency_ms=0)
    client = HttpxClient(server.url)
    yield client
    await client.http.aclose()


class Waits(list[float]):
    """A `sleep` that remembers what it was asked for and takes no time."""

    async def __call__(self, seconds: float) -> None:
        self.append(seconds)
        await asyncio.sleep(0)


def test_a_reply_is_kept_word_for_word_and_a_very_long_one_says_that_it_was_cut() -> None:
    longest = "é\x00\n" * 6_666 + "12"
    assert len(longest) == sending.MOST_REPLY
    assert sending.kept(longest) == longest
    assert sending.kept(longest + "x" * 1_234) == longest + "\n[… cut here: 1,234 more characters]"


async def test_an_answer_comes_with_its_call(client: HttpxClient) -> None:
    before = time.time()
    sent = await Sender(client, limiter=Limiter(concurrency=1)).send(question(1), params={"temperature": 0.0})
    assert sent.completion is not None
    assert '"id": "p1", "relevant": true' in sent.completion.text
    assert sent.fault is None
    (call,) = sent.calls
    assert (call.task, call.model, call.mode, call.outcome) == ("rate_contexts", "lexical", "json_schema", "ok")
    assert call.prompt_tokens == sent.completion.prompt_tokens
    assert call.cost_usd == sent.completion.cost_usd
    assert call.error is None
    assert call.reply == sent.completion.text
    assert call.started_at is not None
    assert call.started_at >= before - 1
    assert call.latency_ms is not None
    assert call.latency_ms > 0


async def test_everything_is_answered_with_every_passing_fault_at_work(
    server: RunningServer, client: HttpxClient
) -> None:
    server.control(share=0.5, faults=["429", "500", "503", "drop", "hang"])
    limiter = Limiter(concurrency=16)
    sender = Sender(client, limiter=limiter, timeout_s=0.25, seed=1, sleep=Waits())
    sent = await asyncio.gather(*(sender.send(question(number), params={}) for number in range(80)))
    assert all(one.completion is not None for one in sent)
    stats = server.stats()
    assert set(stats["honest"].values()) == {1}  # nothing was paid twice
    assert stats["requests"] == sum(len(one.calls) for one in sent) == 80 + sum(stats["per_fault"].values())
    assert all(stats["per_fault"][fault] > 0 for fault in ("429", "500", "503", "drop", "hang"))
    outcomes = [call.outcome for one in sent for call in one.calls]
    assert outcomes.count("throttled") == stats["per_fault"]["429"]
    assert outcomes.count("timeout") == stats["per_fault"]["hang"]
    assert outcomes.count("ok") == 80
    assert stats["max_in_flight"] <= 16
    assert limiter.in_flight == 0


async def test_what_fails_for_good_is_returned_with_every_attempt(server: RunningServer, client: HttpxClient) -> None:
    server.control(always=["500"])
    waits = Waits()
    sender = Sender(client, limiter=Limiter(concurrency=1), max_retries=3, seed=7, sleep=waits)
    sent = await sender.send(question(1), params={})
    assert sent.completion is None
    assert isinstance(sent.fault, PassingFault)
    assert "server had an error" in str(sent.fault)
    assert [call.outcome for call in sent.calls] == ["server_error"] * 4
    assert all(call.error and call.prompt_tokens is None and call.cost_usd is None for call in sent.calls)
    assert server.stats()["requests"] == 4
    jitter = random.Random(7)
    assert waits == [jitter.uniform(0, sending.FIRST_WAIT_S * 2**n) for n in range(3)]


async def test_retry_after_is_waited_out(server: RunningServer, client: HttpxClient) -> None:
    server.control(always=["429"], retry_after_s=0.6)
    waits = Waits()
    sender = Sender(client, limiter=Limiter(concurrency=8), max_retries=1, deadline_s=3, seed=0, sleep=waits)
    sent = await sender.send(question(1), params={})
    assert waits == [0.6]  # more than the jitter could be
    assert isinstance(sent.fault, Throttled)


async def test_a_retry_after_beyond_the_deadline_is_not_waited_for(server: RunningServer, client: HttpxClient) -> None:
    server.control(always=["429"], retry_after_s=3600)
    limiter = Limiter(concurrency=4)
    sender = Sender(client, limiter=limiter, deadline_s=300)
    sent = await asyncio.gather(*(sender.send(question(number), params={}) for number in range(20)))
    assert all(isinstance(one.fault, Throttled) for one in sent)
    assert server.stats()["requests"] <= 4  # the others were told without asking
    unsent = [one.fault for one in sent if not one.calls]
    assert unsent
    assert all("longer than this task may take" in str(fault) for fault in unsent)


async def test_a_refusal_ends_it_at_once(server: RunningServer, client: HttpxClient) -> None:
    server.control(always=["401"])
    attempts: list[Call] = []
    sender = Sender(client, limiter=Limiter(concurrency=1), mend="set JUDGE_KEY")
    with pytest.raises(JudgeRefused, match="Incorrect API key") as refused:
        await sender.send(question(1), params={}, attempts=attempts)
    assert refused.value.mend == "set JUDGE_KEY"
    assert client.base_url is not None
    assert client.base_url in str(refused.value)
    assert [call.outcome for call in attempts] == ["refused"]
    assert server.stats()["requests"] == 1


async def test_a_request_that_is_not_accepted_is_the_judges_affair(server: RunningServer, client: HttpxClient) -> None:
    server.control(always=["rejects_temperature"])
    attempts: list[Call] = []
    limiter = Limiter(concurrency=1)
    sender = Sender(client, limiter=limiter, budget=Budget(tokens=100_000))
    with pytest.raises(BadRequest) as rejected:
        await sender.send(question(1), params={"temperature": 0.0}, attempts=attempts)
    assert rejected.value.parameter == "temperature"
    assert [call.outcome for call in attempts] == ["bad_request"]
    assert (await sender.send(question(1), params={}, attempts=attempts)).calls == tuple(attempts[1:])
    assert limiter.in_flight == 0


async def test_a_client_that_keeps_no_time_is_timed_out(server: RunningServer, client: HttpxClient) -> None:
    server.control(always=["hang"])

    class Timeless(HttpxClient):
        async def complete(self, request: Request, *, params: Mapping[str, Any], timeout_s: float) -> Completion:
            return await super().complete(request, params=params, timeout_s=1000)

    timeless = Timeless(server.url)
    sender = Sender(timeless, limiter=Limiter(concurrency=1), timeout_s=0.05, max_retries=0)
    sent = await sender.send(question(1), params={})
    assert isinstance(sent.fault, TimedOut)
    assert sent.calls[0].outcome == "timeout"
    await timeless.http.aclose()


async def test_cancelling_goes_through_and_frees_the_slot(server: RunningServer, client: HttpxClient) -> None:
    server.control(always=["hang"])
    limiter, budget, attempts = Limiter(concurrency=1), Budget(tokens=10_000), list[Call]()
    sender = Sender(client, limiter=limiter, budget=budget)
    task = asyncio.ensure_future(sender.send(question(1), params={}, attempts=attempts))
    while await asyncio.to_thread(lambda: server.stats()["in_flight"]) == 0:
        pass
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert limiter.in_flight == 0
    assert [call.outcome for call in attempts] == ["cancelled"]
    assert budget.spent_tokens > 0  # it may have been billed


async def test_the_budget_stops_calls_in_flight_without_overshoot(server: RunningServer, client: HttpxClient) -> None:
    server.control(latency_ms=5)
    budget = Budget(usd=0.001)
    sender = Sender(
        client, limiter=Limiter(concurrency=16), budget=budget, price=lambda prompt, reply: (prompt + reply) * 1e-6
    )
    ends = await asyncio.gather(
        *(sender.send(question(number), params={}) for number in range(60)), return_exceptions=True
    )
    stopped = [end for end in ends if isinstance(end, BudgetSpent)]
    answered = [end for end in ends if isinstance(end, sending.Sent) and end.completion is not None]
    assert stopped
    assert len(stopped) + len(answered) == 60
    costs = [one.completion.cost_usd for one in answered if one.completion is not None]
    assert budget.spent_usd == pytest.approx(sum(cost for cost in costs if cost is not None))
    one_estimate = (client.count_tokens(question(59).messages[1]["content"]) + 10 + 500) * 1e-6
    assert 0.001 <= budget.spent_usd <= 0.001 + one_estimate
    assert server.stats()["requests"] == len(answered)  # nothing was sent after it


async def test_faults_that_are_not_billed_take_nothing_from_the_budget(
    server: RunningServer, client: HttpxClient
) -> None:
    server.control(always=["500"])
    budget = Budget(tokens=100_000)
    await Sender(client, limiter=Limiter(concurrency=1), budget=budget, max_retries=2, sleep=Waits()).send(
        question(1), params={}
    )
    assert budget.spent_tokens == 0
    server.control(always=["hang"])
    await Sender(client, limiter=Limiter(concurrency=1), budget=budget, max_retries=0, timeout_s=0.05).send(
        question(1), params={}
    )
    assert budget.spent_tokens > 500  # a time-out may be billed


def test_a_dollar_budget_needs_a_price(server: RunningServer) -> None:
    class Unpriced(HttpxClient):
        def has_price(self) -> bool:
            return False

    client = Unpriced(server.url)
    with pytest.raises(ConfigError, match="price"):
        Sender(client, limiter=Limiter(concurrency=1), budget=Budget(usd=1))
    Sender(client, limiter=Limiter(concurrency=1), budget=Budget(tokens=1))


class Timetable:
    """A client in virtual time: each attempt takes so many seconds and ends as written."""

    model = "timetable"
    base_url = None

    def __init__(self, *plan: tuple[float, CallFault | None]) -> None:
        self.plan = list(plan)
        self.starts: list[float] = []
        self.most = 0
        self._in_flight = 0

    async def complete(self, request: Request, *, params: Mapping[str, Any], timeout_s: float) -> Completion:
        self.starts.append(now())
        seconds, fault = self.plan[(len(self.starts) - 1) % len(self.plan)]
        self._in_flight += 1
        self.most = max(self.most, self._in_flight)
        try:
            await asyncio.sleep(min(seconds, timeout_s))
        finally:
            self._in_flight -= 1
        if seconds > timeout_s:
            raise TimedOut("late")
        if fault is not None:
            raise fault
        return Completion("{}", prompt_tokens=10, completion_tokens=10)

    def count_tokens(self, text: str) -> int:
        return len(text) // 4

    def window(self) -> int | None:
        return None

    def has_price(self) -> bool:
        return False


def timed(client: Timetable, limiter: Limiter | None = None, **options: Any) -> Sender:
    clock = asyncio.get_running_loop().time
    return Sender(client, limiter=limiter or Limiter(concurrency=16, clock=clock), clock=clock, **options)


def test_the_deadline_holds_over_all_attempts() -> None:
    async def main() -> None:
        client = Timetable((40, None))
        sent = await timed(client, timeout_s=30, deadline_s=100, max_retries=50, seed=3).send(question(1), params={})
        assert isinstance(sent.fault, TimedOut)
        assert now() <= 100 + sending.GRACE_S
        assert 3 <= len(sent.calls) <= 5

    run(main())


def test_a_deadline_that_is_over_sends_nothing() -> None:
    async def main() -> None:
        client = Timetable((1, None))
        sent = await timed(client).send(question(1), params={}, deadline=now())
        assert isinstance(sent.fault, TimedOut)
        assert not sent.calls
        assert not client.starts

    run(main())


def test_waiting_for_our_own_limits_does_not_use_up_the_deadline() -> None:
    async def main() -> None:
        client = Timetable((30, None))
        limiter = Limiter(concurrency=1, clock=asyncio.get_running_loop().time)
        sender = timed(client, limiter, deadline_s=50)
        sent = await asyncio.gather(*(sender.send(question(number), params={}) for number in range(20)))
        assert all(one.completion is not None for one in sent)
        assert sent[-1].queued_s == pytest.approx(19 * 30)

    run(main())


def test_retry_after_holds_the_others_too() -> None:
    async def main() -> None:
        client = Timetable((0, Throttled("slow down", retry_after_s=20)), (0, None))
        sender = timed(client, seed=0)
        first = asyncio.ensure_future(sender.send(question(1), params={}))
        await asyncio.sleep(1)
        other = await sender.send(question(2), params={})
        assert other.completion is not None
        assert client.starts[1] == pytest.approx(20)
        assert other.queued_s == pytest.approx(0)
        assert (await first).completion is not None

    run(main())


kinds = st.sampled_from(["ok", "throttled", "asked", "down", "late"])


@settings(deadline=None, max_examples=60)
@given(st.lists(kinds, min_size=1, max_size=12), st.integers(1, 12), st.integers(0, 4), st.integers(1, 25))
def test_whatever_the_provider_does_limits_hold_and_every_request_ends(
    plan: list[str], concurrency: int, max_retries: int, requests: int
) -> None:
    ends: dict[str, tuple[float, CallFault | None]] = {
        "ok": (2, None),
        "throttled": (0.1, Throttled("t")),
        "asked": (0.1, Throttled("t", retry_after_s=9)),
        "down": (1, PassingFault("d")),
        "late": (99, None),
    }

    async def main() -> None:
        client = Timetable(*(ends[kind] for kind in plan))
        limiter = Limiter(concurrency=concurrency, clock=asyncio.get_running_loop().time)
        sender = timed(client, limiter, timeout_s=10, deadline_s=120, max_retries=max_retries, seed=5)
        sent = await asyncio.gather(*(sender.send(question(number), params={}) for number in range(requests)))
        assert client.most <= concurrency
        assert limiter.in_flight == 0
        assert all((one.completion is None) == (one.fault is not None) for one in sent)
        assert all(len(one.calls) <= max_retries + 1 for one in sent)
        assert sum(len(one.calls) for one in sent) == len(client.starts)

    run(main())
