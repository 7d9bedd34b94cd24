"""The files that a page of the documentation shows, for tests that run them."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"
#: A file is shown as its name in code type on a line of its own, and its content as the block after it.
SHOWN = re.compile(r"^`([\w.]+)`\n\n```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def shown_files(page: str) -> list[tuple[str, str]]:
    """Name and content of every file that the page shows, in its order."""
    return SHOWN.findall((DOCS / page).read_text(encoding="utf-8"))


def suites_of(page: str, folder: Path) -> list[Path]:
    """The suites that the page shows, written into `folder` with the files shown before each."""
    written: list[Path] = []
    for name, content in shown_files(page):
        path = folder / (name if name != "suite.yaml" else f"suite{len(written)}.yaml")
        path.write_text(content, encoding="utf-8")
        if name == "suite.yaml":
            written.append(path)
    return written
