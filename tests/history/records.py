"""Runs made of real records, with figures that are known beforehand."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from ragscore.history import History, RunRow
from ragscore.items import Context, ContextSet, Finding, Item, Record, Response, Score, Status, Usage

RECALL, PRECISION = "context_recall", "context_precision"


def run_row(run_id: str = "run-1", *, items: int = 4, **changes: object) -> RunRow:
    row: dict[str, object] = {
        "run_id": run_id,
        "suite": "docs",
        "dataset": "docs.jsonl",
        "dataset_hash": "d" * 32,
        "items": items,
        "judge": "offline-lexical-1",
        "expected_scores": items * 2,
        "scorers": ({"name": RECALL, "kind": RECALL}, {"name": PRECISION, "kind": PRECISION}),
        "suite_doc": {"name": "docs", "target": {"version": "${VERSION:-dev}"}},
        "retriever": "docs-search",
        "version": "v1",
    }
    return RunRow(**{**row, **changes})  # type: ignore[arg-type]


def contexts_of(number: int, count: int = 3) -> tuple[Context, ...]:
    return tuple(
        Context(f"passage {number}.{rank} says something", id=f"p{number}.{rank}", score=1 / rank, metadata={"r": rank})
        for rank in range(1, count + 1)
    )


def recall(number: int, status: Status = Status.OK) -> Score:
    """Of three claims the first `number % 4` are supported."""
    found = tuple(
        Finding(
            kind="claim",
            id=f"c{rank}",
            rank=rank,
            text=f"fact {rank} of item {number}",
            positive=rank <= number % 4,
            why="found" if rank <= number % 4 else "not found: fact",
            sources=(1, 2) if rank <= number % 4 else (),
            quotes=("says something",) if rank <= number % 4 else (),
            verified=True if rank <= number % 4 else None,
            warnings=("negation on one side",) if rank == 3 else (),
            confidence=0.5,
        )
        for rank in (1, 2, 3)
    )
    exact = Fraction(min(number % 4, 3), 3) if status is Status.OK else None
    return Score(
        scorer=RECALL,
        kind=RECALL,
        status=status,
        exact=exact,
        value=None if exact is None else round(float(exact), 2),
        reason="because",
        against="reference",
        findings=found if exact is not None else (),
        counted=exact is not None,
        error=None if exact is not None else "the judge did not answer",
        context_set="response",
        claim_set="k" * 8,
        judge="offline-lexical-1",
        prompt_version="lexical-1",
        scorer_version="1",
        usage=Usage(calls=1, prompt_tokens=10, completion_tokens=3, cost_usd=0.25),
    )


def precision(number: int, *, scale: float = 10) -> Score:
    """Of three contexts that at rank `number % 3 + 1` is relevant, so that the average precision is its inverse."""
    relevant = number % 3 + 1
    exact = Fraction(1, relevant)
    return Score(
        scorer=PRECISION,
        kind=PRECISION,
        status=Status.OK,
        exact=exact,
        value=round(float(exact * 10), 2),
        scale=scale,
        reason="by place",
        against="reference",
        findings=tuple(
            Finding(kind="context", id=f"x{rank}", rank=rank, text=context.text, positive=rank == relevant, why="why")
            for rank, context in enumerate(contexts_of(number), start=1)
        ),
        context_set="response",
        judge="offline-lexical-1",
        prompt_version="lexical-1",
        scorer_version="1",
        usage=Usage(calls=0, remembered=3),
    )


def record(number: int, *, attempt: int = 1, status: Status = Status.OK) -> Record:
    held = contexts_of(number)
    return Record(
        item=Item(
            id=f"item-{number}",
            input=f"question {number}?",
            reference=f"answer {number}",
            reference_context_ids=(f"p{number}.1",),
            metadata={"lang": "en", "n": number},
        ),
        position=number,
        attempt=attempt,
        response=Response(output=f"said {number}", contexts=held, raw={"hits": [{"n": number}]}, latency_ms=12.5),
        context_sets={"response": ContextSet("response", held)},
        scores=(recall(number, status), precision(number)),
    )


def store(history: History, run_id: str, records: Sequence[Record]) -> tuple[int, int, int]:
    return (
        history.store_responses(run_id, records),
        history.store_contexts(run_id, records),
        history.store_scores(run_id, records),
    )
