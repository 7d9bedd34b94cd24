"""How far judges agree beyond chance: Krippendorff's alpha for nominal values, exactly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from fractions import Fraction


def krippendorff_alpha(units: Iterable[Sequence[Hashable]]) -> Fraction | None:
    """1 − observed ÷ expected disagreement; 1 is perfect, 0 is chance, below 0 is worse than chance.

    Args:
        units: The values given to each thing judged (a claim, a context), one per judge that gave one. Units with fewer
            than two values say nothing and are left out.

    Returns:
        None where nothing can be said: no unit with two values, or all values are the same (no variation).

    Source: Krippendorff, *Computing Krippendorff's Alpha-Reliability*, 2011, by coincidences.

    >>> krippendorff_alpha([(True, True), (True, False), (False, False), (False, False)])
    Fraction(8, 15)
    """
    weights: dict[tuple[Hashable, Hashable], Fraction] = {}
    totals: dict[Hashable, Fraction] = {}
    for values in units:
        count = len(values)
        if count < 2:
            continue
        held = Counter(values)
        for one, times in held.items():
            for other, others in held.items():
                pairs = times * (others - 1 if one == other else others)
                if pairs:
                    weights[(one, other)] = weights.get((one, other), Fraction(0)) + Fraction(pairs, count - 1)
            totals[one] = totals.get(one, Fraction(0)) + times
    total = sum(totals.values(), Fraction(0))
    if total == 0:
        return None
    expected = total * total - sum((each * each for each in totals.values()), Fraction(0))
    if expected == 0:
        return None
    observed = sum((each for (one, other), each in weights.items() if one != other), Fraction(0))
    return 1 - (total - 1) * observed / expected
