"""Runs for reports: real ones, over small datasets whose rows hold what was retrieved."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ragscore.assembly import assemble
from ragscore.engine import evaluate_locally
from ragscore.history import History, RunRow
from ragscore.judges import Judge
from ragscore.runs import begin
from ragscore.suite_file import check_suite

Row = Mapping[str, Any]

TARGET = """
def ask(question):
    if "raise" in question:
        raise ValueError("no index\\nfor this one")
    return "an answer"
"""


@dataclass(frozen=True)
class Bench:
    """Carries out runs in one folder and one history."""

    folder: Path
    history: History

    def run(
        self,
        rows: Sequence[Row],
        *,
        version: str = "v1",
        retriever: str = "docs-search",
        judge: Judge | None = None,
        end: Callable[[History, str], object] | None = None,
        **suite: Any,
    ) -> RunRow:
        """Evaluate `rows` with the offline judge, or with `judge`; `end` writes down how the run ended."""
        dataset = self.folder / "docs.jsonl"
        dataset.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        document = {
            "name": "docs",
            "dataset": dataset.name,
            "target": {"retriever": retriever, "version": version, "python": "rs_bench_target:ask"},
            "contexts": {"item": True},
            "scorers": ["context_recall", "context_precision"],
            "retries": 0,
            **suite,
        }
        run = begin(assemble(check_suite(document, base_dir=self.folder), judge=judge), self.history)
        asyncio.run(evaluate_locally(run))
        if end is None:
            assert self.history.finish_run(run.run_id, status="complete").ok
        else:
            end(self.history, run.run_id)
        return self.history.run(run.run_id)


def make_bench(folder: Path) -> Bench:
    (folder / "rs_bench_target.py").write_text(TARGET, encoding="utf-8")
    return Bench(folder, History(folder / "history.duckdb", lock_timeout_s=20))


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return make_bench(tmp_path)
