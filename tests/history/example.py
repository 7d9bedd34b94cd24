"""A history as a few weeks of use leave it: four runs of three versions, a failure that was tried again, two judges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path

from ragscore.history import History
from ragscore.items import Call, Context, ContextSet, Finding, Item, Record, Response, Score, Status, Usage

from .records import PRECISION, RECALL, run_row

JUDGE = "openai/gpt-5-mini"
START = datetime(2026, 3, 2, 3, 0, tzinfo=UTC)
#: Which of the three facts of each item are supported, by version.
SUPPORTED: Mapping[str, Mapping[str, str]] = {
    "v1": {"refund": "110", "shipping": "111", "warranty": "111", "returns": "100"},
    "v2": {"refund": "010", "shipping": "101", "warranty": "111", "returns": "100"},
    "v3": {"refund": "011", "shipping": "011", "warranty": "111", "returns": "111"},
}
#: Run, version, days after the start.
RUNS = (("run-1", "v1", 0), ("run-2", "v1", 1), ("run-3", "v2", 7), ("run-4", "v3", 14))
GATES = {"run-1": "pass", "run-2": "pass", "run-3": "fail", "run-4": "inconclusive"}


def example(path: Path) -> History:
    """Make the history at `path`."""
    history = History(path)
    for run_id, version, days in RUNS:
        begun = START + timedelta(days=days)
        history.start_run(
            run_row(run_id, version=version, started_at=begun, judge=JUDGE, trigger="deploy", engine="prefect")
        )
        records = [
            _record(number, item, flags, begun) for number, (item, flags) in enumerate(SUPPORTED[version].items())
        ]
        if run_id == "run-3":
            failed = _record(2, "warranty", "111", begun, status=Status.JUDGE_ERROR)
            records[2] = failed
        _store(history, run_id, records)
        if run_id == "run-3":
            history.finish_run(run_id, status="failed", error="the judge does not answer")
            history.reopen_run(run_id)
            again = _record(2, "warranty", "111", begun, attempt=2)
            assert again.scores is not None
            history.store_scores(run_id, [again.having(scores=again.scores[:1])])
        assert history.finish_run(run_id, status="complete").ok
        history.store_gate(run_id, GATES[run_id], {"scorers": {RECALL: {"verdict": GATES[run_id]}}})
    history.store_comparison(
        [
            {
                "comparison_id": "c1",
                "created_at": START + timedelta(days=7),
                "baseline_run_id": "run-2",
                "run_id": "run-3",
                "suite": "docs",
                "scorer": RECALL,
                "n": 4,
                "mean_before": 0.75,
                "mean_after": 2 / 3,
                "difference": -1 / 12,
                "p": 0.03,
                "verdict": "fail",
                "forced": False,
                "details": {"worse": ["refund"]},
            }
        ]
    )
    history.store_calibration(
        [
            {
                "calibration_id": "k1",
                "judge": JUDGE,
                "prompt_version": "1",
                "labels": "labels.csv",
                "kind": "claim",
                "n": 100,
                "true_positive": 60,
                "false_positive": 5,
                "false_negative": 5,
                "true_negative": 30,
                "balanced_accuracy": 0.89,
                "kappa": 0.78,
            }
        ]
    )
    history.store_noise(
        [
            {
                "noise_id": "n1",
                "run_id": "run-2",
                "suite": "docs",
                "scorer": RECALL,
                "judge": JUDGE,
                "repeats": 5,
                "n": 4,
                "flip_rate": 0.02,
                "floor": 0.01,
            }
        ]
    )
    return history


def _store(history: History, run_id: str, records: Sequence[Record]) -> None:
    history.store_responses(run_id, records)
    history.store_contexts(run_id, records)
    history.store_scores(run_id, records)


def _record(
    number: int, item: str, flags: str, begun: datetime, *, attempt: int = 1, status: Status = Status.OK
) -> Record:
    held = tuple(
        Context(
            f"passage {rank} about {item}" if rank < 4 else "passage 1 about refund", id=f"{item}.md", score=1 / rank
        )
        for rank in range(1, 5)
    )
    call = Call(
        "attribute_claims",
        JUDGE,
        "json_schema",
        "ok" if status is Status.OK else "timeout",
        prompt_tokens=900 if status is Status.OK else None,
        completion_tokens=80 if status is Status.OK else None,
        cached_tokens=0 if status is Status.OK else None,
        cost_usd=0.0004 if status is Status.OK else None,
        latency_ms=700.0 + 100 * number,
        started_at=begun.timestamp() + number,
    )
    claims = tuple(
        Finding(
            "claim",
            f"c{rank}",
            rank,
            "The receipt is needed." if rank == 1 else f"fact {rank} of {item}",
            flag == "1",
            "found" if flag == "1" else "not in any context",
            sources=(1,) if flag == "1" else (),
            quotes=("about",) if flag == "1" else (),
            verified=rank != 3 if flag == "1" else None,
        )
        for rank, flag in enumerate(flags, start=1)
    )
    is_ok = status is Status.OK
    exact = Fraction(flags.count("1"), 3) if is_ok else None
    recall = Score(
        RECALL,
        RECALL,
        status,
        exact,
        None if exact is None else round(float(exact), 2),
        reason=f"{flags.count('1')} of 3 claims are supported",
        against="reference",
        findings=claims if is_ok else (),
        counted=is_ok,
        error=None if is_ok else "no answer within 60 s",
        context_set="response",
        claim_set=f"set-{item}",
        judge=JUDGE,
        prompt_version="1",
        scorer_version="1",
        usage=Usage(1, 0, call.prompt_tokens, call.completion_tokens, call.cached_tokens, call.cost_usd),
        calls=(call,),
    )
    relevant = flags.index("1") + 1
    precision = Score(
        PRECISION,
        PRECISION,
        Status.OK,
        Fraction(1, relevant),
        round(1 / relevant, 2),
        reason=f"the relevant context is at rank {relevant}",
        against="reference",
        findings=tuple(
            Finding("context", str(rank), rank, context.text, rank == relevant, "serves" if rank == relevant else "no")
            for rank, context in enumerate(held, start=1)
        ),
        context_set="response",
        judge=JUDGE,
        prompt_version="1",
        scorer_version="1",
        usage=Usage(remembered=4),
    )
    return Record(
        Item(item, f"What about {item}?", f"All about {item}.", metadata={"lang": "de" if number % 2 else "en"}),
        number,
        attempt,
        Response(f"Well, {item}.", held, {"hits": 4}, 120.0 + 40 * number),
        {"response": ContextSet("response", held)},
        scores=(recall, precision),
    )
