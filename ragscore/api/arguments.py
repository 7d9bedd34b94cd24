"""What the arguments of scorers in Python have in common."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Literal

from ragscore.errors import ConfigError
from ragscore.scorers.arithmetic import as_fraction

Number = float | int | Fraction
Contexts = Sequence[Any] | None
Missing = Literal["zero", "exclude"]


def scale_of(scale: Number) -> Fraction:
    """The scale as an exact number.

    Raises:
        ConfigError: it is not above 0.
    """
    exact = as_fraction(scale)
    if exact <= 0:
        raise ConfigError(f"scale is {scale}", mend="give a number above 0")
    return exact
