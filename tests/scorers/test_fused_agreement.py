"""How far fused judging agrees with separate judging, over the demo and the offline judge (docs/scorers.md)."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragscore.api import evaluate
from ragscore.demo.suite import VERSIONS, demo_suite
from ragscore.history import select


async def test_recall_is_the_same_and_relevance_agrees_on_nine_contexts_of_ten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    same = contexts = 0
    for version in VERSIONS:
        separate = await evaluate(demo_suite(version), name="separate")
        fused = await evaluate(demo_suite(version).changed(fused=True), name="fused")
        assert fused.scores["context_recall"] == separate.scores["context_recall"]
        assert fused.scores["context_precision"] == pytest.approx(separate.scores["context_precision"], abs=0.05)
        query = """
            SELECT count(*) FILTER (a.positive = b.positive), count(*)
            FROM verdicts AS a JOIN verdicts AS b USING (item_id, scorer, verdict_id)
            WHERE a.run_id = ? AND b.run_id = ? AND a.kind = 'context'
        """
        ((equal, count),) = select(fused.history, query, [separate.run_id, fused.run_id]).rows
        same, contexts = same + equal, contexts + count
    assert contexts > 300
    assert same / contexts >= 0.85
