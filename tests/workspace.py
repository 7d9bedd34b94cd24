"""A user's folder for tests: a suite, a dataset and a target module that can be told to misbehave."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

#: What the target knows. Each question's reference is supported by the contexts of its own topic.
TOPICS = {
    "tea": "Tea is made from leaves of Camellia sinensis. Green tea is not oxidised.",
    "coffee": "Coffee is brewed from roasted beans. Espresso is forced through with nine bars of pressure.",
    "cocoa": "Cocoa is made from fermented beans of Theobroma cacao. The tree grows near the equator.",
    "mate": "Mate is steeped from leaves of Ilex paraguariensis. It is drunk through a metal straw.",
}
#: The target: answers from TOPICS, writes each call into calls.log, and obeys a file of orders.
TARGET = """
import json, os, pathlib, time
HERE = pathlib.Path(__file__).parent
TOPICS = json.loads((HERE / "topics.json").read_text(encoding="utf-8"))
NOISE = "The harbour was closed because of the fog."

def retrieve(question):
    with open(HERE / "calls.log", "a", encoding="utf-8") as log:
        log.write(question + "\\n")
    orders = json.loads((HERE / "orders.json").read_text(encoding="utf-8"))
    order = orders.get(question) or orders.get("*")
    if order == "raise":
        raise ValueError("no index for this one")
    if order == "refuse":
        raise ConnectionRefusedError("connection refused")
    if order == "nothing":
        return []
    if order == "first-30-calls-fail":
        if len((HERE / "calls.log").read_text(encoding="utf-8").splitlines()) <= 30:
            raise ConnectionResetError("starting up")
    if isinstance(order, (int, float)):
        time.sleep(order)
    topic = next((text for name, text in TOPICS.items() if name in question), "")
    return [text for text in (topic, NOISE) if text]

async def retrieve_async(question):
    return {"answer": "see there", "hits": [{"text": text, "id": str(n)} for n, text in enumerate(retrieve(question))]}

def text_only(question):
    return "an answer without contexts"
"""


@dataclass(frozen=True)
class Workspace:
    """A folder with `suite.yaml`, `questions.jsonl` and `drinks.py`; commands run in it, as a user would."""

    folder: Path

    @property
    def suite(self) -> Path:
        return self.folder / "suite.yaml"

    @property
    def history(self) -> Path:
        return self.folder / ".ragscore" / "history.duckdb"

    def write_suite(self, **changes: Any) -> Path:
        """The suite, with top-level keys replaced (None removes one)."""
        suite: dict[str, Any] = {
            "name": "drinks",
            "dataset": "questions.jsonl",
            "target": {"retriever": "drinks-search", "version": "v1", "python": "drinks:retrieve"},
            "judge": "offline",
            "scorers": ["context_recall", "context_precision"],
            "retry_delay_s": 0,
        }
        suite.update(changes)
        self.suite.write_text(yaml.safe_dump({k: v for k, v in suite.items() if v is not None}), encoding="utf-8")
        return self.suite

    def write_items(self, rows: Sequence[Mapping[str, Any]]) -> None:
        lines = [json.dumps(row, ensure_ascii=False) for row in rows]
        (self.folder / "questions.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")

    def order(self, **orders: Any) -> None:
        """What the target does for a question (by its text, spaces as underscores) or for all (`all_`)."""
        told = {"*" if key == "all_" else key.replace("_", " "): order for key, order in orders.items()}
        (self.folder / "orders.json").write_text(json.dumps(told), encoding="utf-8")

    def calls(self) -> list[str]:
        """The questions that the target was asked, in order."""
        log = self.folder / "calls.log"
        return log.read_text(encoding="utf-8").splitlines() if log.exists() else []

    def environment(self, **more: str) -> dict[str, str]:
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("PREFECT_", "RAGSCORE_"))}
        return {**kept, "PREFECT_HOME": str(self.folder / "prefect"), "NO_COLOR": "1", "PYTHONUTF8": "1", **more}

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "ragscore", *arguments]

    def ragscore(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end, in this folder."""
        return subprocess.run(
            self.command(*arguments),
            cwd=self.folder,
            env=self.environment(**environment),
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=120,
            check=False,
        )

    def sql(self, query: str) -> list[tuple[Any, ...]]:
        from ragscore.history import select

        return select(self.history, query).rows


def items(topics: Sequence[str] = tuple(TOPICS)) -> list[dict[str, Any]]:
    """One labelled question per topic."""
    return [{"id": name, "input": f"What about {name}?", "reference": TOPICS[name]} for name in topics]


def numbered_items(count: int) -> list[dict[str, Any]]:
    """Many labelled questions over the topics."""
    names = list(TOPICS)
    return [
        {
            "id": f"q{number:03}",
            "input": f"What about {names[number % len(names)]}, time {number}?",
            "reference": TOPICS[names[number % len(names)]],
        }
        for number in range(count)
    ]


def make_workspace(folder: Path) -> Workspace:
    """A folder in which `ragscore run suite.yaml` works."""
    workspace = Workspace(folder)
    (folder / "drinks.py").write_text(TARGET, encoding="utf-8")
    (folder / "topics.json").write_text(json.dumps(TOPICS), encoding="utf-8")
    workspace.order()
    workspace.write_items(items())
    workspace.write_suite()
    return workspace
