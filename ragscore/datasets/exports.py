"""Exports of other tools whose rows are nested: LangSmith, Phoenix and promptfoo, brought into columns.

Flat exports (ragas, DeepEval) need no more than the names in `columns`, but for one. The shapes are those that the
tools write (`tests/foreign/files` has examples) or document:

- LangSmith examples: `{"id", "inputs": {…}, "outputs": {…}, "metadata": {…}}`; rows of an experiment have
  `reference_outputs` too, and then `outputs` is what the system said. `to_pandas()` of an experiment gives columns
  `inputs.*`, `outputs.*`, `reference.*`, `feedback.*`, `example_id`.
- DeepEval's goldens as JSONL: lists are joined by `|`, as in its CSV.
- Phoenix datasets: `{"id", "input": {…}, "output": {…}, "metadata": {…}}` over REST, `example_id`, `input_*`,
  `output_*`, `metadata_*` as CSV, `example_id, input, output, metadata` as the frame of its client. The output of an
  example is the expected one.
- promptfoo: results `{"vars": {…}, "response": {"output": …}, "testCase": {…}}`, tests `{"vars": {…}, "assert": […]}`,
  and tables with `__expected`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ragscore.datasets.columns import ALIASES, Shape
from ragscore.datasets.written import literal

#: promptfoo's assertions whose value is the expected answer.
EXPECTING = ("context-recall", "factuality", "equals", "similar", "model-graded-factuality")
#: Columns by which a golden of DeepEval is known.
GOLDEN = frozenset({"input", "actual_output", "expected_output", "retrieval_context", "source_file", "tools_called"})
#: Taken from either side of an example into columns of their own.
PICKED = frozenset(
    {name for each in ("contexts", "reference_context_ids") for name in (each, *ALIASES[each])} - {"context"}
)


def shape_of(rows: Sequence[Mapping[str, Any]]) -> Shape | None:
    """What brings these rows into columns, or None for rows that are flat."""
    first = next((row for row in rows if row), None)
    if first is None:
        return None
    if isinstance(first.get("vars"), Mapping):
        return _of_promptfoo
    if _is_object(first.get("inputs")):
        return _of_langsmith
    if isinstance(first.get("input"), Mapping) and isinstance(first.get("output"), (Mapping, type(None))):
        return _of_phoenix if "messages" not in first["input"] or "output" in first else None
    names = set(first)
    if {"example_id", "metadata"} <= names and _is_object(first.get("input")) and _is_object(first.get("output")):
        return _of_phoenix  # the frame of a dataset, as a table
    if any(key.startswith("inputs.") for key in names):
        return _of_langsmith_table
    if names >= GOLDEN and any(isinstance(row.get("retrieval_context"), str) for row in rows):
        return _of_golden
    if not names & {"input", *ALIASES["input"]} and any(key.startswith("input_") for key in names):
        return _of_flattened
    if any(key == "__expected" or key.startswith("__expected") for key in names):
        return _of_promptfoo_table
    return None


def _of_langsmith(row: Mapping[str, Any]) -> Mapping[str, Any]:
    reference, output = row.get("reference_outputs"), None
    if "reference_outputs" in row:
        output = row.get("outputs")
    else:
        reference = row.get("outputs")
    taken = ("inputs", "outputs", "reference_outputs")
    return _unfolded(row, _object(row.get("inputs")), _object(reference), _object(output), taken)


def _of_langsmith_table(row: Mapping[str, Any]) -> Mapping[str, Any]:
    def below(side: str) -> dict[str, Any] | None:
        return {key.removeprefix(side): value for key, value in row.items() if key.startswith(side)} or None

    sides = ("inputs.", "reference.", "outputs.")
    kept = {key: value for key, value in row.items() if not key.startswith(sides) and key != "example_id"}
    # Its `id` is that of the run, another one each time; what stays from run to run is the example.
    kept["id"] = row.get("example_id", row.get("id"))
    return _unfolded(kept, below("inputs."), below("reference."), below("outputs."), ())


def _of_golden(row: Mapping[str, Any]) -> Mapping[str, Any]:
    joined = row.get("retrieval_context")
    return {**row, "retrieval_context": joined.split("|")} if isinstance(joined, str) and joined else row


def _of_phoenix(row: Mapping[str, Any]) -> Mapping[str, Any]:
    row = {**row, "metadata": _object(row.get("metadata"))}
    return _unfolded(row, _object(row.get("input")), _object(row.get("output")), None, ("input", "output"))


def _of_flattened(row: Mapping[str, Any]) -> Mapping[str, Any]:
    def below(prefix: str) -> dict[str, Any]:
        return {key.removeprefix(prefix): value for key, value in row.items() if key.startswith(prefix)}

    taken = tuple(key for key in row if key.startswith(("input_", "output_", "metadata_")))
    metadata = {**below("metadata_"), **(row["metadata"] if isinstance(row.get("metadata"), Mapping) else {})}
    return _unfolded({**row, "metadata": metadata}, below("input_"), below("output_"), None, taken)


def _of_promptfoo(row: Mapping[str, Any]) -> Mapping[str, Any]:
    variables = dict(row["vars"]) if isinstance(row.get("vars"), Mapping) else {}
    test = row.get("testCase")
    asserts = row.get("assert") or (test.get("assert") if isinstance(test, Mapping) else None)
    response = row.get("response")
    output = response.get("output") if isinstance(response, Mapping) else response
    names = {each: _name(variables, each) for each in ("input", "reference", "contexts", "reference_context_ids")}
    columns = {each: variables.get(name) if name is not None else None for each, name in names.items()}
    if columns["reference"] is None:
        columns["reference"] = _asserted(asserts)
    if isinstance(columns["contexts"], str):
        columns["contexts"] = [columns["contexts"]]
    columns |= {"id": variables.get("id"), "output": output}
    kept = {key: value for key, value in variables.items() if key not in (*names.values(), "id")}
    kept |= {key: row[key] for key in ("testIdx", "promptIdx", "provider") if row.get(key) is not None}
    described = row.get("description") or (test.get("description") if isinstance(test, Mapping) else None)
    if described is not None:
        kept["description"] = described
    metadata = row.get("metadata")
    columns["metadata"] = {**kept, **(metadata if isinstance(metadata, Mapping) else {})}
    return columns


def _of_promptfoo_table(row: Mapping[str, Any]) -> Mapping[str, Any]:
    expected = [value for key, value in row.items() if key.startswith("__expected") and isinstance(value, str)]
    said = (_from_shorthand(each) for each in expected)
    kept = {key: value for key, value in row.items() if not key.startswith("__")}
    beside = {key: value for key, value in row.items() if key.startswith("__") and value is not None}
    if not any(kept.get(name) is not None for name in ("reference", *ALIASES["reference"])):
        kept["reference"] = next((each for each in said if each is not None), None)
    return {**kept, **beside}


def _asserted(asserts: Any) -> str | None:
    if not isinstance(asserts, list):
        return None
    found = {each.get("type"): each.get("value") for each in reversed(asserts) if isinstance(each, Mapping)}
    return next((found[kind] for kind in EXPECTING if isinstance(found.get(kind), str)), None)


def _from_shorthand(text: str) -> str | None:
    """promptfoo's `equals: …` in a table; a text without such a word is what is expected."""
    kind, colon, value = text.partition(":")
    word = kind.split("(")[0].strip()
    if not colon or " " in word or not word.replace("-", "").isalpha():
        return text or None
    return value.strip() or None if word in EXPECTING else None if word.islower() else text


