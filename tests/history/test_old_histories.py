"""A history that an earlier ragscore wrote opens, is brought up to date, and says what it said then.

`old/schema-1.duckdb.gz` was written by the schema with migration 1 alone and DuckDB 1.5.5: three runs of four items,
the last with a judge error that its second attempt mended. It is never made anew. `old/schema-3.duckdb.gz` is the same
history after migrations 2 and 3.
"""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from ragscore.history import History, item_detail, select, summaries
from ragscore.history.schema import newest

from .records import record, store

OLD = sorted((Path(__file__).parent / "old").glob("*.duckdb.gz"))


@pytest.fixture(params=OLD, ids=lambda file: file.name)
def old(request: pytest.FixtureRequest, tmp_path: Path) -> History:
    path = tmp_path / "history.duckdb"
    path.write_bytes(gzip.decompress(request.param.read_bytes()))
    return History(path)


def test_its_runs_and_means_are_as_they_were(old: History) -> None:
    assert [(row.run_id, row.version, row.status, row.store_text) for row in old.runs()] == [
        ("run-3", "v3", "complete", "full"),
        ("run-2", "v2", "complete", "full"),
        ("run-1", "v1", "complete", "full"),
    ]
    assert [(each.mean, each.n) for each in summaries(old, "run-1")] == [(0.5, 4), (7.0833, 4)]
    assert select(old.path, "SELECT max(number) FROM schema_migrations").rows == [(newest(),)]


def test_what_is_new_is_filled_in_for_the_old_rows(old: History) -> None:
    def ask(sql: str) -> list[tuple[Any, ...]]:
        return select(old.path, sql).rows

    assert ask("SELECT count(*) FROM scores WHERE item_hash IS NULL OR superseded IS NULL") == [(0,)]
    assert ask("SELECT run_id, item_id, attempt FROM scores WHERE superseded") == [("run-3", "item-3", 1)]
    assert ask("SELECT count(*), count(DISTINCT number) FROM claims") == [(3, 3)]
    assert ask("SELECT outcome, reply FROM judge_calls") == [("malformed", None)]
    assert ask("SELECT count(change) FROM item_history WHERE run_id = 'run-2'") == [(8,)]
    assert ask("SELECT model, calls, failed FROM judge_spend") == [("openai/m", 1, 1)]
    assert len(ask("SELECT DISTINCT version FROM retriever_versions")) == 3


def test_an_old_run_is_taken_up_again(old: History) -> None:
    assert item_detail(old, "run-3", "item-3").scores[1].exact is not None
    old.reopen_run("run-3")
    again = record(3, attempt=3)
    assert store(old, "run-3", [again]) == (1, 1, 2)
    assert old.finish_run("run-3", status="complete").ok
    assert select(old.path, "SELECT count(*) FROM latest_scores WHERE run_id = 'run-3'").rows == [(8,)]
