"""Ways to ask the offline judge about plain texts, and where the labelled data is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from ragscore.items import Judgement, Verdict
from ragscore.judges.offline import OfflineJudge
from ragscore.judges.tasks import AttributeClaims, Claim, Passage, RateContexts, Task


def _ask(task: Task) -> Judgement:
    return asyncio.run(OfflineJudge().ask(task))


@pytest.fixture(scope="session")
def ask() -> Callable[[Task], Judgement]:
    return _ask


@pytest.fixture(scope="session")
def attribute() -> Callable[..., Verdict]:
    """`attribute(claim, *texts)`: the verdict on one claim."""

    def attribute(claim: str, *texts: str, question: str = "Which?") -> Verdict:
        passages = tuple(Passage(f"p{at}", text) for at, text in enumerate(texts, start=1))
        return _ask(AttributeClaims(question, (Claim("c1", claim),), passages)).verdicts[0]

    return attribute


@pytest.fixture(scope="session")
def rate() -> Callable[..., tuple[Verdict, ...]]:
    """`rate(question, expected, *texts)`: the verdicts on the texts."""

    def rate(question: str, expected: str, *texts: str) -> tuple[Verdict, ...]:
        passages = tuple(Passage(f"p{at}", text) for at, text in enumerate(texts, start=1))
        return _ask(RateContexts(question, expected, "reference", passages)).verdicts

    return rate


@pytest.fixture(scope="session")
def labelled_data() -> Path:
    folder = Path(__file__).resolve().parents[4] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the human-labelled data (../shared/data) is absent")
    return folder
