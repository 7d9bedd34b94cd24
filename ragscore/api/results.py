"""What the API gives back: one score, one item, a whole evaluation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from importlib import import_module
from typing import Any

from ragscore.errors import UsageError
from ragscore.items import Context, Finding, Item, Response, Score, Status, Usage
from ragscore.scorers import mean
from ragscore.scorers.arithmetic import as_fraction


@dataclass(frozen=True, slots=True)
class Result:
    """One scorer's result on one item.

    Attributes:
        scorer: The scorer's name.
        score: In the scorer's scale, rounded half up to 2 decimals; None where there is none, and `status` says why.
        exact: The same before scaling and rounding, a fraction in 0..1.
        status: `ok`, or why there is no score (docs/statuses.md).
        reason: Composed from the verdicts, several lines.
        verdicts: One finding per claim or context, with evidence; ranks begin at 1.
        usage: Judge calls, tokens and dollars of this score; None for what is unknown.
        counted: Whether it takes part in means.
        error: What failed, where something did.
        against: What it was judged against (`reference`, `output`, …).
        scale: The score of a perfect item.
    """

    scorer: str
    score: float | None
    exact: Fraction | None
    status: Status
    reason: str
    verdicts: tuple[Finding, ...] = ()
    usage: Usage = field(default_factory=Usage)
    counted: bool = True
    error: str | None = None
    against: str | None = None
    scale: float = 1.0

    @classmethod
    def of(cls, score: Score) -> Result:
        """The result that a row of scores is.

        Args:
            score: The row.

        Returns:
            The same figures; `score` for its `value`, `verdicts` for its `findings`.
        """
        return cls(
            scorer=score.scorer,
            score=score.value,
            exact=score.exact,
            status=score.status,
            reason=score.reason,
            verdicts=score.findings,
            usage=score.usage,
            counted=score.counted and score.exact is not None,
            error=score.error,
            against=score.against,
            scale=score.scale,
        )


@dataclass(frozen=True, slots=True)
class ItemResult:
    """One item: what was asked, what the target said, and each scorer's result by name.

    Attributes:
        item: The question and what is known about it.
        response: What the target said, or its error.
        scores: A `Result` per scorer, by its name.
        contexts: The contexts that each scorer judged, best first, by its name.
    """

    item: Item
    response: Response
    scores: Mapping[str, Result]
    contexts: Mapping[str, tuple[Context, ...]] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """The item's id."""
        return self.item.id


@dataclass(frozen=True, slots=True)
class Threshold:
    """One threshold: the mean that `scorer` must reach (must not pass, where less is better), in its scale.

    Attributes:
        scorer: The scorer's name.
        limit: The mean that is asked for, in the scorer's scale.
        mean: The mean that was reached; None where no item has a score.
        passed: Whether it is met.
        at_most: Whether less is better, so that the mean must not pass the limit.
    """

    scorer: str
    limit: float
    mean: float | None
    passed: bool
    at_most: bool = False

    def __str__(self) -> str:
        """The finding in words."""
        got = "no item has a score" if self.mean is None else f"mean {self.mean:.4g}"
        return f"{self.scorer}: {got}, {'at most' if self.at_most else 'at least'} {self.limit:g} is asked for"


@dataclass(frozen=True, slots=True)
class EvalResult:
    """An evaluation: items in the order of the data.

    Attributes:
        items: One per item, in order.
        scorers: The scorers' names and scales.
        thresholds: What was asked for, and whether it is met.
        min_coverage: The share of eligible items that must have a score for the evaluation to pass.
    """

    items: Sequence[ItemResult]
    scorers: Mapping[str, float]
    thresholds: Sequence[Threshold] = ()
    min_coverage: float = 0.95

    @property
    def exact(self) -> dict[str, Fraction | None]:
        """The exact mean per scorer, in 0..1, over the items that count; None where none does."""
        return {name: exact_mean(self.items, name) for name in self.scorers}

    @property
    def scores(self) -> dict[str, float | None]:
        """The mean per scorer in its scale, to 4 decimals; None where no item counts."""
        return {
            name: None if exact is None else float(round(exact * as_fraction(self.scorers[name]), 4))
            for name, exact in self.exact.items()
        }

    @property
    def coverage(self) -> dict[str, float | None]:
        """Per scorer the share of items with a score among those that could have one (all but `unanswerable`)."""
        shares: dict[str, float | None] = {}
        for name in self.scorers:
            rows = [item.scores[name] for item in self.items]
            eligible = [row for row in rows if row.status is not Status.UNANSWERABLE]
            shares[name] = sum(row.exact is not None for row in eligible) / len(eligible) if eligible else None
        return shares

    @property
    def by_status(self) -> dict[str, Counter[Status]]:
        """Per scorer how many items ended with which status."""
        return {name: Counter(item.scores[name].status for item in self.items) for name in self.scorers}

    @property
    def usage(self) -> Usage:
        """What judging cost in all."""
        return sum((each.usage for item in self.items for each in item.scores.values()), Usage())

    @property
    def faults(self) -> list[str]:
        """Why the evaluation does not pass, one line each."""
        said = [str(each) for each in self.thresholds if not each.passed]
        for name, share in self.coverage.items():
            if share is not None and share < self.min_coverage:
                lost = next(i for i in self.items if i.scores[name].exact is None)
                first = " ".join(lost.scores[name].reason.split())
                said.append(
                    f"coverage of {name} is {share:.3g}, below {self.min_coverage:g}; first: {lost.id}: {first}"
                )
        return said

    @property
    def passed(self) -> bool:
        """Whether all thresholds are met and enough items have a score."""
        return not self.faults

    def assert_passes(self) -> None:
        """Fail a test with what is wrong.

        Raises:
            AssertionError: a threshold is not met, or too few items have a score.
        """
        if self.faults:
            raise AssertionError("\n".join(self.faults))

    def to_dataframe(self) -> Any:
        """A pandas frame with one row per item: id, input, output, reference; per scorer score, status and reason.

        Raises:
            UsageError: pandas is not installed.
        """
        try:
            pandas = import_module("pandas")
        except ImportError as error:
            raise UsageError("pandas is not installed", mend="install pandas, or use `items`") from error
        rows = []
        for each in self.items:
            row: dict[str, Any] = {
                "id": each.id,
                "input": each.item.input,
                "output": each.response.output,
                "reference": each.item.reference,
            }
            for name in self.scorers:
                result = each.scores[name]
                row |= {name: result.score, f"{name}_status": str(result.status), f"{name}_reason": result.reason}
            rows.append(row)
        return pandas.DataFrame(rows)


def exact_mean(items: Sequence[ItemResult], name: str) -> Fraction | None:
    """The exact mean of one scorer over the items that count."""
    counted = [item.scores[name] for item in items if item.scores[name].counted]
    return mean([each.exact for each in counted if each.exact is not None])