def _unfolded(
    row: Mapping[str, Any],
    inputs: Any,
    reference: Any,
    output: Any,
    taken: Sequence[str],
) -> Mapping[str, Any]:
    columns = {key: value for key, value in row.items() if key not in taken and key != "metadata"}
    beside: dict[str, Any] = {}
    inputs = inputs if isinstance(inputs, Mapping) else {"input": inputs}
    columns["input"] = _picked(inputs, "input", or_only_text=True, beside=beside)
    for name, side in (("reference", reference), ("output", output)):
        if side is None:
            continue
        side = side if isinstance(side, Mapping) else {name: side}
        columns[name] = _picked(side, "reference", "output", or_only_text=True, beside=beside)
    for name in ("contexts", "reference_context_ids"):
        sides = (output, reference, inputs)
        found = (_picked(side, name) for side in sides if isinstance(side, Mapping))
        columns[name] = next((each for each in found if each is not None), None)
    metadata = row.get("metadata")
    columns["metadata"] = {**beside, **(metadata if isinstance(metadata, Mapping) else {})}
    return columns


def _picked(
    side: Mapping[str, Any], *names: str, or_only_text: bool = False, beside: dict[str, Any] | None = None
) -> Any:
    """The value of the first known name; with `or_only_text` the only text of all, whatever it is called."""
    found = _name(side, *names)
    if found is None and or_only_text:
        if "messages" in side:
            found = "messages"
        else:
            said = [key for key, value in side.items() if isinstance(value, str)]
            found = said[0] if len(said) == 1 else None
    if beside is not None:
        beside.update((k, v) for k, v in side.items() if k != found and v is not None and k not in PICKED)
    return side[found] if found is not None else None


def _name(side: Mapping[str, Any], *names: str) -> str | None:
    """The first known name of these fields that holds something."""
    known = (each for name in names for each in (name, *ALIASES[name]))
    return next((each for each in known if side.get(each) is not None), None)


def _is_object(value: Any) -> bool:
    return isinstance(_object(value), Mapping)


def _object(value: Any) -> Any:
    """The object that a cell of a table stands for."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        return literal(value)
    return value
