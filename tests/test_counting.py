from __future__ import annotations

import pytest

from ragscore.counting import counted


@pytest.mark.parametrize(
    ("count", "noun", "said"),
    [
        (0, "item", "0 items"),
        (1, "item", "1 item"),
        (2, "run", "2 runs"),
        (1, "batch", "1 batch"),
        (3, "batch", "3 batches"),
    ],
)
def test_one_is_not_plural(count: int, noun: str, said: str) -> None:
    assert counted(count, noun) == said
