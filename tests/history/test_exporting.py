"""An export holds every row, in formats that others read."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import duckdb
import pytest

from ragscore.errors import UsageError
from ragscore.history import History, save, select
from ragscore.history.exporting import Format, export, export_batch

from .example import example
from .records import run_row


@pytest.mark.parametrize("format", ["parquet", "csv", "jsonl"])
def test_every_table_is_exported_whole(tmp_path: Path, format: Format) -> None:
    history = example(tmp_path / "history.duckdb")
    counts = export(history, tmp_path / "out", format=format)
    assert {file.stem for file in (tmp_path / "out").iterdir()} == set(counts)
    readers = {"parquet": "read_parquet", "csv": "read_csv", "jsonl": "read_json"}
    for table, count in counts.items():
        assert select(history.path, f"SELECT count(*) FROM {table}").rows == [(count,)]
        file = tmp_path / "out" / f"{table}.{format}"
        found = duckdb.connect().execute(f"SELECT count(*) FROM {readers[format]}('{file}')")
        assert found.fetchall() == [(count,)]
    assert not [each for each in tmp_path.iterdir() if each.name.startswith(".out")]


def test_one_run_is_exported_without_the_others_and_csv_is_plain(tmp_path: Path) -> None:
    history = example(tmp_path / "history.duckdb")
    counts = export(history, tmp_path / "out", format="csv", run="last")
    assert (counts["runs"], counts["scores"], counts["claims"], counts["comparisons"]) == (1, 8, 12, 0)
    assert "calibrations" not in counts
    with (tmp_path / "out" / "verdicts.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert json.loads(next(row["quotes"] for row in rows if row["kind"] == "claim" and row["positive"] == "true")) == [
        "about"
    ]


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    history = example(tmp_path / "history.duckdb")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("keep")
    with pytest.raises(UsageError, match="is there already"):
        export(history, tmp_path / "out")
    with pytest.raises(UsageError, match="no run 'nothing'"):
        export(history, tmp_path / "other", run="nothing")
    assert not (tmp_path / "other").exists()
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["mine.txt"]


def test_a_run_in_progress_is_not_left_for_others(history: History, tmp_path: Path) -> None:
    history.start_run(run_row())
    with pytest.raises(UsageError, match="not at its end"):
        export_batch(history, "run-1", tmp_path / "inbox")


def test_rows_of_a_question_are_saved_as_parquet_and_nothing_else_can_be_written(tmp_path: Path) -> None:
    history = example(tmp_path / "history.duckdb")
    file = tmp_path / "it's.parquet"
    assert save(history.path, "CREATE TEMP TABLE t AS FROM runs; SELECT run_id, started_at FROM t", file) == 4
    found = duckdb.read_parquet(str(file))
    assert found.columns == ["run_id", "started_at"]
    with pytest.raises(UsageError, match="Cannot access file"):
        select(history.path, f"COPY runs TO '{tmp_path / 'other.parquet'}'")
    with pytest.raises(UsageError):
        save(history.path, f"COPY runs TO '{tmp_path / 'other.parquet'}'", file)
    assert not (tmp_path / "other.parquet").exists()


def test_other_files_are_read_only_where_that_is_allowed(tmp_path: Path) -> None:
    history = example(tmp_path / "history.duckdb")
    (tmp_path / "a.csv").write_text("x\n1\n")
    sql = f"SELECT x FROM read_csv('{tmp_path / 'a.csv'}')"
    with pytest.raises(UsageError, match="Cannot access file"):
        select(history.path, sql)
    assert select(history.path, sql, allow_external=True).rows == [(1,)]
    with pytest.raises(UsageError, match="read-only"):
        select(history.path, "DELETE FROM runs", allow_external=True)
