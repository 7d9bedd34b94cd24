"""JSON files: an array of rows, or a document of a tool that holds them; spooled as JSONL.

DuckDB reads arrays, so that large ones take no memory. Documents (promptfoo's results, Phoenix's REST answers, DeepEval
test runs) are read whole.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ragscore.datasets import duck
from ragscore.datasets.jsonl import JsonLines
from ragscore.datasets.opening import opened
from ragscore.datasets.spool import Spool
from ragscore.errors import DatasetError

#: Where documents keep their rows.
KEPT_IN = (
    ("results", "results"),
    ("results", "outputs"),
    ("data", "examples"),
    ("testCases",),
    ("test_cases",),
    ("test_results",),
    ("goldens",),
    ("examples",),
    ("results",),
    ("tests",),
    ("data",),
    ("items",),
    ("rows",),
)


def json_source(paths: list[Path], name: str) -> JsonLines:
    """The rows of JSON files.

    Raises:
        DatasetError: a file is not JSON, or holds no list of rows.
    """
    spool = Spool()
    files, shown = [], []
    for number, path in enumerate(paths):
        first = _first_character(path)
        spooled = spool.file(f"{number}.jsonl")
        if first != "[" and _is_jsonl(path):
            return JsonLines(paths, name)
        if first != "[" or not _spooled_by_duckdb(path, spooled):
            with spooled.open("w", encoding="utf-8") as file:
                for row in _rows_of(path):
                    file.write(json.dumps(row) + "\n")
        files.append(spooled)
        shown.append(str(path))
    return JsonLines(files, name, shown=shown, unit="item", spool=spool)


def _spooled_by_duckdb(path: Path, spooled: Path) -> bool:
    """An array, element by element as it is written. Line breaks within an element are never within a text."""
    import duckdb

    query = (
        "SELECT translate(json::VARCHAR, chr(10) || chr(13), '  ') FROM"
        f" read_json_objects({duck.text(str(path))}, format = 'array', maximum_object_size = {256 << 20})"
    )
    with duck.connected() as connection:
        try:
            connection.execute(
                f"COPY ({query}) TO {duck.text(str(spooled))}"
                " (FORMAT csv, HEADER false, DELIMITER '\x01', QUOTE '', ESCAPE '')"
            )
        except duckdb.Error:
            return False  # Python says what is wrong
    return True


def _rows_of(path: Path) -> Iterator[Any]:
    document = _document(path)
    if isinstance(document, list):
        yield from document
        return
    for keys in KEPT_IN:
        found: Any = document
        for key in keys:
            found = found.get(key) if isinstance(found, Mapping) else None
        if isinstance(found, list) and found and all(isinstance(each, Mapping) for each in found):
            yield from found
            return
    keys_there = ", ".join(f"`{key}`" for key in document) if isinstance(document, Mapping) else "no keys"
    raise DatasetError(
        f"holds no list of rows that is known here (it has {keys_there})",
        where=str(path),
        mend='write a list of objects: [{"input": …, "reference": …}]',
    )


def _document(path: Path) -> Any:
    try:
        return json.loads(_read(path))
    except json.JSONDecodeError as error:
        where = f"{path}:{error.lineno}"
        what = f"is not JSON: {error.msg.removesuffix(' at')} at column {error.colno}"
        raise DatasetError(what, where=where, mend="check commas, quotes and brackets") from None
    except (RecursionError, ValueError):
        raise DatasetError("is not JSON", where=str(path), mend="check commas, quotes and brackets") from None


def _read(path: Path) -> str:
    try:
        with opened(path, str(path)) as file:
            return file.read().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise DatasetError("is not UTF-8 text", where=str(path), mend="save the file as UTF-8") from None


def _first_character(path: Path) -> str:
    with opened(path, str(path)) as file:
        return file.read(4096).decode("utf-8-sig", "replace").lstrip()[:1]


def _is_jsonl(path: Path) -> bool:
    """Whether the first line is an object by itself, and there are more of them."""
    with opened(path, str(path)) as file:
        first, second = file.readline(), file.readline()
    try:
        return isinstance(json.loads(first.decode("utf-8-sig")), dict) and bool(second.strip())
    except ValueError:
        return False
