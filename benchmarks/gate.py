"""How often the gate cries wolf, and how small a drop it finds; prints the tables of docs/gate.md.

    python benchmarks/gate.py [--quick]

Scores are shaped like real ones: an item has 1 to 4 facts, most items are all right or all wrong, so that 0, .5, .67
and 1 are common. Two kinds of chance are simulated. *judge 5 %*: the retriever is the same and the judge's verdict on
each fact flips with 5 %; *judge 15 %*, likewise; *redrawn*: every fact is found anew with the item's own probability,
which is as noisy as an unchanged system can be. The rule is that of `ragscore.gate`, over many trials at once; a test
holds the two against each other.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ragscore.gate.rule import ALPHA, chance_in
from ragscore.stats import TOLERANCE, bca_interval, detectable_drop, drop_ps, sign_patterns

Numbers = NDArray[np.float64]

LIMIT = 0.03  # max_drop
SIZES = (20, 50, 200)
FLIPS = 1_999


@dataclass(frozen=True)
class World:
    """`count` suites of `n` items at once: facts per item, and the probability of each being found.

    Attributes:
        name: As in the tables.
        facts: suites x items.
        found: The probability that a fact of the item is judged supported, suites x items; or None where `held` of
            the facts are truly supported and the judge flips each verdict with probability `flip`.
    """

    name: str
    facts: NDArray[np.int64]
    found: Numbers | None = None
    held: NDArray[np.int64] | None = None
    flip: float = 0.0

    @classmethod
    def of(cls, name: str, n: int, count: int, rng: np.random.Generator) -> World:
        """One of `WORLDS`."""
        facts = rng.integers(1, 5, (count, n))
        if name == "redrawn":
            return cls(name, facts, found=rng.beta(0.8, 0.4, (count, n)))
        held = rng.binomial(facts, rng.beta(0.7, 0.3, (count, n)))
        return cls(name, facts, held=held, flip=float(name.split()[1]) / 100)

    def night(self, rng: np.random.Generator, *, fact_loss: Numbers | None = None) -> Numbers:
        """The scores of one run of each suite; `fact_loss` is the share of true facts that are lost, per suite."""
        kept = 1.0 if fact_loss is None else 1.0 - fact_loss[:, None]
        if self.found is not None:
            return np.asarray(rng.binomial(self.facts, self.found * kept) / self.facts)
        assert self.held is not None
        held = self.held if fact_loss is None else rng.binomial(self.held, np.broadcast_to(kept, self.held.shape))
        right = rng.binomial(held, 1 - self.flip) + rng.binomial(self.facts - held, self.flip)
        return np.asarray(right / self.facts)

    def mean(self) -> Numbers:
        """The expected mean score of each suite."""
        return np.asarray(self._expected().mean(axis=1))

    def mean_lost_with_all_facts(self) -> Numbers:
        """By how much the mean of each suite falls when every true fact is lost."""
        if self.found is not None:
            return self.mean()
        assert self.held is not None
        return np.asarray((self.held / self.facts * (1 - 2 * self.flip)).mean(axis=1))

    def _expected(self) -> Numbers:
        if self.found is not None:
            return self.found
        assert self.held is not None
        share = self.held / self.facts
        return np.asarray(share * (1 - self.flip) + (1 - share) * self.flip)


WORLDS = ("judge 5 %", "judge 15 %", "redrawn")


def fails(changes: Numbers, flips: Numbers) -> NDArray[np.bool_]:
    """Per row of `changes` (runs x items) whether the gate fails on it: the rule for one gated scorer."""
    p = drop_ps(changes, flips)
    return np.asarray((changes.mean(axis=1) < -LIMIT - TOLERANCE) & (p <= ALPHA))


def unchanged_pairs(name: str, n: int, trials: int) -> float:
    """The share of A/A pairs that fail against one another."""
    rng = np.random.default_rng(n)
    flips = sign_patterns(n, FLIPS, seed=1)[0]
    world = World.of(name, n, trials, rng)
    return float(fails(world.night(rng) - world.night(rng), flips).mean())


def unchanged_nights(name: str, n: int, nights: int, *, chains: int = 50) -> float:
    """The share of nights without change that fail against the latest run that did not fail."""
    rng = np.random.default_rng(n + 1)
    flips = sign_patterns(n, FLIPS, seed=2)[0]
    world = World.of(name, n, chains, rng)
    baseline = world.night(rng)
    failed = 0
    for _ in range(nights // chains):
        tonight = world.night(rng)
        is_bad = fails(tonight - baseline, flips)
        failed += int(is_bad.sum())
        baseline = np.where(is_bad[:, None], baseline, tonight)
    return failed / (nights // chains * chains)


def drops_found(name: str, n: int, trials: int, *, suites: int) -> tuple[float, float, float, float]:
    """How a true drop of the stated detectable size ends, against last-passing.

    Returns:
        The median detectable drop that suites were told; the share of them that were told one; how often a drop of
        that size fails when items lose all, and when facts are lost evenly.
    """
    rng = np.random.default_rng(n + 2)
    flips = sign_patterns(n, FLIPS, seed=3)[0]
    world = World.of(name, n, suites, rng)
    first, second = world.night(rng), world.night(rng)
    changes = second - first
    told = np.array(
        [
            detectable_drop(a, chance_in(change, float(p)), limit=LIMIT, alpha=ALPHA, seed=at) or np.nan
            for at, (a, change, p) in enumerate(zip(first, changes, drop_ps(changes, flips), strict=True))
        ]
    )
    by_item = told / world.mean()
    by_fact = told / world.mean_lost_with_all_facts()
    usable = (by_item <= 1) & (by_fact <= 1)
    each = max(1, trials // max(1, int(usable.sum())))
    whole, even = [], []
    for _ in range(each):
        lost = rng.random(first.shape) < np.nan_to_num(by_item)[:, None]
        after = np.where(lost, 0.0, world.night(rng))
        whole.append(fails(after - world.night(rng), flips)[usable])
        after = world.night(rng, fact_loss=np.clip(np.nan_to_num(by_fact), 0, 1))
        even.append(fails(after - world.night(rng), flips)[usable])
    share = float((~np.isnan(told)).mean())
    return float(np.nanmedian(told)), share, float(np.mean(whole)), float(np.mean(even))


def unchanged_passes(name: str, n: int, trials: int) -> float:
    """The share of A/A pairs that pass: the interval's lower end is above the limit."""
    rng = np.random.default_rng(n + 3)
    world = World.of(name, n, trials, rng)
    changes = world.night(rng) - world.night(rng)
    intervals = [bca_interval(list(row), resamples=999) for row in changes]
    return sum(each is not None and each.low >= -LIMIT - TOLERANCE for each in intervals) / trials


