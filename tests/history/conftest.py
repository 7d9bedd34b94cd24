"""A history file for every test."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ragscore.history import History, select


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / ".ragscore" / "history.duckdb"


@pytest.fixture
def history(path: Path) -> History:
    return History(path, lock_timeout_s=20)


@pytest.fixture
def count(history: History) -> Callable[[str], int]:
    def counted(table: str) -> int:
        return int(select(history.path, f"SELECT count(*) FROM {table}").rows[0][0])

    return counted
