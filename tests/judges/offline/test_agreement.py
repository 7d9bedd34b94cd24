"""Floors of the offline judge's agreement with people. The figures themselves come from benchmarks/offline_judge.py."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from tests.benchmarked import benchmark


@pytest.fixture(scope="module")
def measuring() -> ModuleType:
    return benchmark("offline_judge")


@pytest.mark.parametrize(
    ("name", "floor"),
    [
        ("SummHay, claims", 0.78),
        ("HAGRID, claims", 0.75),
        ("HotpotQA, contexts", 0.73),
        ("XQuAD, contexts (German)", 0.95),
        ("XQuAD, contexts (Chinese)", 0.95),
    ],
)
def test_agreement_with_people_holds_on_both_halves(
    measuring: ModuleType, labelled_data: Path, name: str, floor: float
) -> None:
    found = measuring.agreement(name, labelled_data)
    assert found.overall >= floor
    assert min(found.tuned, found.held_out) >= floor


def test_references_are_recalled_from_their_gold_passages_and_not_from_another_domain(
    measuring: ModuleType, labelled_data: Path
) -> None:
    recalls = list(measuring.mtrag(labelled_data))
    assert len(recalls) > 100
    assert sum(own for _, own, _ in recalls) / len(recalls) >= 0.75
    assert sum(other for _, _, other in recalls) / len(recalls) <= 0.05
