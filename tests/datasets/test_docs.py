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
from tests.datasets.serving import as_s3, over_http

DOCS = Path(__file__).parent.parent.parent / "docs" / "datasets.md"
FILES = Path(__file__).parent / "files"
BLOCK = re.compile(r"^```(\w+) ?(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks() -> Iterator[tuple[str, str, str]]:
    for match in BLOCK.finditer(DOCS.read_text(encoding="utf-8")):
        yield match[1], match[2], match[3]


@pytest.fixture
def web(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """What serves the files of the examples: its address over HTTP. S3 has the first of them too."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    questions = next(text for _, name, text in blocks() if name == "questions.jsonl").encode()
    with over_http(tmp_path) as address, as_s3({"evaluation": {"support/1.jsonl": questions}}) as endpoint:
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", endpoint)
        yield address


@pytest.fixture
def datasets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, web: str) -> list[tuple[Any, Dataset]]:
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
            if isinstance(said, str):
                said = said.replace("https://data.example.com", web)
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
