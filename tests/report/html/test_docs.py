"""What docs/report.md shows can be done."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from ragscore.cli import main
from tests.workspace import Workspace

DOCS = Path(__file__).parents[3] / "docs"


def test_the_commands_work_in_their_order(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    for version in ("v1", "v2"):
        workspace.write_suite(target={"retriever": "drinks-search", "version": version, "python": "drinks:retrieve"})
        done = workspace.ragscore("run", "suite.yaml")
        assert done.returncode == 0, done.stderr
    monkeypatch.chdir(workspace.folder)
    monkeypatch.setenv("RAGSCORE_HOME", str(workspace.history.parent))
    (block,) = re.findall(r"^```sh\n(.*?)^```$", (DOCS / "report.md").read_text(encoding="utf-8"), re.M | re.S)
    for line in block.splitlines():
        program, *arguments = shlex.split(line, comments=True)
        assert program == "ragscore"
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == 0, line
    assert (workspace.folder / "v1.html").exists()
    assert (workspace.folder / "report.html").exists()
