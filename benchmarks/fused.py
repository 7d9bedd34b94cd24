"""How far `fused: true` agrees with separate judging, and what each costs.

    python benchmarks/fused.py [--model openai/NAME --base-url URL] [--items N]

Asks the demo's questions in both versions of its retriever. Their output is made without a model: the two sentences
among all hits that share most words with the question, so that some of it is right, some is noise. Recall, precision,
utilisation and noise sensitivity are judged each by itself, then in one call an item; the claims are the sentences of
the references. Printed are the decisions (claim in contexts, context relevant, claim in output) on which both agree,
Cohen's kappa, the means, and the calls. With a model its own variation is printed, too: separate judging against
separate judging again.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragscore.api import evaluate
from ragscore.demo.assistant import retrieve_v1, retrieve_v2
from ragscore.demo.suite import VERSIONS, demo_suite
from ragscore.history import select
from ragscore.judges.offline import sentences
from ragscore.judges.offline.words import tokens
from ragscore.suite_file import check_suite

SCORERS = ["context_recall", "context_precision", "context_utilization", "noise_sensitivity"]
RETRIEVERS = {"v1": retrieve_v1, "v2": retrieve_v2}
#: Sentences of an output.
SAID = 2

Pairs = list[tuple[bool, bool]]


def answer(question: str, version: str) -> dict[str, Any]:
    """What the assistant would say, and its hits."""
    hits = RETRIEVERS[version](question)
    asked = _words(question)
    found = [claim for hit in hits for claim in sentences.claims(str(hit["text"]))]
    nearest = sorted(range(len(found)), key=lambda at: (-len(asked & _words(found[at])), at))[:SAID]
    return {"output": " ".join(found[at] for at in sorted(nearest)), "contexts": hits}


def _write_questions(path: Path) -> None:
    """The demo's questions, each with the sentences of its reference as claims, so that none are extracted."""
    with path.open("w", encoding="utf-8") as file:
        for line in (demo_suite(VERSIONS[0]).base_dir / "questions.jsonl").read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            if row.get("reference"):
                row["claims"] = list(sentences.claims(row["reference"]))
            file.write(json.dumps(row) + "\n")


def _words(text: str) -> frozenset[str]:
    return frozenset(key for token in tokens(text) if token.kind != "stop" for key in token.keys)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two ways of judging the same items: decisions by kind, means by version and scorer, calls by way."""

    decisions: Mapping[str, Pairs]
    means: Mapping[tuple[str, str], tuple[float | None, float | None]]
    calls: tuple[int, int]


def compare(folder: Path, judge: Any = "offline", *, items: int | None = None, fused: bool = True) -> Comparison:
    """Judge both versions separately, then `fused` (or separately again), in `folder`.

    Args:
        folder: Where the history is.
        judge: As in a suite.
        items: How many questions; all when left out.
        fused: The second way; False measures the judge's own variation.
    """
    _write_questions(folder / "questions.jsonl")
    decisions: dict[str, Pairs] = {}
    means: dict[tuple[str, str], tuple[float | None, float | None]] = {}
    calls = [0, 0]
    for version in VERSIONS:
        demo = demo_suite(version)
        runs = []
        for second in (False, True):
            document = {
                **demo.document,
                "name": "fused" if second else "separate",
                "scorers": SCORERS,
                "judge": {"model": judge, "fresh": True} if isinstance(judge, str) else {**judge, "fresh": True},
                "fused": fused and second,
                "gate": {"coverage": 0},
                "dataset": {"path": "questions.jsonl", **({"limit": items} if items else {})},
            }
            suite = check_suite(document, base_dir=folder)
            run = asyncio.run(evaluate(suite, target=lambda question, version=version: answer(question, version)))
            ((count,),) = select(
                run.history, "select coalesce(sum(calls), 0)::bigint from scores where run_id = ?", [run.run_id]
            ).rows
            calls[second] += count
            runs.append(run)
        for scorer in SCORERS:
            means[(version, scorer)] = (runs[0].scores[scorer], runs[1].scores[scorer])
        query = """
            SELECT a.kind, a.positive, b.positive
            FROM verdicts AS a JOIN verdicts AS b USING (item_id, scorer, kind, verdict_id)
            WHERE a.run_id = ? AND b.run_id = ? AND a.text IS NOT DISTINCT FROM b.text
              AND a.positive IS NOT NULL AND b.positive IS NOT NULL
        """
        for kind, one, other in select(runs[1].history, query, [runs[0].run_id, runs[1].run_id]).rows:
            decisions.setdefault(kind, []).append((one, other))
    return Comparison(decisions, means, (calls[0], calls[1]))


def kappa(pairs: Sequence[tuple[bool, bool]]) -> float | None:
    """Agreement beyond chance (Cohen, 1960); None where all decisions are the same."""
    count = len(pairs)
    same = sum(one == other for one, other in pairs) / count
    one, other = sum(pair[0] for pair in pairs) / count, sum(pair[1] for pair in pairs) / count
    chance = one * other + (1 - one) * (1 - other)
    return None if chance == 1 else (same - chance) / (1 - chance)


def told(found: Comparison, ways: str) -> str:
    """The figures as a table."""
    lines = [ways, f"  {'decision':<16} {'n':>5}  agree  kappa"]
    for kind, pairs in sorted(found.decisions.items()):
        agreeing = sum(one == other for one, other in pairs) / len(pairs)
        beyond = kappa(pairs)
        lines.append(f"  {kind:<16} {len(pairs):>5}  {agreeing:>5.1%}  {'–' if beyond is None else f'{beyond:.2f}'}")
    for (version, scorer), (one, other) in found.means.items():
        shown = ["–" if each is None else f"{each:.3f}" for each in (one, other)]
        lines.append(f"  mean {version} {scorer:<20} {shown[0]} {shown[1]}")
    lines.append(f"  calls {found.calls[0]} and {found.calls[1]}")
    return "\n".join(lines)


def main() -> None:
    """Measure and print."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--model", default="offline")
    arguments.add_argument("--base-url", default=None)
    arguments.add_argument("--max-tokens", type=int, default=2048)
    arguments.add_argument("--items", type=int, default=None)
    given = arguments.parse_args()
    judge: Any = "offline"
    if given.model != "offline":
        judge = {"model": given.model, "base_url": given.base_url, "max_tokens": given.max_tokens, "timeout_s": 300}
        judge |= {"deadline_s": 900, "concurrency": 2}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        if judge != "offline":
            print(told(compare(Path(folder), judge, items=given.items, fused=False), "separate and separate again"))
        print(told(compare(Path(folder), judge, items=given.items), "separate and fused"))


if __name__ == "__main__":
    sys.exit(main())
