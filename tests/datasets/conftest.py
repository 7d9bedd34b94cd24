"""A folder of files, and loading a suite's `dataset:` from it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from ragscore.datasets import Dataset, load_dataset
from ragscore.errors import ConfigError
from ragscore.suite import DatasetPart

Load = Callable[..., Dataset]
Refused = Callable[..., str]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, and the working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def load(folder: Path) -> Load:
    """Loads a dataset as a suite names it: a path, or the keys below `dataset:`."""

    def loaded(path: str | None = None, **keys: Any) -> Dataset:
        part = DatasetPart(**({"path": path} if path is not None else {}), **keys)
        return load_dataset(part, base_dir=folder)

    return loaded


@pytest.fixture
def refused(load: Load) -> Refused:
    """What loading complains about."""

    def said(path: str | None = None, **keys: Any) -> str:
        with pytest.raises(ConfigError) as caught:
            load(path, **keys)
        return str(caught.value)

    return said


def write_jsonl(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