def slide(deploys: int, loss: float, n: int, trials: int) -> tuple[float, float]:
    """Deploys that each lose `loss`: the share of slides that last-passing alone, and an anchor as well, fail."""
    rng = np.random.default_rng(n + 4)
    flips = sign_patterns(n, FLIPS, seed=4)[0]
    world = World.of("judge 5 %", n, trials, rng)
    anchor = baseline = world.night(rng)
    alone, anchored = np.zeros(trials, bool), np.zeros(trials, bool)
    for deploy in range(1, deploys + 1):
        share = np.clip(deploy * loss / world.mean_lost_with_all_facts(), 0, 1)
        tonight = world.night(rng, fact_loss=share)
        is_bad = fails(tonight - baseline, flips)
        alone |= is_bad
        # Two tests in one gate: Holm's strictest step.
        low = drop_ps(tonight - anchor, flips) * 2 <= ALPHA
        anchored |= low & ((tonight - anchor).mean(axis=1) < -LIMIT)
        baseline = np.where(is_bad[:, None], baseline, tonight)
    return float(alone.mean()), float(anchored.mean())


def main(*, quick: bool) -> None:
    """Print all tables."""
    started = time.perf_counter()
    trials, nights, suites = (400, 1_000, 40) if quick else (2_000, 5_000, 200)
    print(f"max_drop {LIMIT}; {trials} trials, {nights} nights each\n")
    print("| chance | items | A/A pairs that fail | nights that fail | A/A pairs that pass |\n|---|---|---|---|---|")
    for name in WORLDS:
        for n in SIZES:
            row = unchanged_pairs(name, n, trials), unchanged_nights(name, n, nights), unchanged_passes(name, n, trials)
            print(f"| {name} | {n} | " + " | ".join(f"{each:.1%}" for each in row) + " |", flush=True)
    print(
        "\n| chance | items | detectable drop, median | told one | found: items lose all | found: facts lost evenly |"
    )
    print("|---|---|---|---|---|---|")
    for name in WORLDS:
        for n in SIZES:
            drop, told, whole, even = drops_found(name, n, trials, suites=suites)
            print(f"| {name} | {n} | {drop:.3f} | {told:.0%} | {whole:.1%} | {even:.1%} |", flush=True)
    print("\n| items | slides of 20 deploys x 2 points: last-passing alone fails | the anchor fails |\n|---|---|---|")
    for n in SIZES:
        alone, anchored = slide(20, 0.02, n, min(trials, 500))
        print(f"| {n} | {alone:.1%} | {anchored:.1%} |", flush=True)
    print(f"\n{time.perf_counter() - started:.0f} s in all", file=sys.stderr)


if __name__ == "__main__":
    main(quick="--quick" in sys.argv[1:])
