"""The columns of JSONL as DuckDB types for `where`: as JSON has them, texts never guessed into dates or numbers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ragscore.datasets import duck

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


def relation_of(connection: DuckDBPyConnection, files: list[str], name: str) -> str:
    """A query over JSONL files with one typed column per key that stands anywhere in them.

    Raises:
        DatasetError: DuckDB cannot read a file.
    """
    objects = f"read_ndjson_objects({duck.texts(files)}, maximum_object_size = {64 << 20})"
    with duck.explained(name, mend="write one JSON object a line"):
        found = connection.execute(f"SELECT json_group_structure(json) FROM {objects}").fetchone()
    structure = json.loads(found[0]) if found and found[0] else {}
    if not isinstance(structure, dict) or not structure:
        return f"SELECT json FROM {objects}"
    columns = ", ".join(f"{duck.text(key)}: {duck.text(type_of(each))}" for key, each in structure.items())
    return (
        f"SELECT * FROM read_json({duck.texts(files)}, format = 'newline_delimited',"
        f" columns = {{{columns}}}, maximum_object_size = {64 << 20})"
    )


def type_of(structure: Any) -> str:
    """The DuckDB type for a structure as `json_structure` gives it."""
    if isinstance(structure, dict):
        inner = ", ".join(f"{duck.name(key)} {type_of(each)}" for key, each in structure.items())
        return f"STRUCT({inner})" if inner else "JSON"
    if isinstance(structure, list):
        return f"{type_of(structure[0])}[]" if structure else "JSON"
    return {"NULL": "VARCHAR", "UBIGINT": "HUGEINT", "BIGINT": "HUGEINT"}.get(str(structure), str(structure))
