"""What docs/contexts.md shows, run."""

from __future__ import annotations

import asyncio
from pathlib import Path

from ragscore.assembly import assemble
from ragscore.engine import evaluate_locally
from ragscore.history import History, select
from ragscore.runs import begin
from ragscore.suite_file import read_suite
from tests.documents import suites_of


def test_every_suite_of_the_page_finds_its_contexts(tmp_path: Path) -> None:
    sets = {}
    for path in suites_of("contexts.md", tmp_path):
        history = History(tmp_path / f"{path.stem}.duckdb")
        run = begin(assemble(read_suite(path)), history)
        asyncio.run(evaluate_locally(run))
        assert history.finish_run(run.run_id, status="complete").ok
        assert select(history.path, "select distinct status, score from scores").rows == [("ok", 1.0)]
        query = "select distinct split_part(context_set, ':', 1) from scores order by 1"
        sets[run.parts.suite.name] = [name for (name,) in select(history.path, query).rows]
    assert sets == {
        "shop": ["function", "item", "path"],
        "shop-agent": ["tool_results"],
        "shop-both": ["path", "static"],
    }
