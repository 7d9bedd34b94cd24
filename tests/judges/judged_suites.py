"""Suites whose judge is the model of the misbehaving server, carried out whole through the real LiteLLM."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ragscore.assembly import Parts, assemble
from ragscore.engine import evaluate_locally
from ragscore.history import History, RunRow
from ragscore.runs import Run, begin, new_run_id, parts_of, take_up
from ragscore.suite_file import read_suite
from tests.llm_server.running import RunningServer
from tests.workspace import Workspace, make_workspace

#: What is compared between runs: every score and every verdict.
SCORES = (
    "select item_id, scorer, status, exact_fraction, n, n_positive from latest_scores where run_id = '{0}' order by all"
)
VERDICTS = (
    "select item_id, scorer, verdict_id, positive, verified, quotes from latest_verdicts where run_id = '{0}'"
    " order by item_id, scorer, rank"
)


def port_items(count: int, *, swapped: bool = False) -> list[dict[str, Any]]:
    """Items with two facts and five contexts each; in every third one the second fact is in no context.

    `swapped`: the last context is another one, as after a change of the retriever.
    """
    rows: list[dict[str, Any]] = []
    for n in range(count):
        year = 1700 + n
        contexts = [
            f"In {year} the lighthouse of Port {n} was lit for the first time. Crowds came.",
            f"Herrings were salted in barrels beside quay {5000 + n}.",
            f"The keeper sold lamps to every ship in {year}, it is said."
            if n % 3
            else f"Nobody remembers whoever came to bay {6000 + n}.",
            f"Fog lay over mountain {7000 + n} through all of winter.",
            f"Ropes were made in street {8000 + n}." if not swapped else f"Sails were sewn in street {9000 + n}.",
        ]
        reference = f"The lighthouse of Port {n} was lit in {year}. Its keeper sold lamps to ships."
        asked = f"What is known of Port {n}?"
        rows.append({"id": f"i{n:03}", "input": asked, "reference": reference, "contexts": contexts})
    return rows


@dataclass
class JudgedSuite:
    """A user's folder with such a suite.

    Every run in this process has its own `ragscore.assembly.Parts`, so that nothing is remembered but in files.
    """

    workspace: Workspace
    server: RunningServer
    judge: dict[str, Any] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """Where everything is."""
        return self.workspace.folder

    @property
    def claims_file(self) -> Path:
        """The frozen claims beside the dataset."""
        return self.folder / "questions.claims.jsonl"

    def write(self, rows: Sequence[Mapping[str, Any]] | None = None, *, judge: Any = None, **changes: Any) -> None:
        """The dataset, where given, and the suite with changes of its judge and of top-level keys."""
        if rows is not None:
            self.workspace.write_items(rows)
        part = {"model": "openai/lexical", "base_url": self.server.url, **self.judge, **(judge or {})}
        self.workspace.write_suite(**{"contexts": {"item": True}, "judge": part, **changes})

    def run(self, *, fresh: bool = False) -> RunRow:
        """Carry out the suite in this process, as `ragscore run` does in that folder."""
        with contextlib.chdir(self.folder):
            file = read_suite(self.workspace.suite)
            run_id = new_run_id()
            parts = assemble(file.changed(judge__fresh=True) if fresh else file, run_id=run_id)
            return asyncio.run(
                _carried_out(parts, lambda: begin(parts, History(self.workspace.history), run_id=run_id))
            )

    def resume(self, run: RunRow) -> RunRow:
        """Take up a run again in this process, as `ragscore resume` does."""
        with contextlib.chdir(self.folder):
            parts = parts_of(run)
            return asyncio.run(_carried_out(parts, lambda: take_up(History(self.workspace.history), run, parts)))

    def scores(self, run: RunRow | str) -> list[tuple[Any, ...]]:
        """All score rows of a run, without what differs from run to run."""
        return self.workspace.sql(SCORES.format(run if isinstance(run, str) else run.run_id))

    def verdicts(self, run: RunRow | str) -> list[tuple[Any, ...]]:
        """All verdict rows of a run, likewise."""
        return self.workspace.sql(VERDICTS.format(run if isinstance(run, str) else run.run_id))

    def bill(self, run: RunRow) -> tuple[int, int, int]:
        """Calls answered, decisions remembered (of the score rows), and requests (rows of `judge_calls`)."""
        ((calls, remembered),) = self.workspace.sql(
            f"select sum(calls)::bigint, sum(remembered)::bigint from scores where run_id = '{run.run_id}'"
        )
        ((requests,),) = self.workspace.sql(
            f"select count(*) from judge_calls where run_id = '{run.run_id}' and scorer is not null and item_id <> ''"
        )
        return calls, remembered, requests

    def requests(self) -> int:
        """Requests that the server has got, the probe among them."""
        return int(self.server.stats()["requests"])

    def frozen(self) -> list[dict[str, Any]]:
        """The lines of the claims file."""
        return [json.loads(line) for line in self.claims_file.read_text(encoding="utf-8").splitlines()]

    def forget(self) -> None:
        """Remove all that is remembered; history and frozen claims stay."""
        for path in self.workspace.history.parent.glob("judgements.sqlite*"):
            path.unlink()

    def elsewhere(self, folder: Path) -> JudgedSuite:
        """Another machine: the suite, the dataset and its frozen claims, nothing else."""
        folder.mkdir()
        other = JudgedSuite(make_workspace(folder), self.server, self.judge)
        for name in ("suite.yaml", "questions.jsonl", "questions.claims.jsonl"):
            if (self.folder / name).exists():
                shutil.copy(self.folder / name, folder / name)
        return other


def command(workspace: Workspace, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A command line, carried out in this process: LiteLLM takes seconds to import, and is imported here already."""
    from ragscore.cli import main

    out, err = io.StringIO(), io.StringIO()
    before = dict(os.environ)
    try:
        os.environ.clear()
        os.environ.update(workspace.environment(**environment))
        with contextlib.chdir(workspace.folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main(arguments)
        code: int | str | None = 0
    except SystemExit as ended:
        code = ended.code
    finally:
        os.environ.clear()
        os.environ.update(before)
    return subprocess.CompletedProcess(arguments, int(code or 0), out.getvalue(), err.getvalue())


async def _carried_out(parts: Parts, opened: Callable[[], Run]) -> RunRow:
    try:
        await parts.judging.prepare()
        run = opened()
        await evaluate_locally(run)
        run.history.finish_run(run.run_id, status="complete")
        return run.history.run(run.run_id)
    finally:
        await parts.judging.aclose()
