"""The arithmetic of the scorers: exact, without judges, rows or clocks.

Every function works on `fractions.Fraction`; rounding happens once, in `rounded`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from ragscore.errors import ConfigError

#: Bands in which the field reads a score, lowest exact score first reached wins (DESIGN §4).
BANDS: tuple[tuple[Fraction, str], ...] = (
    (Fraction(9, 10), "excellent"),
    (Fraction(7, 10), "good"),
    (Fraction(4, 10), "mixed"),
)


def as_fraction(number: float | int | str | Fraction) -> Fraction:
    """`number` exactly as it is written: 0.835 is 835/1000, not the nearest binary double.

    Raises:
        ConfigError: it is not a finite number.
    """
    if isinstance(number, Fraction):
        return number
    try:
        if isinstance(number, float) and not math.isfinite(number):
            raise ValueError
        return Fraction(str(number))
    except (ValueError, ZeroDivisionError):
        raise ConfigError(f"{number!r} is not a finite number", mend="write it as 0.8 or 4/5") from None


def recall(supported: Sequence[bool]) -> Fraction:
    """Share of claims that are supported, in 0..1.

    Args:
        supported: One verdict per claim of the reference; not empty.

    Source: context recall as in RAGAS (Es et al., 2024, https://arxiv.org/abs/2309.15217), over a claim set
    that is given instead of extracted anew.
    """
    return Fraction(sum(map(bool, supported)), len(supported))


def average_precision(relevant: Sequence[bool]) -> Fraction:
    """Average precision over the ranks retrieved, in 0..1: Σ over relevant ranks k of (relevant in 1..k)/k ÷ relevant.

    Args:
        relevant: Relevance per rank, first rank first. None relevant gives 0.

    Source: Manning, Raghavan, Schütze, *Introduction to Information Retrieval*, §8.4, with the number of relevant
    contexts *retrieved* as denominator (what was not retrieved is the business of recall).
    """
    found = 0
    total = Fraction(0)
    for rank, is_relevant in enumerate(relevant, start=1):
        if is_relevant:
            found += 1
            total += Fraction(found, rank)
    return total / found if found else Fraction(0)


def rounded(exact: Fraction, scale: Fraction = Fraction(1)) -> float:
    """`exact * scale`, rounded once, half up, to 2 decimals: 1/8 → 0.13, 2/3 → 0.67, 0.835 → 0.84."""
    hundredths = math.floor(exact * scale * 100 + Fraction(1, 2))
    return float(Fraction(hundredths, 100))


def mean(values: Sequence[Fraction]) -> Fraction | None:
    """The exact mean, or None of nothing."""
    return sum(values, Fraction(0)) / len(values) if values else None


def band(exact: Fraction | float) -> str:
    """The word by which the field reads a score: excellent, good, mixed, poor or none."""
    for floor, word in BANDS:
        if exact >= floor:
            return word
    return "poor" if exact > 0 else "none"
