"""What every part of a suite is: closed, immutable, and short where it can be."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationInfo, field_validator


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=False)

    @field_validator("*", mode="before")
    @classmethod
    def _no_boolean_as_number(cls, value: Any, info: ValidationInfo) -> Any:
        """Python takes true for 1, so that `scale: yes` would pass."""
        kind = cls.model_fields[info.field_name or ""].annotation
        if isinstance(value, bool) and kind in (int, float, int | None, float | None):
            raise ValueError("is true or false; write a number")
        return value


def bare(key: str) -> BeforeValidator:
    """Lets a part be written as a bare string: `dataset: data.jsonl` for `dataset: {path: data.jsonl}`."""
    return BeforeValidator(lambda value: {key: value} if isinstance(value, str) else value)
