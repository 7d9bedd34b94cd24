"""A misbehaving model server, and judges that ask it through the real LiteLLM."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
import pytest_asyncio

from ragscore.judges.llm.declared import llm_judge
from ragscore.judges.llm.judge import LLMJudge
from ragscore.suite import JudgePart
from tests.llm_server.running import RunningServer, start

DEFAULTS: dict[str, Any] = {
    "share": 0.0,
    "always": [],
    "in_a_row": 2,
    "window": None,
    "api_key": None,
    "only_model": None,
    "seed": 0,
    "latency_ms": 0.0,
    "retry_after_s": 0.05,
}


class Kept(dict[str, dict[str, Any]]):
    """What is learnt, kept for the length of a test."""

    def put(self, key: str, value: dict[str, Any]) -> None:
        """Keep it."""
        self[key] = value


@pytest.fixture(scope="session")
def server_process() -> Iterator[RunningServer]:
    """One server for all tests of this folder."""
    running = start(**DEFAULTS)
    yield running
    running.stop()


@pytest.fixture
def server(server_process: RunningServer) -> RunningServer:
    """The server, well-behaved and with its counts at zero."""
    server_process.control(reset=True, faults=[], **DEFAULTS)
    return server_process


@pytest_asyncio.fixture
async def judging(server: RunningServer) -> AsyncIterator[Callable[..., LLMJudge]]:
    """Makes judges that ask the server; keyword arguments are those of the suite's `judge`."""
    made: list[LLMJudge] = []

    def make(*, learnt: Kept | None = None, environment: dict[str, str] | None = None, **options: Any) -> LLMJudge:
        part = JudgePart(**{"model": "openai/lexical", "base_url": server.url, **options})
        made.append(llm_judge(part, environment=environment or {}, learnt=learnt))
        return made[-1]

    yield make
    for judge in made:
        await judge.aclose()
