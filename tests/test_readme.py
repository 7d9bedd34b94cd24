"""The README's example is run as it stands, and the commands that it names exist."""

from __future__ import annotations

import re
from pathlib import Path

from tests.workspace import Workspace, make_workspace

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


def block(kind: str, containing: str) -> str:
    """The fenced block of that kind that holds a text."""
    (found,) = [each for each in re.findall(rf"```{kind}\n(.*?)```", README, re.DOTALL) if containing in each]
    return str(found)


def test_the_example_of_an_own_retriever_gives_what_the_readme_shows(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    (tmp_path / "questions.jsonl").write_text(block("json", "refund-window"), encoding="utf-8")
    (tmp_path / "my_app.py").write_text(block("python", "def retrieve"), encoding="utf-8")
    (tmp_path / "suite.yaml").write_text(block("yaml", "support-docs"), encoding="utf-8")
    done = workspace.ragscore("run", "suite.yaml")
    assert done.returncode == 0, done.stderr
    without_id = [re.sub(r"run \S+", "run …", line).rstrip() for line in done.stdout.splitlines()]
    for line in block("text", "docs-search dev").splitlines():
        assert re.sub(r"run \S+", "run …", line).rstrip() in without_id


def test_every_page_that_the_readme_names_is_there() -> None:
    root = Path(__file__).parent.parent
    assert not [page for page in re.findall(r"\]\(([^)#:]+)\)", README) if not (root / page).exists()]


def test_every_make_target_that_the_readme_names_is_there() -> None:
    makefile = (Path(__file__).parent.parent / "Makefile").read_text(encoding="utf-8")
    assert not [name for name in re.findall(r"`make ([a-z-]+)`", README) if f"\n{name}:" not in makefile]


def test_the_query_that_the_readme_shows_runs(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    workspace.ragscore("run", "suite.yaml")
    queries = re.findall(r'ragscore sql "(select [^"]+)"', README)
    assert len(queries) >= 2
    for query in queries:
        done = workspace.ragscore("sql", query)
        assert done.returncode == 0, (query, done.stderr)
