"""Where the contexts of an item come from."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from ragscore.suite_parts.part import Part
from ragscore.suite_parts.target import checked_path


class ContextsPart(Part):
    """Where the contexts of an item come from (DESIGN §4): static ones, and at most one extractor."""

    static: list[str] | None = Field(default=None, description="The same contexts for every item.")
    response: bool | None = Field(default=None, description="What the target returned as contexts (the default).")
    item: bool | None = Field(default=None, description="The contexts of the dataset row.")
    path: str | None = Field(default=None, description="A JMESPath expression on the target's response.")
    tool_results: Literal[True] | list[str] | None = Field(
        default=None, description="What the tools of an agent returned; a list names the tools that retrieve."
    )
    function: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_][\w.]*$",
        description="module:callable, sync or async; called with input and output, and item if it takes one.",
    )

    @field_validator("static")
    @classmethod
    def _not_empty(cls, value: list[str] | None) -> list[str] | None:
        if value is not None and not value:
            raise ValueError("an empty list of static contexts cannot be judged; name some, or leave it out")
        if value is not None and not all(text.strip() for text in value):
            raise ValueError("a static context without text cannot be judged; write its text, or remove it")
        return value

    @field_validator("response", "item", "tool_results", mode="before")
    @classmethod
    def _true(cls, value: Any) -> Any:
        if value is False:
            raise ValueError("leave it out instead of writing false")
        return value

    @field_validator("tool_results", mode="before")
    @classmethod
    def _one_tool(cls, value: Any) -> Any:
        if value == []:
            raise ValueError("names no tool; write true for all of them")
        return [value] if isinstance(value, str) else value

    @field_validator("path")
    @classmethod
    def _is_a_path(cls, value: str | None) -> str | None:
        return checked_path(value)

    @model_validator(mode="after")
    def _one_extractor(self) -> ContextsPart:
        extractors = ("response", "item", "path", "tool_results", "function")
        named = [name for name in extractors if getattr(self, name) is not None]
        if len(named) > 1:
            raise ValueError(f"name one extractor, not {' and '.join(named)}")
        if not named and self.static is None:
            raise ValueError(f"name a source: {', '.join(extractors)} or static")
        return self
