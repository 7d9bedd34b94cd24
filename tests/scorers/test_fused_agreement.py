"""How far fused judging agrees with separate judging, over the demo and the offline judge (docs/scorers.md).

The figures themselves come from benchmarks/fused.py.
"""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from tests.benchmarked import benchmark


@pytest.fixture
def measuring() -> ModuleType:
    return benchmark("fused")


@pytest.mark.e2e
def test_claims_are_judged_the_same_and_relevance_agrees_on_nine_contexts_of_ten(
    measuring: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = measuring.compare(tmp_path)
    for kind in ("claim", "stated_claim", "noise_claim"):
        assert len(found.decisions[kind]) > 150
        assert all(one == other for one, other in found.decisions[kind])
        assert len({one for one, _ in found.decisions[kind]}) == 2
    contexts = found.decisions["context"]
    assert len(contexts) > 300
    assert sum(one == other for one, other in contexts) / len(contexts) >= 0.85
    assert measuring.kappa(contexts) >= 0.7
    for (_, scorer), (one, other) in found.means.items():
        assert other == pytest.approx(one, abs=0.05 if scorer == "context_precision" else 0)
