"""The statistics of comparisons (DESIGN §7): paired differences of scores, interval, p, and what can be seen at all.

All functions are seeded and say so: the same numbers give the same answer. Differences are `after - before`, so that a
drop is negative. Where items share a cluster (one document, one conversation), clusters are resampled and flipped as
wholes, since their items rise and fall together. numpy and scipy are imported inside functions: starting is cheap.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

#: Resamples of the bootstrap and of the sign flips.
RESAMPLES = 9_999
#: Confidence of every interval.
CONFIDENCE = 0.95
#: From this many units on the normal approximation takes the place of resampling: they agree to the third decimal.
MANY = 5_000
#: With fewer units that changed at all, resampling says nothing about the rest.
FEWEST = 5
#: What sums of binary fractions may differ by although they are equal.
TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval, both ends included."""

    low: float
    high: float


def bca_interval(
    changes: Sequence[float],
    *,
    clusters: Sequence[object] | None = None,
    confidence: float = CONFIDENCE,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Interval | None:
    """The bias-corrected and accelerated bootstrap interval of the mean of `changes`.

    Args:
        changes: One paired difference per item.
        clusters: Per item what it shares with others; items without company have values of their own.
        confidence: Two-sided.
        resamples: Of the bootstrap.
        seed: Of the resampling.

    Returns:
        None when there are too few units to tell: none or one, or fewer than `FEWEST` of which some changed. Where all
        units changed by the same, the interval is that one number.

    Source: Efron (1987), *Better bootstrap confidence intervals*, JASA 82, by `scipy.stats.bootstrap`; by cluster,
    Davison & Hinkley (1997), *Bootstrap Methods and their Application*, §3.8: whole clusters are drawn.
    """
    import numpy as np
    from scipy import stats

    totals, sizes = _units(changes, clusters)
    count = len(totals)
    mean = float(totals.sum() / sizes.sum()) if count else 0.0
    if count < 2:
        return None
    if np.ptp(totals - mean * sizes) <= TOLERANCE:
        return Interval(mean, mean) if count >= FEWEST or abs(mean) <= TOLERANCE else None
    if count < FEWEST:
        return None
    if count > MANY:
        z = float(stats.norm.ppf((1 + confidence) / 2))
        error = math.sqrt(count / (count - 1) * float(((totals - mean * sizes) ** 2).sum())) / float(sizes.sum())
        return Interval(mean - z * error, mean + z * error)

    def weighted(total: Numbers, size: Numbers, axis: int = -1) -> Any:
        return total.sum(axis=axis) / size.sum(axis=axis)

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # of degenerate distributions, which are looked for below
        for method in ("BCa", "percentile"):
            found = stats.bootstrap(
                (totals, sizes),
                weighted,
                paired=True,
                vectorized=True,
                confidence_level=confidence,
                n_resamples=resamples,
                batch=max(1, 4_000_000 // count),
                method=method,
                rng=np.random.default_rng(seed),
            ).confidence_interval
            if math.isfinite(found.low) and math.isfinite(found.high):
                return Interval(float(found.low), float(found.high))
    return None


def drop_p(
    changes: Sequence[float],
    *,
    clusters: Sequence[object] | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> float:
    """How often chance alone would give a mean as low as that of `changes`: one-sided p of the sign-flip test.

    Under the hypothesis that nothing changed, a difference is as likely to be `+d` as `-d`. All sign patterns are
    counted where there are few, else `resamples` random ones and the one that was observed (so p is never 0).

    Args:
        changes: One paired difference per item; those of 0 say nothing and are left out.
        clusters: As `bca_interval`; the sums of clusters are flipped.
        resamples: Random sign patterns.
        seed: Of the patterns.

    Returns:
        Between 0 (excluded) and 1; 1 when nothing changed.

    Source: Fisher (1935), *The Design of Experiments*, §21; Phipson & Smyth (2010), *Permutation p-values should never
    be zero*; the same as `scipy.stats.permutation_test(permutation_type="samples", alternative="less")`.
    """
    import numpy as np
    from scipy import stats

    totals, _ = _units(changes, clusters)
    totals = totals[np.abs(totals) > TOLERANCE]
    if not len(totals):
        return 1.0
    if len(totals) > MANY:
        return float(stats.norm.cdf(totals.sum() / math.sqrt(float((totals**2).sum()))))
    flips, is_exact = sign_patterns(len(totals), resamples, seed=seed)
    as_low = int((flips @ totals <= totals.sum() + TOLERANCE).sum())
    return as_low / len(flips) if is_exact else (as_low + 1) / (len(flips) + 1)


def holm(ps: Sequence[float]) -> list[float]:
    """Adjusted p-values that hold for all tests together, in the order given.

    Source: Holm (1979), *A simple sequentially rejective multiple test procedure*, Scandinavian J. of Statistics 6.
    """
    adjusted = [0.0] * len(ps)
    highest = 0.0
    for place, number in enumerate(sorted(range(len(ps)), key=lambda each: ps[each])):
        highest = max(highest, min(1.0, (len(ps) - place) * ps[number]))
        adjusted[number] = highest
    return adjusted


def wilson(successes: int, trials: int, *, confidence: float = CONFIDENCE) -> Interval | None:
    """The interval of a share; None of no trials.

    Source: Wilson (1927), JASA 22; Newcombe (1998), *Two-sided confidence intervals for the single proportion*,
    method 3; by `scipy.stats.binomtest`.
    """
    from scipy import stats

    if trials <= 0:
        return None
    found = stats.binomtest(successes, trials).proportion_ci(confidence_level=confidence, method="wilson")
    return Interval(float(found.low), float(found.high))


def detectable_drop(
    before: Sequence[float],
    changes: Sequence[float],
    *,
    limit: float,
    alpha: float,
    clusters: Sequence[object] | None = None,
    power: float = 0.85,
    trials: int = 1_000,
    seed: int = 0,
) -> float | None:
    """The smallest true drop of the mean that the rule "drop > limit and p ≤ alpha" finds in `power` of all cases.

    By simulation of that very rule, from `MANY` units on by its normal limit. A drop is made the way in which it is
    hardest to see at a given size: a share of the items loses its whole score, the others lose nothing and differ by
    chance, as the observed differences do with random signs. Items are drawn anew in each trial.

    Args:
        before: The baseline's score of each pair, within 0 and 1.
        changes: The paired differences that were observed.
        limit: The drop that is tolerated.
        alpha: The level of the test, with every correction for several tests in it.
        clusters: As `bca_interval`.
        power: The share of cases. A little more than the 80 % that are promised, since how large chance is, is itself
            only known from the differences of one pair of runs.
        trials: Simulated cases.
        seed: Of the simulation.

    Returns:
        Within 0 and 1; None when not even the loss of everything would be found.

    Source: simulation-based power, Cohen (1988), *Statistical Power Analysis*, ch. 2, in place of his normal formula.
    """
    import numpy as np

    scores, sizes = _units(before, clusters)
    chance, _ = _units(changes, clusters)
    count = len(scores)
    if not count or scores.sum() <= TOLERANCE:
        return None
    if count > MANY:
        return _detectable_by_many(scores, sizes, chance, limit=limit, alpha=alpha, power=power)
    trials = max(200, min(trials, 4_000_000 // count))
    rng = np.random.default_rng(seed)
    drawn = rng.integers(0, count, (trials, count))
    loses = rng.random((trials, count))
    noise = np.where(rng.random((trials, count)) < 0.5, chance[drawn], -chance[drawn])
    lost, total = -scores[drawn], sizes[drawn].sum(axis=1)
    flips = sign_patterns(count, 999, seed=seed)[0] if count <= _FEW_FOR_NORMAL else None

    def found(share: float) -> float:
        simulated = np.where(loses < share, lost, noise)
        below = simulated.sum(axis=1) / total < -limit - TOLERANCE
        if not below.any():
            return 0.0
        return float((drop_ps(simulated[below], flips) <= alpha).sum() / trials)

    share = _least_share(found, power)
    return None if share is None else min(1.0, share * float(scores.sum() / sizes.sum()))


def _least_share(found: Callable[[float], float], power: float, *, within: float = 0.002) -> float | None:
    """The smallest share of losing units at which a drop is found often enough; None where there is none."""
    if found(1.0) < power:
        return None
    low, high = 0.0, 1.0
    while high - low > within:
        middle = (low + high) / 2
        low, high = (low, middle) if found(middle) >= power else (middle, high)
    return high


def _detectable_by_many(
    scores: Numbers, sizes: Numbers, chance: Numbers, *, limit: float, alpha: float, power: float
) -> float | None:
    """As `detectable_drop`, for so many units that their sum is normal, whatever each of them does."""
    from scipy import stats

    count = len(scores)
    noise = float((chance**2).mean())
    tested = float(stats.norm.ppf(alpha))

    def found(share: float) -> float:
        mean = -share * float(scores.mean())
        square = share * float((scores**2).mean()) + (1 - share) * noise
        spread = math.sqrt(max(square - mean**2, 0.0)) or TOLERANCE
        is_significant = (tested * math.sqrt(count * square) - count * mean) / (math.sqrt(count) * spread)
        # The drop is a sum over the units' sizes, which are drawn with them: it is beyond where this sum is below 0.
        beyond = mean + limit * float(sizes.mean())
        both = share * float(((limit * sizes - scores) ** 2).mean())
        both += (1 - share) * (noise + limit**2 * float((sizes**2).mean()))
        is_beyond = -math.sqrt(count) * beyond / (math.sqrt(max(both - beyond**2, 0.0)) or TOLERANCE)
        return float(stats.norm.cdf(min(is_significant, is_beyond)))

    share = _least_share(found, power, within=1e-6)
    return None if share is None else min(1.0, share * float(scores.sum() / sizes.sum()))


def items_needed(changes: Sequence[float], *, limit: float, alpha: float) -> int | None:
    """About how many items it would take to tell, if the differences stay as they are; None when that is unknown.

    By the normal approximation: enough for the interval to clear `-limit`, or for the test to see a drop beyond it.
    """
    import numpy as np
    from scipy import stats

    values = np.asarray(changes, dtype=np.float64)
    if len(values) < 2:
        return None
    mean, spread = float(values.mean()), float(values.std(ddof=1))
    beyond = mean < -limit - TOLERANCE
    distance = -mean if beyond else mean + limit
    if spread <= TOLERANCE or distance <= TOLERANCE:
        return None
    z = float(stats.norm.isf(alpha if beyond else (1 - CONFIDENCE) / 2))
    return max(FEWEST + 1, math.ceil((z * spread / distance) ** 2))


#: Up to this many units the detectable drop is simulated with real sign flips, beyond it with their normal limit.
_FEW_FOR_NORMAL = 60


def drop_ps(simulated: Numbers, flips: Numbers | None) -> Numbers:
    """As `drop_p` for each row of `simulated` (trials x units), all with the same `flips`; normal without any."""
    import numpy as np
    from scipy import stats

    observed = simulated.sum(axis=1)
    if flips is None:
        spread = np.sqrt((simulated**2).sum(axis=1))
        z = np.divide(observed, spread, out=np.zeros_like(observed), where=spread > TOLERANCE)
        return np.asarray(stats.norm.cdf(z))
    as_low = (simulated @ flips.T <= observed[:, None] + TOLERANCE).sum(axis=1)
    return np.asarray((as_low + 1) / (len(flips) + 1))


def sign_patterns(count: int, resamples: int, *, seed: int = 0) -> tuple[Numbers, bool]:
    """Sign patterns (patterns x units) as ±1, and whether they are all there are."""
    import numpy as np

    if 2**count <= resamples + 1:
        patterns = (np.arange(2**count)[:, None] >> np.arange(count)) & 1
        return np.asarray(1.0 - 2.0 * patterns, dtype=np.float64), True
    drawn = np.random.default_rng(seed).integers(0, 2, (resamples, count), dtype=np.int8)
    return np.asarray(1.0 - 2.0 * drawn, dtype=np.float64), False


def _units(values: Sequence[float], clusters: Sequence[object] | None) -> tuple[Numbers, Numbers]:
    """What is resampled: the sums and sizes of clusters, or the items themselves."""
    import numpy as np

    numbers = np.asarray(values, dtype=np.float64)
    if clusters is None:
        return numbers, np.ones_like(numbers)
    place: dict[object, int] = {}
    at = np.array([place.setdefault(cluster, len(place)) for cluster in clusters], dtype=np.intp)
    totals, sizes = np.bincount(at, weights=numbers), np.bincount(at)
    return totals.astype(np.float64), sizes.astype(np.float64)
