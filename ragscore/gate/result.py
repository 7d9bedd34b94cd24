"""What a gate found: every check with its numbers, and the one verdict with its exit code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ragscore.gate.rule import Verdict

#: Exit codes of an inconclusive gate, by `on_inconclusive` (DESIGN §7).
INCONCLUSIVE_CODES = {"warn": 0, "exit": 4, "fail": 1}


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that a gate looked at.

    Attributes:
        what: `mean`, `drop`, `error_rate` or `latency_p95_ms`.
        said: The finding in words.
        scorer: Whose mean; None for the others.
        slice: The part of the dataset, like `lang=de`; None for all of it.
        against: Which run a drop is measured against.
        numbers: The finding in figures, JSON-able; scores in the scorer's scale.
        binding: Whether being inconclusive makes the gate inconclusive; slices can only fail it.
    """

    what: str
    verdict: Verdict
    said: str
    scorer: str | None = None
    slice: str | None = None
    against: str | None = None
    numbers: Mapping[str, Any] = field(default_factory=dict)
    binding: bool = True

    def as_dict(self) -> dict[str, Any]:
        """The check as JSON."""
        return {
            "what": self.what,
            "scorer": self.scorer,
            "slice": self.slice,
            "against": self.against,
            "verdict": self.verdict.value,
            "said": self.said,
            **self.numbers,
        }


@dataclass(frozen=True, slots=True)
class GateResult:
    """The gate's verdict on one run; `verdict` is None where nothing was asked, or the run could not be evaluated.

    Attributes:
        baseline, anchor: The runs that drops were measured against, as they are named to the user; None without one.
        notes: What the user should know about the verdict, one line each.
    """

    run_id: str
    verdict: Verdict | None
    checks: Sequence[Check] = ()
    baseline: str | None = None
    anchor: str | None = None
    notes: Sequence[str] = ()
    on_inconclusive: str = "warn"

    @property
    def exit_code(self) -> int:
        """0 pass, 1 fail; inconclusive as the suite says. Whether the run could be evaluated is not known here."""
        return kept_exit_code(self.as_dict())

    def as_dict(self) -> dict[str, Any]:
        """The result as JSON, as it is kept with the run."""
        return {
            "verdict": self.verdict.value if self.verdict else None,
            "baseline": self.baseline,
            "anchor": self.anchor,
            "on_inconclusive": self.on_inconclusive,
            "notes": list(self.notes),
            "checks": [check.as_dict() for check in self.checks],
        }


def kept_exit_code(gate: Mapping[str, Any] | None) -> int:
    """The exit code of a gate as it is kept with its run; 0 where there is none."""
    verdict = gate.get("verdict") if gate else None
    if gate and verdict == Verdict.INCONCLUSIVE.value:
        return INCONCLUSIVE_CODES[str(gate.get("on_inconclusive", "warn"))]
    return 1 if verdict == Verdict.FAIL.value else 0


def overall(checks: Sequence[Check]) -> Verdict | None:
    """The verdict of all checks together: fail if one fails, else inconclusive if a binding one is; None of none."""
    if any(check.verdict is Verdict.FAIL for check in checks):
        return Verdict.FAIL
    if any(check.verdict is Verdict.INCONCLUSIVE and check.binding for check in checks):
        return Verdict.INCONCLUSIVE
    return Verdict.PASS if checks else None
