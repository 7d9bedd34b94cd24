"""What the arguments of scorers in Python have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Literal, TypeVar, get_args

from ragscore.errors import ConfigError
from ragscore.scorers.answers import Measure
from ragscore.scorers.arithmetic import as_fraction
from ragscore.scorers.context_precision import Against
from ragscore.scorers.custom import FieldKind

Number = float | int | Fraction
Contexts = Sequence[Any] | None
Missing = Literal["zero", "exclude"]
S = TypeVar("S")
#: What settings of scorers may be.
CHOICES: Mapping[str, tuple[object, ...]] = {
    "against": get_args(Against),
    "duplicates": ("count", "once"),
    "fused": (False, True, "answer"),
    "measure": get_args(Measure),
    "missing_reference": get_args(Missing),
}
#: Settings that are parts of a whole.
SHARES = ("unsure", "unused", "missing", "most_missing")


def scale_of(scale: Number) -> Fraction:
    """The scale as an exact number.

    Raises:
        ConfigError: it is not above 0.
    """
    exact = as_fraction(scale)
    if exact <= 0:
        raise ConfigError(f"scale is {scale}", mend="give a number above 0")
    return exact


def checked(scorer: S) -> S:
    """The scorer, if its settings are what they may be: a slip in one would be counted as another silently.

    Raises:
        ConfigError: a setting is none of its choices, a share is not in 0..1, or `k` is no whole number from 1.
    """
    for name, choices in CHOICES.items():
        if hasattr(scorer, name) and (given := getattr(scorer, name)) not in choices:
            known = ", ".join(map(repr, choices))
            raise ConfigError(f"{name} is {given!r}", mend=f"write one of {known}")
    for name in SHARES:
        if hasattr(scorer, name) and not 0 <= (given := getattr(scorer, name)) <= 1:
            raise ConfigError(f"{name} is {float(given):g}", mend="give a number from 0 to 1")
    k = getattr(scorer, "k", None)
    if k is not None and (isinstance(k, bool) or not isinstance(k, int) or k < 1):
        raise ConfigError(f"k is {k!r}", mend="give a whole number from 1, or leave it out for all ranks")
    for name, kind in getattr(scorer, "reply", {}).items():
        if kind not in get_args(FieldKind):
            raise ConfigError(f"reply: {name} is {kind!r}", mend=f"write one of {', '.join(get_args(FieldKind))}")
    return scorer
