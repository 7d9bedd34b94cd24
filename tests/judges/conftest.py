"""A suite judged by the misbehaving server's model."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.judges.judged_suites import JudgedSuite, port_items
from tests.llm_server.faults import NOTICEABLE
from tests.llm_server.running import RunningServer, start
from tests.workspace import Workspace


@pytest.fixture(scope="session")
def model_server_process() -> Iterator[RunningServer]:
    """One server for all tests of whole suites."""
    running = start()
    yield running
    running.stop()


@pytest.fixture
def model_server(model_server_process: RunningServer) -> RunningServer:
    """The server, well-behaved and with its counts at zero."""
    model_server_process.control(
        reset=True,
        latency_ms=0.0,
        share=0.0,
        faults=NOTICEABLE,
        always=[],
        seed=0,
        in_a_row=2,
        retry_after_s=0.05,
        window=None,
        api_key=None,
        only_model=None,
        keep=1000,
    )
    return model_server_process


@pytest.fixture
def suite(workspace: Workspace, model_server: RunningServer, monkeypatch: pytest.MonkeyPatch) -> JudgedSuite:
    """A suite of twelve items in a folder of its own."""
    monkeypatch.delenv("RAGSCORE_HOME", raising=False)
    made = JudgedSuite(workspace, model_server)
    made.write(port_items(12))
    return made
