"""The long texts of a report: each is held once, and cut to the length at which all of them fit into the file.

Corpora repeat: the same chunk is retrieved for many questions, and two runs of a question share most of what they show.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

#: How many characters of a text are kept, tried in this order until everything fits; None is all of them.
LENGTHS: tuple[int | None, ...] = (None, 20_000, 8_000, 4_000, 2_000, 1_400, 1_000, 700, 500, 350, 250, 150)
#: Stands where something was cut out.
GAP = " […] "
#: Characters that are kept on both sides of a quoted place beyond the cut.
AROUND = 60


@dataclass
class Texts:
    """Texts by number, with the quotes that must stay visible in them.

    `add` returns the number of a text; the same text always has the same one. Those of `whole` are never cut.
    """

    _numbers: dict[str, int] = field(default_factory=dict)
    _quotes: dict[int, dict[str, None]] = field(default_factory=dict)
    _whole: set[int] = field(default_factory=set)

    def add(self, text: str | None) -> int | None:
        """The number of `text`; None for None."""
        return None if text is None else self._numbers.setdefault(text, len(self._numbers))

    def whole(self, text: str) -> int:
        """The number of `text`, which stays word for word."""
        number = self._numbers.setdefault(text, len(self._numbers))
        self._whole.add(number)
        return number

    def quote(self, text: str, quote: str) -> None:
        """Keep `quote` visible in `text`, wherever it is cut."""
        number = self.add(text)
        if number is not None and quote:
            self._quotes.setdefault(number, {})[quote] = None

    def cut(self, length: int | None) -> tuple[list[str], int]:
        """All texts in the order of their numbers, each of about `length` characters, and how many were cut."""
        made = [
            text
            if length is None or number in self._whole
            else shortened_around(text, length, list(self._quotes.get(number, ())))
            for text, number in self._numbers.items()
        ]
        return made, sum(cut != text for cut, text in zip(made, self._numbers, strict=True))


@dataclass(frozen=True, slots=True)
class Packed:
    """Data as it stands in the page: JSON, deflated (zlib), in base64.

    `length` is the number of characters from which on texts are cut, None where none had to be; `cut` counts those.
    """

    data: str
    length: int | None
    cut: int


def packed(texts: Texts, data: Callable[[list[str], int | None, int], Mapping[str, Any]], *, budget: int) -> Packed:
    """The data with as much of every text as fits into `budget` bytes; the shortest cut if nothing does.

    Args:
        texts: All long texts.
        data: Makes the JSON-able data of the texts as they are cut, the length of the cut and how many are cut.
        budget: Bytes of the result.
    """
    found = None
    for length in LENGTHS:
        made, count = texts.cut(length)
        raw = json.dumps(data(made, length, count), ensure_ascii=False, separators=(",", ":"))
        found = Packed(base64.b64encode(zlib.compress(raw.encode("utf-8", "replace"), 9)).decode(), length, count)
        if len(found.data) <= budget:
            break
    assert found is not None
    return found


def shortened_around(text: str, length: int, quotes: list[str]) -> str:
    """The first `length` characters of `text` and the places of `quotes` behind them; `GAP` for what is left out."""
    if len(text) <= length + len(GAP):
        return text
    spans = [(0, length)]
    for quote in quotes:
        at = text.find(quote)
        if at >= 0:
            spans.append((max(0, at - AROUND), min(len(text), at + len(quote) + AROUND)))
    kept: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if kept and start <= kept[-1][1] + len(GAP):
            kept[-1] = (kept[-1][0], max(end, kept[-1][1]))
        else:
            kept.append((start, end))
    shown = GAP.join(text[start:end] for start, end in kept)
    return shown + (GAP.rstrip() if kept[-1][1] < len(text) else "")
