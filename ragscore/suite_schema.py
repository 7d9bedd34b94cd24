"""The JSON Schema of suite files, so that editors complete and check them as they are written."""

from __future__ import annotations

from typing import Any

from ragscore import plugins
from ragscore.scorer_kinds import OPTIONS
from ragscore.suite import Suite

#: Parts that may be written as a bare text: `dataset: questions.jsonl`.
BARE = ("dataset", "contexts", "judge")
KINDS = tuple(OPTIONS)


def suite_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of a suite file with its short forms, `extends` and `targets`.

    Scorers of packages that are installed here are in it by their names, with whatever options.

    Numbers and switches may also be text that is filled in from the environment (`"${RPM:-60}"`).
    """
    schema = Suite.model_json_schema()
    properties = schema["properties"]
    for name in BARE:
        properties[name] = {"anyOf": [{"type": "string"}, *_forms(properties[name])], **_told(properties[name])}
    scorer = schema["$defs"]["ScorerPart"]
    options = {key: value for key, value in scorer["properties"].items() if key != "kind"}
    kinds = sorted({*KINDS, *scorer["properties"]["kind"].get("enum", ())})
    # `- context_precision: {scale: 10}`; without options the value may be empty.
    of_kind = {"type": ["object", "null"], "properties": options, "additionalProperties": False}
    of_packages = sorted(set(plugins.offered("scorers")) - set(kinds))
    free = {"type": ["object", "null"]}
    scorer_forms = [
        {"enum": [*kinds, *of_packages]},
        {
            "type": "object",
            "properties": {**dict.fromkeys(kinds, of_kind), **dict.fromkeys(of_packages, free)},
            "additionalProperties": False,
            "minProperties": 1,
            "maxProperties": 1,
        },
        {"$ref": "#/$defs/ScorerPart"},
    ]
    scorer["required"] = ["kind"]
    properties["scorers"]["items"] = {"anyOf": scorer_forms}
    properties["extends"] = {"type": "string", "description": "A suite file whose keys are the defaults of this one."}
    properties["targets"] = {
        "type": "array",
        "minItems": 1,
        # What they share may stand in `target`, so that no key is required of an entry.
        "items": {**schema["$defs"]["TargetPart"], "required": []},
        "description": "Several targets, one run each, then the comparison; each is laid over `target`.",
    }
    schema.pop("required", None)  # any of it may stand in the file that this one extends
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "ragscore suite"
    result: dict[str, Any] = _or_variables(schema)
    return result


def _forms(schema: dict[str, Any]) -> list[dict[str, Any]]:
    forms = schema.get("anyOf", [{"$ref": schema["$ref"]}] if "$ref" in schema else [])
    return [form for form in forms if form != {"type": "string"}]


def _told(schema: dict[str, Any]) -> dict[str, Any]:
    return {key: schema[key] for key in ("description", "default") if key in schema}


def _or_variables(schema: Any) -> Any:
    """The schema with `${…}` allowed wherever a number or a switch is."""
    if isinstance(schema, list):
        return [_or_variables(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("type") in ("number", "integer", "boolean"):
        told = _told(schema)
        return {"anyOf": [schema, {"type": "string", "pattern": r"\$\{"}], **told}
    return {key: _or_variables(value) for key, value in schema.items()}
