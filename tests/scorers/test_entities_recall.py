"""Which names, dates and amounts stand in a text by themselves."""

from __future__ import annotations

import pytest

from ragscore import ContextEntitiesRecall, ScriptedJudge


@pytest.mark.parametrize(
    ("entity", "text", "there"),
    [
        ("1,000", "It cost 1,000,000 dollars.", False),
        ("$1,000", "It cost $1,000,000.", False),
        ("5", "A rate of 3.5 percent.", False),
        ("12", "It weighs 12.5 kg.", False),
        ("5", "Er wiegt 5,5 kg.", False),
        ("5", "A rate of 3.5 percent, or 5.", True),
        ("1,000", "It cost 1,000, they say.", True),
        ("3.5", "A rate of 3.5.", True),
        ("2024", "Am 01.05.2024.", True),
        ("1921", "In 1920,1921,1922.", True),
        ("Ulm", "Ulmer Münster", False),
        ("北京", "在北京市", True),
    ],
)
async def test_a_part_of_a_longer_word_or_number_is_not_there(entity: str, text: str, there: bool) -> None:
    scorer = ContextEntitiesRecall(model=ScriptedJudge(entities={"ref": [entity]}), context=[text])
    assert (await scorer.run(input="?", reference="ref")).score == float(there)
