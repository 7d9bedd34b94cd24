"""Floors of the offline judge's agreement with people. The figures themselves come from benchmarks/offline_judge.py."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="module")
def measuring() -> ModuleType:
    path = Path(__file__).resolve().parents[3] / "benchmarks" / "offline_judge.py"
    spec = importlib.util.spec_from_file_location("offline_judge_benchmark", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


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
