"""Every question of docs/sql.md is asked of a generated history, and has an answer."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import pytest

from ragscore.history import select

from .example import example

PAGE = (Path(__file__).parents[2] / "docs" / "sql.md").read_text(encoding="utf-8")
QUESTIONS = re.findall(r"([^\n]+)\n\n```sql\n(.*?)```", PAGE, flags=re.S)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return example(tmp_path_factory.mktemp("cookbook") / "history.duckdb").path


def test_there_are_enough_questions() -> None:
    assert len(QUESTIONS) >= 15


@pytest.mark.parametrize(("question", "sql"), QUESTIONS, ids=[question for question, _ in QUESTIONS])
def test_a_question_has_an_answer(path: Path, question: str, sql: str) -> None:
    found = select(path, sql)
    assert found.rows
    assert all(any(value is not None for value in row) for row in found.rows)


def test_every_table_and_view_is_described(path: Path) -> None:
    with duckdb.connect(path, read_only=True) as connection:
        names = {name for (name,) in connection.execute("SELECT table_name FROM information_schema.tables").fetchall()}
    assert {name for name in names if f"`{name}`" not in PAGE} == set()


@pytest.mark.parametrize(
    "view", ["score_history", "item_history", "regressions", "missing_claims", "retriever_versions", "judge_spend"]
)
def test_every_column_of_a_view_is_described(path: Path, view: str) -> None:
    statuses = {"ok", "unanswerable", "abstained", "budget"}
    columns = set(select(path, f"SELECT * FROM {view} LIMIT 0").columns)
    words = set(re.findall(r"\w+", PAGE))
    undescribed = {c for c in columns if c not in words and not c.startswith("no_") and not c.endswith("_error")}
    assert undescribed - statuses == set()
