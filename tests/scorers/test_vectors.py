"""The acceptance vectors: the scores that must come out."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from ragscore.items import Status
from ragscore.scorers import ContextPrecision, ContextRecall, Judged, Sample, rounded
from ragscore.scorers.arithmetic import as_fraction

# Decimals come in through their text, as users write them.
VECTORS: dict[str, Any] = json.loads(
    (Path(__file__).parent.parent / "vectors.json").read_text(encoding="utf-8"), parse_float=Decimal
)


@pytest.mark.parametrize(("number", "expected"), VECTORS["rounding"])
def test_rounding_is_half_up(number: Decimal | str, expected: Decimal) -> None:
    assert rounded(as_fraction(str(number))) == float(expected)


@pytest.mark.parametrize("vector", VECTORS["recall"])
def test_recall_vector(
    vector: dict[str, Any], sample: Callable[..., Sample], recall_judged: Callable[..., Judged]
) -> None:
    claims = vector["claims"]
    texts = claims if isinstance(claims, list) else [f"claim {n}" for n in range(claims)]
    scorer = ContextRecall(scale=as_fraction(vector["scale"]))
    score = scorer.score(sample(), recall_judged(texts, vector["supported"]))
    assert (score.value, score.status) == (float(vector["score"]), Status.OK)
    assert score.exact == Fraction(sum(vector["supported"]), len(vector["supported"]))


@pytest.mark.parametrize("vector", VECTORS["precision"])
def test_precision_vector(
    vector: dict[str, Any], sample: Callable[..., Sample], precision_judged: Callable[..., Judged]
) -> None:
    relevant = vector["relevant"]
    made = sample([f"context {n}" for n in range(len(relevant))])
    score = ContextPrecision(scale=as_fraction(vector["scale"])).score(made, precision_judged(made, relevant))
    assert (score.value, score.status) == (float(vector["score"]), Status.OK)
    assert score.exact is not None
    assert 0 <= score.exact <= 1
