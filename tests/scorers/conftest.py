"""Samples and judged samples, made by hand: the score part needs no judge."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from ragscore.items import Context, ContextSet, Item, Judgement, Status, Verdict
from ragscore.judges import ClaimSet
from ragscore.scorers import Judged, Passages, Sample

MakeSample = Callable[..., Sample]


@pytest.fixture
def sample() -> MakeSample:
    def make(texts: Sequence[str] = ("a", "b"), **item: object) -> Sample:
        fields: dict[str, object] = {"id": "q", "input": "why?", "reference": "because", **item}
        contexts = tuple(Context(text) for text in texts)
        return Sample(Item(**fields), None, ContextSet("response", contexts))  # type: ignore[arg-type]

    return make


@pytest.fixture
def recall_judged() -> Callable[..., Judged]:
    def make(claims: Sequence[str], supported: Sequence[bool], texts: Sequence[str] = ("a",)) -> Judged:
        verdicts = tuple(Verdict(f"c{n}", yes) for n, yes in enumerate(supported, start=1))
        passages = Passages.of([Context(text) for text in texts])
        return Judged(Status.OK, passages, Judgement("hand", verdicts=verdicts), ClaimSet(tuple(claims), "hand"))

    return make


@pytest.fixture
def precision_judged() -> Callable[..., Judged]:
    def make(sample: Sample, relevant: Sequence[bool]) -> Judged:
        passages = Passages.of(sample.contexts.contexts)
        verdicts = tuple(Verdict(p.id, relevant[passages.ranks[p.id][0] - 1]) for p in passages.passages)
        return Judged(Status.OK, passages, Judgement("hand", verdicts=verdicts), against="reference")

    return make
