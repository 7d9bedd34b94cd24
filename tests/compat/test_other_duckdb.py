"""A history that one DuckDB wrote is read, extended and read again by the other. `tests/compat/check.py` runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ragscore.history import History
from tests.history.example import example

ROOT = Path(__file__).parents[2]
OTHER = os.environ.get("RAGSCORE_OTHER_PYTHON")
pytestmark = pytest.mark.skipif(not OTHER, reason="no Python with another DuckDB is named in RAGSCORE_OTHER_PYTHON")

MAKE = "example(path)"
EXTEND = """
from tests.history.records import record, run_row, store
history = History(path)
history.start_run(run_row("extended", items=2))
store(history, "extended", [record(1), record(2)])
history.reopen_run("run-4")
assert history.finish_run("extended", status="complete").ok
assert history.finish_run("run-4", status="complete").ok
"""
READ = """
views = ("score_history", "item_history", "regressions", "missing_claims", "retriever_versions", "judge_spend",
    "latest_contexts", "latest_verdicts")
print(json.dumps({v: select(path, f"SELECT * FROM {v} ORDER BY ALL").rows for v in views}, default=str))
"""
INBOX = """
from ragscore.history.exporting import export_batch
from ragscore.history.merging import merge
export_batch(History(path), "run-3", path.parent / "inbox")
"""
TAKE_IN = """
from ragscore.history.merging import merge
target = History(path.parent / "target.duckdb")
assert target.ingest(path.parent / "inbox").batches == 1
assert len(merge(target, path).new_runs) == 3
assert target.run("run-3") == History(path).run("run-3")
"""


def run(python: str, path: Path, code: str) -> str:
    head = f"""
import duckdb, json, sys
from pathlib import Path
sys.path.insert(0, {str(ROOT)!r})
from ragscore.history import History, select
from tests.history.example import example
path = Path({str(path)!r})
"""
    done = subprocess.run([python, "-c", head + code], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("first", ["this", "other"])
def test_each_reads_and_extends_what_the_other_wrote(tmp_path: Path, first: str) -> None:
    assert OTHER is not None
    one, two = (sys.executable, OTHER) if first == "this" else (OTHER, sys.executable)
    versions = {run(python, tmp_path, "print(duckdb.__version__.split('.')[0])") for python in (one, two)}
    assert len(versions) == 2
    path = tmp_path / "history.duckdb"
    run(one, path, MAKE)
    seen = json.loads(run(one, path, READ))
    assert all(seen.values())
    assert json.loads(run(two, path, READ)) == seen
    run(two, path, EXTEND)
    extended = json.loads(run(two, path, READ))
    assert len(extended["score_history"]) == len(seen["score_history"]) + 2
    assert json.loads(run(one, path, READ)) == extended
    run(one, path, EXTEND.replace('"extended"', '"again"'))
    assert json.loads(run(two, path, READ)) == json.loads(run(one, path, READ))


@pytest.mark.parametrize("first", ["this", "other"])
def test_batches_and_whole_histories_go_from_one_to_the_other(tmp_path: Path, first: str) -> None:
    assert OTHER is not None
    one, two = (sys.executable, OTHER) if first == "this" else (OTHER, sys.executable)
    example(tmp_path / "history.duckdb")
    run(one, tmp_path / "history.duckdb", INBOX)
    run(two, tmp_path / "history.duckdb", TAKE_IN)
    assert len(History(tmp_path / "target.duckdb").runs()) == 4
