"""How values become what DuckDB keeps, and come back: any text, any JSON, exact fractions, times in UTC.

What systems answer holds everything: NUL characters (kept: DuckDB takes them), halves of surrogate pairs (not UTF-8,
so each becomes U+FFFD), NaN in metadata, objects of their own. None of it may cost a batch.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Set
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any, overload

_SURROGATES = re.compile("[\ud800-\udfff]")
_DEEPEST = 50
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@overload
def text(value: str) -> str: ...
@overload
def text(value: str | None) -> str | None: ...
def text(value: str | None) -> str | None:
    """`value` as it can be stored: lone surrogates replaced with U+FFFD, all else as it is."""
    return None if value is None else _SURROGATES.sub("\ufffd", value)


def number(value: float | None) -> float | None:
    """`value` as a float; None when it is not a finite number."""
    return float(value) if value is not None and math.isfinite(value) else None


def to_json(value: Any) -> str | None:
    """`value` as JSON text; None stays None.

    What JSON does not know is kept as near as it goes: NaN and infinities become null, other objects their `str`.
    """
    return None if value is None else json.dumps(_plain(value, 0), ensure_ascii=False, separators=(",", ":"))


def from_json(stored: str | None) -> Any:
    """The value that `to_json` stored."""
    return None if stored is None else json.loads(stored)


def _plain(value: Any, depth: int) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, str):
        return text(str(value))
    if isinstance(value, float):
        return number(value)
    if depth < _DEEPEST:
        if isinstance(value, Mapping):
            return {_SURROGATES.sub("\ufffd", str(key)): _plain(part, depth + 1) for key, part in value.items()}
        if isinstance(value, list | tuple | Set):
            return [_plain(part, depth + 1) for part in value]
    return text(str(value))


def from_fraction(exact: Fraction | None) -> str | None:
    """`exact` as 'numerator/denominator', which loses nothing."""
    return None if exact is None else f"{exact.numerator}/{exact.denominator}"


def to_fraction(stored: str | None) -> Fraction | None:
    """The fraction that `from_fraction` stored."""
    return None if stored is None else Fraction(stored)


def now() -> datetime:
    """The present moment, in UTC."""
    return datetime.now(UTC)


def utc(moment: datetime | None) -> datetime | None:
    """`moment` in UTC; one without a zone is taken to be in UTC already."""
    if moment is None:
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def from_seconds(moment: float | None) -> datetime | None:
    """A time given in seconds since 1970, in UTC."""
    return None if moment is None else _EPOCH + timedelta(seconds=moment)


def from_micros(stored: int | None) -> datetime | None:
    """A time that was read as `epoch_us(column)`: DuckDB 1.x hands out zoned times only where pytz is installed."""
    return None if stored is None else _EPOCH + timedelta(microseconds=stored)
