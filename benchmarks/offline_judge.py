"""How far the offline judge agrees with people, on human-labelled data; prints the table of docs/offline-judge.md.

    python benchmarks/offline_judge.py [DATA]

DATA is the folder of the labelled slices (default: `shared/data` beside the repository). Rows are split in two by a
hash of their id: the rules were chosen on the *tuned* half; the *held-out* half was only ever reported.
Balanced accuracy is the mean of the share of positives and of negatives that the judge gets right; chance is .5.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragscore.judges.offline import OfflineJudge
from ragscore.judges.offline.sentences import claims
from ragscore.judges.tasks import AttributeClaims, Claim, Passage, RateContexts

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"

#: (held out?, what people say, what the judge says)
Decision = tuple[bool, bool, bool]


@dataclass(frozen=True, slots=True)
class Agreement:
    """Balanced accuracy on each half and on both, and the number of decisions."""

    name: str
    tuned: float
    held_out: float
    overall: float
    decisions: int
    positives: int


def held_out(row_id: object) -> bool:
    """Whether a row belongs to the half that no rule was tuned on."""
    return int(hashlib.sha256(str(row_id).encode()).hexdigest(), 16) % 2 == 1


def rows(data: Path, name: str) -> list[dict[str, Any]]:
    """The rows of `data/name.jsonl`."""
    with (data / f"{name}.jsonl").open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def supported(question: str, statements: list[str], texts: list[str]) -> list[bool]:
    """The judge's verdict on each statement."""
    task = AttributeClaims(
        question,
        tuple(Claim(str(at), text) for at, text in enumerate(statements)),
        tuple(Passage(str(at), text) for at, text in enumerate(texts)),
    )
    return [verdict.positive for verdict in asyncio.run(OfflineJudge().ask(task)).verdicts]


def relevant(question: str, expected: str, texts: list[str]) -> list[bool]:
    """The judge's verdict on each text."""
    passages = tuple(Passage(str(at), text) for at, text in enumerate(texts))
    task = RateContexts(question, expected, "reference", passages)
    return [verdict.positive for verdict in asyncio.run(OfflineJudge().ask(task)).verdicts]


def balanced_accuracy(decisions: list[Decision]) -> float:
    """The mean of the true positive rate and the true negative rate, 0..1."""
    rates = []
    for truth in (True, False):
        said = [judged == truth for _, human, judged in decisions if human == truth]
        rates.append(sum(said) / len(said))
    return sum(rates) / 2


def summhay(data: Path) -> Iterator[Decision]:
    """Reference claims that people found fully covered, against those that they did not."""
    for row in rows(data, "reference_recall_summhay"):
        judged = supported(row["subtopic"], [claim["claim"] for claim in row["claims"]], row["context"])
        for claim, verdict in zip(row["claims"], judged, strict=True):
            yield held_out(row["id"]), claim["human"] == "fully", verdict


def attribution(data: Path, source: str) -> Iterator[Decision]:
    """Sentences of answers with their cited passages: `source` is HAGRID or AttributedQA."""
    for row in rows(data, "claim_support_hagrid_attributedqa"):
        if row["source"] == source:
            yield (
                held_out(row["id"]),
                row["supported"] == 1,
                supported(row["question"], [row["claim"]], row["contexts"])[0],
            )


def klue(data: Path) -> Iterator[Decision]:
    """Korean sentence pairs: entailment against neutral and contradiction."""
    for row in rows(data, "claim_support_klue_nli_ko"):
        yield held_out(row["id"]), row["label"] == "entailment", supported("", [row["claim"]], [row["context"]])[0]


def hotpotqa(data: Path) -> Iterator[Decision]:
    """Passages needed for a short answer, among ten."""
    for row in rows(data, "passage_relevance_hotpotqa100"):
        judged = relevant(row["question"], row["answer"], [passage["text"] for passage in row["passages"]])
        for passage, verdict in zip(row["passages"], judged, strict=True):
            yield held_out(row["id"]), passage["relevant"] == 1, verdict


def xquad(data: Path, language: str) -> Iterator[Decision]:
    """The paragraph that holds a short answer, among those of its article."""
    for row in rows(data, f"passage_relevance_xquad_{language}"):
        for asked in row["questions"]:
            for at, verdict in enumerate(relevant(asked["question"], asked["answer"], row["paragraphs"])):
                yield held_out(asked["id"]), at == asked["gold"], verdict


def mtrag(data: Path) -> Iterator[tuple[bool, float, float]]:
    """(held out?, recall of a reference against its gold passages, and against eight of another domain)."""
    passages = {row["id"]: row for row in rows(data, "rag_passages_mtrag")}
    domains = sorted({row["domain"] for row in passages.values()})
    for task in rows(data, "rag_tasks_mtrag"):
        if task["answerable"] == "ANSWERABLE":
            foreign = domains[(domains.index(task["domain"]) + 1) % len(domains)]
            others = [row["text"] for row in passages.values() if row["domain"] == foreign][:8]
            statements = list(claims(task["reference"]))
            own = supported(task["question"], statements, [passages[at]["text"] for at in task["gold"]])
            other = supported(task["question"], statements, others)
            yield held_out(task["id"]), sum(own) / len(own), sum(other) / len(other)


MEASURED: dict[str, Callable[[Path], Iterator[Decision]]] = {
    "SummHay, claims": summhay,
    "HAGRID, claims": lambda data: attribution(data, "HAGRID"),
    "AttributedQA, claims": lambda data: attribution(data, "AttributedQA"),
    "KLUE-NLI, claims (Korean)": klue,
    "HotpotQA, contexts": hotpotqa,
    "XQuAD, contexts (German)": lambda data: xquad(data, "de"),
    "XQuAD, contexts (Chinese)": lambda data: xquad(data, "zh"),
}


def agreement(name: str, data: Path = DATA) -> Agreement:
    """The agreement on one of `MEASURED`."""
    decisions = list(MEASURED[name](data))
    return Agreement(
        name,
        balanced_accuracy([decision for decision in decisions if not decision[0]]),
        balanced_accuracy([decision for decision in decisions if decision[0]]),
        balanced_accuracy(decisions),
        len(decisions),
        sum(human for _, human, _ in decisions),
    )


def main(data: Path) -> None:
    """Print both tables."""
    if not data.is_dir():
        sys.exit(f"error: {data}: no such folder — give the folder of the labelled data")
    started = time.perf_counter()
    print("| data | decisions | positive | tuned half | held-out half | all |\n|---|---|---|---|---|---|")
    for name in MEASURED:
        it = agreement(name, data)
        print(
            f"| {name} | {it.decisions} | {it.positives / it.decisions:.2f} "
            f"| {it.tuned:.3f} | {it.held_out:.3f} | {it.overall:.3f} |"
        )
    recalls = list(mtrag(data))
    print("\n| MTRAG, recall of reference answers | tuned half | held-out half | all |\n|---|---|---|---|")
    for label, column in (("against their gold passages", 1), ("against passages of another domain", 2)):
        means = []
        for chosen in ([False], [True], [False, True]):
            shares = [row[column] for row in recalls if row[0] in chosen]
            means.append(f"{sum(shares) / len(shares):.3f}")
        print(f"| {label} | {' | '.join(means)} |")
    print(f"\n{len(recalls)} MTRAG tasks; {time.perf_counter() - started:.1f} s in all", file=sys.stderr)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else DATA)
