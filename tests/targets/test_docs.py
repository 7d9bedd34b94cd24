"""What docs/targets.md shows, run."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from ragscore.assembly import assemble
from ragscore.engine import evaluate_locally
from ragscore.history import History, select
from ragscore.runs import begin
from ragscore.suite_file import read_suite
from tests.documents import suites_of
from tests.targets.conftest import Answer, Request, Server

PAGE = "targets.md"
KINDS = ["python", "http", "command", "none"]


@pytest.mark.parametrize("kind", KINDS)
def test_each_target_of_the_page_answers(
    kind: str, tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_URL", server.url)
    monkeypatch.setenv("SHOP_TOKEN", "a-token")
    server.answers.append(answer)
    suites: dict[str, Path] = {read_suite(path).suite.target.kind: path for path in suites_of(PAGE, tmp_path)}
    assert sorted(suites) == sorted(KINDS)
    history = History(tmp_path / "history.duckdb")
    run = begin(assemble(read_suite(suites[kind])), history)
    asyncio.run(evaluate_locally(run))
    assert history.finish_run(run.run_id, status="complete").ok
    query = "select distinct scorer, status, score from scores order by 1"
    assert select(history.path, query).rows == [("context_precision", "ok", 1.0), ("context_recall", "ok", 1.0)]


def answer(request: Request) -> Answer:
    asked: dict[str, Any] = request.json
    assert (request.path, asked["k"], asked["language"]) == ("/ask", 3, "en")
    assert request.headers["authorization"] == "Bearer a-token"
    text = "The shop opens at nine." if "open" in asked["question"] else "Lamps can be returned within 30 days."
    return 200, {"data": {"answer": text, "hits": [{"passage": text}]}}, {}
