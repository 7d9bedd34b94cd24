"""Every example of docs/datasets.md is carried out: its files are written, its code is run, its datasets are loaded."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from ragscore.datasets import Dataset, load_dataset
from ragscore.datasets.columns import ALIASES
from ragscore.suite import DatasetPart

DOCS = Path(__file__).parent.parent.parent / "docs" / "datasets.md"
FILES = Path(__file__).parent / "files"
BLOCK = re.compile(r"^```(\w+) ?(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks() -> Iterator[tuple[str, str, str]]:
    for match in BLOCK.finditer(DOCS.read_text(encoding="utf-8")):
        yield match[1], match[2], match[3]


@pytest.fixture
def datasets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, Dataset]]:
    """What each YAML block says, and the dataset that it names, with the files of the blocks before it."""
    monkeypatch.chdir(tmp_path)
    loaded: list[tuple[Any, Dataset]] = []
    for language, name, text in blocks():
        if name == "hugging-face":
            pytest.importorskip("nanoarrow")
            shutil.copytree(FILES / "hugging-face", tmp_path / "hugging-face")
        if language == "yaml":
            said = yaml.safe_load(text)["dataset"]
            if not loaded:  # the first block stands before its file
                (tmp_path / "questions.jsonl").write_text(next(b[2] for b in blocks() if b[1] == "questions.jsonl"))
            part = DatasetPart.model_validate({"path": said} if isinstance(said, str) else said)
            loaded.append((said, load_dataset(part, base_dir=tmp_path)))
        elif name:
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        elif language == "python":
            exec(compile(text, str(DOCS), "exec"), {})
    return loaded


def test_every_example_loads(datasets: list[tuple[Any, Dataset]]) -> None:
    assert len(datasets) == sum(language == "yaml" for language, _, _ in blocks()) >= 14
    assert all(dataset.items for _, dataset in datasets)
    tea = [dataset for _, dataset in datasets if "tea made from" in dataset.items[0].input]
    assert len(tea) >= 10


def test_the_table_of_names_is_complete() -> None:
    table = DOCS.read_text(encoding="utf-8")
    for field, names in ALIASES.items():
        for name in names:
            assert f"`{name}`" in table or "." in name, f"{name} ({field})"
