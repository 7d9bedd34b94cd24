"""The statistics, held against scipy's own results, published examples, and what is known beforehand."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as reference

from ragscore.stats import (
    Interval,
    bca_interval,
    detectable_drop,
    drop_p,
    drop_ps,
    holm,
    items_needed,
    sign_patterns,
    wilson,
)

# Darwin's maize (Fisher 1935, The Design of Experiments, §17): crossed minus self-fertilised plants, eighths of an inch
DARWIN = [49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48]


def drawn(count: int, seed: int = 0) -> list[float]:
    rng = np.random.default_rng(seed)
    facts = rng.integers(1, 5, count)
    share = rng.beta(0.8, 0.4, count)
    return list((rng.binomial(facts, share) - rng.binomial(facts, share)) / facts)


def test_fishers_own_example_of_the_sign_flip_test() -> None:
    """863 of 32768 sign patterns give a sum as far out (Fisher 1935, §21)."""
    assert drop_p([-each for each in DARWIN], resamples=2**15) == 863 / 2**15


def test_p_is_what_scipys_permutation_test_gives() -> None:
    changes = drawn(12, seed=5)
    found = reference.permutation_test(
        (changes,), np.mean, permutation_type="samples", alternative="less", n_resamples=np.inf
    )
    assert drop_p(changes) == pytest.approx(found.pvalue, abs=1e-12)
    many = drawn(80, seed=6)
    found = reference.permutation_test(
        (many,), np.mean, permutation_type="samples", alternative="less", n_resamples=20_000, rng=1
    )
    assert drop_p(many) == pytest.approx(found.pvalue, abs=0.012)


def test_p_counts_ties_of_binary_fractions_as_ties() -> None:
    assert drop_p([-1 / 3] * 3 + [-1.0, 1.0]) == drop_p([-1.0] * 3 + [-3.0, 3.0])


def test_p_of_many_items_is_the_normal_limit() -> None:
    changes = drawn(5_001, seed=2)
    assert drop_p(changes) == pytest.approx(drop_p(changes[:4_999]), abs=0.05)
    nonzero = [each for each in changes * 3 if each][:5_500]
    flips = sign_patterns(len(nonzero), 2_000)[0]
    assert drop_p(nonzero) == pytest.approx(float(drop_ps(np.array([nonzero]), flips)[0]), abs=0.03)


def test_the_interval_is_scipys() -> None:
    changes = drawn(40, seed=3)
    found = bca_interval(changes, seed=7)
    scipys = reference.bootstrap((changes,), np.mean, method="BCa", n_resamples=9_999, rng=np.random.default_rng(7))
    assert found == Interval(
        pytest.approx(scipys.confidence_interval.low, abs=0.004),  # type: ignore[arg-type]
        pytest.approx(scipys.confidence_interval.high, abs=0.004),  # type: ignore[arg-type]
    )


def test_the_interval_of_many_items_is_the_normal_one() -> None:
    changes = drawn(6_000, seed=4)
    found = bca_interval(changes)
    error = np.std(changes, ddof=1) / math.sqrt(6_000)
    assert found is not None
    assert found.high - found.low == pytest.approx(2 * 1.959964 * error, rel=1e-6)


def test_clusters_of_one_change_nothing_and_clusters_of_many_widen() -> None:
    changes = drawn(60, seed=8)
    assert bca_interval(changes, clusters=list(range(60)), seed=1) == bca_interval(changes, seed=1)
    repeated = [change for change in changes[:15] for _ in range(4)]
    alone, together = bca_interval(repeated), bca_interval(repeated, clusters=[at // 4 for at in range(60)])
    assert alone is not None
    assert together is not None
    assert together.high - together.low > 1.6 * (alone.high - alone.low)
    assert drop_p([-0.5] * 8, clusters=[0, 0, 0, 0, 1, 1, 1, 1]) == 0.25


@pytest.mark.parametrize(
    ("changes", "interval", "p"),
    [
        ([], None, 1.0),
        ([0.0], None, 1.0),
        ([-1.0], None, 0.5),
        ([0.0, 0.0], Interval(0, 0), 1.0),
        ([-1.0, -1.0], None, 0.25),
        ([-1.0, 0.0, 0.0, 0.0], None, 0.5),
        ([-0.25] * 8, Interval(-0.25, -0.25), 1 / 256),
        ([0.0] * 50, Interval(0, 0), 1.0),
    ],
)
def test_degenerate_changes(changes: list[float], interval: Interval | None, p: float) -> None:
    assert bca_interval(changes) == interval
    assert drop_p(changes) == p
    assert detectable_drop([1.0] * len(changes), changes, limit=0, alpha=0.025) is None or len(changes) >= 6


@given(st.lists(st.sampled_from([-1.0, -0.5, -1 / 3, 0.0, 1 / 3, 0.5, 1.0]), max_size=30))
@settings(max_examples=60, deadline=None)
def test_every_figure_is_finite_and_within_its_bounds(changes: list[float]) -> None:
    interval = bca_interval(changes, resamples=199)
    assert interval is None or -1 <= interval.low <= interval.high <= 1
    assert 0 < drop_p(changes, resamples=199) <= 1
    found = detectable_drop([0.5] * len(changes), changes, limit=0.03, alpha=0.025, trials=200)
    assert found is None or 0 < found <= 0.5
    needed = items_needed(changes, limit=0.03, alpha=0.025)
    assert needed is None or needed > 0


def test_holm_of_a_published_example() -> None:
    """Holm's steps on .01, .02, .03, .005 (the example of Wikipedia's *Holm-Bonferroni method*, as p.adjust has it)."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []
    assert holm([0.9, 0.8]) == [1.0, 1.0]


