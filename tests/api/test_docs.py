"""Every Python example of docs/api.md and docs/scorers.md runs, in order, each page in one namespace."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parent.parent.parent / "docs"
FENCE = re.compile(r"^```python(?P<how> sync)?\n(?P<code>.*?)^```$", re.M | re.S)


@pytest.mark.parametrize("page", ["api.md", "scorers.md"])
async def test_the_examples_of_a_page_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = (DOCS / page).read_text(encoding="utf-8")
    examples = [found for found in FENCE.finditer(text) if not found["how"]]
    assert examples
    namespace: dict[str, Any] = {"__name__": "page"}
    for found in examples:
        line = text[: found.start()].count("\n") + 1
        tree = compile("\n" * line + found["code"], page, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        running = eval(tree, namespace)
        if inspect.isawaitable(running):
            await running


def test_the_examples_for_scripts_run_without_a_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = (DOCS / "api.md").read_text(encoding="utf-8")
    for found in FENCE.finditer(text):
        if found["how"]:
            exec(compile(found["code"], "api.md", "exec"), {"__name__": "page"})
