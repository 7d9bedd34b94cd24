"""What a run must reach."""

from __future__ import annotations

import re
from typing import Any, Literal

from pydantic import ConfigDict, Field, ValidationInfo, field_validator, model_validator

from ragscore.suite_parts.part import Part

#: How a pinned baseline is named.
PINNED = re.compile(r"(version|run|file):\s*\S")


class ScorerGatePart(Part):
    """What the mean of one scorer must reach, in the scorer's scale."""

    min: float | None = Field(default=None, ge=0, allow_inf_nan=False, description="Least mean of the run.")
    max_drop: float | None = Field(
        default=None, ge=0, allow_inf_nan=False, description="Most that the mean may fall against the baseline."
    )

    @model_validator(mode="after")
    def _asks_for_something(self) -> ScorerGatePart:
        if self.min is None and self.max_drop is None:
            raise ValueError("asks for nothing; write `min` or `max_drop`")
        return self


class SlicesPart(Part):
    """The gate's thresholds on parts of the dataset; scorers named here have their own, others those of the gate."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, ScorerGatePart] = Field(init=False)

    by: str = Field(description="What the items of a slice share, e.g. metadata.lang.")
    min_items: int = Field(default=10, ge=1, description="Smaller slices are named and not gated.")

    @property
    def scorers(self) -> dict[str, ScorerGatePart]:
        """Thresholds by name of a scorer."""
        return dict(self.__pydantic_extra__ or {})

    @field_validator("by")
    @classmethod
    def _is_metadata(cls, value: str) -> str:
        if not re.fullmatch(r"metadata\.\S+", value):
            raise ValueError(f"{value!r} does not name metadata; write e.g. metadata.lang")
        return value

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: Any) -> Any:
        return {"by": value} if isinstance(value, str) else value


class GatePart(Part):
    """What a run must reach. Thresholds stand under the names of scorers."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, ScorerGatePart] = Field(init=False)

    coverage: float = Field(
        default=0.95, ge=0, le=1, description="Least share of eligible items with a score; below it a run is exit 3."
    )
    baseline: str = Field(
        default="last-passing",
        description="What drops are measured against: last-passing, version:X, run:ID or file:HISTORY.duckdb.",
    )
    anchor: str | None = Field(
        default=None,
        description="A second, pinned baseline that catches slow sliding; written like `baseline`.",
    )
    max_error_rate: float | None = Field(
        default=None, ge=0, le=1, description="Most items of which target, extractor, judge or scorer failed; a share."
    )
    latency_p95_ms: float | None = Field(
        default=None, gt=0, allow_inf_nan=False, description="Most milliseconds of the target, 95th percentile."
    )
    on_inconclusive: Literal["warn", "exit", "fail"] = Field(
        default="warn", description="Too few items to tell: exit 0 and say so, exit 4, or exit 1."
    )
    slices: SlicesPart | None = Field(default=None, description="Thresholds on parts of the dataset.")

    @property
    def scorers(self) -> dict[str, ScorerGatePart]:
        """Thresholds by name of a scorer."""
        return dict(self.__pydantic_extra__ or {})

    @property
    def asks(self) -> bool:
        """Whether there is anything to decide besides coverage."""
        return bool(self.scorers or self.slices or self.max_error_rate is not None or self.latency_p95_ms is not None)

    @model_validator(mode="after")
    def _is_used(self) -> GatePart:
        parts = [*self.scorers.values(), *(self.slices.scorers.values() if self.slices else ())]
        drops = any(part.max_drop is not None for part in parts)
        for name in ("baseline", "anchor"):
            if name in self.model_fields_set and getattr(self, name) is not None and not drops:
                raise ValueError(f"`{name}` is not used; write `max_drop` under the name of a scorer")
        return self

    @field_validator("baseline", "anchor")
    @classmethod
    def _is_a_baseline(cls, value: str | None, info: ValidationInfo) -> str | None:
        if info.field_name == "anchor" and value == "last-passing":
            raise ValueError("an anchor stays where it is; write version:X, run:ID or file:HISTORY.duckdb")
        if value is not None and value != "last-passing" and not PINNED.match(value):
            raise ValueError(f"{value!r} names no run; write last-passing, version:X, run:ID or file:HISTORY.duckdb")
        return value