def test_wilson_of_newcombes_examples() -> None:
    """Newcombe (1998), table I, method 3: 81/263, 15/148, 0/20, 1/29."""
    for successes, trials, low, high in [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ]:
        found = wilson(successes, trials)
        assert found is not None
        assert (round(found.low, 4), round(found.high, 4)) == (low, high)
    assert wilson(0, 0) is None


def test_the_detectable_drop_is_what_the_rule_finds_by_brute_force() -> None:
    before, limit, alpha = [1.0, 1.0, 0.5, 1.0, 0.75] * 6, 0.03, 0.025
    found = detectable_drop(before, [0.0] * 30, limit=limit, alpha=alpha)
    assert found is not None
    rng = np.random.default_rng(9)
    scores = np.array(before)
    caught = 0
    for _ in range(1_000):
        lost = rng.random(30) < found / scores.mean()
        changes = np.where(lost, -scores[rng.integers(0, 30, 30)], 0.0)
        caught += bool(changes.mean() < -limit and drop_p(list(changes), resamples=999) <= alpha)
    assert 0.80 <= caught / 1_000 <= 0.90


@pytest.mark.parametrize("limit", [0.0, 0.03])
@pytest.mark.parametrize("is_clustered", [False, True])
def test_the_detectable_drop_of_many_items_is_what_the_simulation_gives(
    limit: float, is_clustered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    dice = random.Random(7)
    before = [dice.choice((0.0, 0.25, 0.5, 1.0)) for _ in range(3000)]
    changes = [dice.gauss(0, 0.3) if dice.random() < 0.2 else 0.0 for _ in before]
    clusters = [dice.randrange(3000) for _ in before] if is_clustered else None
    simulated = detectable_drop(before, changes, limit=limit, alpha=0.025, clusters=clusters)
    monkeypatch.setattr("ragscore.stats.MANY", 10)
    by_limit = detectable_drop(before, changes, limit=limit, alpha=0.025, clusters=clusters)
    assert simulated is not None
    assert by_limit == pytest.approx(simulated, abs=0.0015)
    assert detectable_drop([0.0] * 3000, changes, limit=limit, alpha=0.025) is None


def test_the_detectable_drop_falls_with_more_items_and_rises_with_chance_and_limit() -> None:
    def found(count: int, *, noise: float = 0.0, limit: float = 0.03) -> float:
        changes = [noise if at % 2 else -noise for at in range(count)]
        drop = detectable_drop([1.0] * count, changes, limit=limit, alpha=0.025)
        assert drop is not None
        return drop

    assert found(400) < found(100) < found(25)
    assert found(100, noise=0.3) > found(100)
    assert found(100, limit=0.2) > 0.2
    assert detectable_drop([0.0] * 50, [0.0] * 50, limit=0.0, alpha=0.025) is None
    assert detectable_drop([1.0] * 3, [0.0] * 3, limit=0.0, alpha=0.025) is None


def test_items_needed_grows_as_the_mean_comes_near_the_limit() -> None:
    far = items_needed([0.2, -0.2, 0.0, 0.1] * 5, limit=0.1, alpha=0.025)
    near = items_needed([0.2, -0.2, 0.0, -0.2] * 5, limit=0.1, alpha=0.025)
    assert far is not None
    assert near is not None
    assert near > far
    assert items_needed([0.0] * 5, limit=0.1, alpha=0.025) is None
    assert items_needed([0.1], limit=0.1, alpha=0.025) is None


def test_the_same_numbers_give_the_same_answer() -> None:
    changes = drawn(35, seed=11)
    assert bca_interval(changes) == bca_interval(changes)
    assert drop_p(changes) == drop_p(changes)
    assert detectable_drop([0.8] * 35, changes, limit=0.0, alpha=0.025) == detectable_drop(
        [0.8] * 35, changes, limit=0.0, alpha=0.025
    )
