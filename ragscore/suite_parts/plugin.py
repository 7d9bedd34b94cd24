"""What an installed package offers, named in a suite: its name, and the options that it is made with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema

from ragscore.suite_parts.part import Part


class PluginPart(Part):
    """What an installed package offers. In YAML `plugin: acme`, or with options `plugin: {acme: {index: docs}}`."""

    name: str = Field(min_length=1, description="The name of the entry point.")
    options: dict[str, Any] = Field(default_factory=dict, description="What the package's object is made with.")


def _short_forms(value: Any) -> Any:
    if isinstance(value, PluginPart):
        return value
    if isinstance(value, str):
        return {"name": value}
    if isinstance(value, Mapping) and len(value) == 1:
        ((name, options),) = value.items()
        if options is None or isinstance(options, Mapping):
            return {"name": str(name), "options": dict(options or {})}
    raise ValueError("names one plugin; write its name, or its options below its name: {acme: {index: docs}}")


#: The form of `plugin:` in every part that has one.
Plugin = Annotated[
    PluginPart,
    BeforeValidator(_short_forms),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "minLength": 1},
                {
                    "type": "object",
                    "additionalProperties": {"type": ["object", "null"]},
                    "minProperties": 1,
                    "maxProperties": 1,
                },
            ]
        }
    ),
]
