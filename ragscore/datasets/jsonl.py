"""JSONL: one item a line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from ragscore.datasets.dataset import Dataset
from ragscore.datasets.rows import RowFault, item_of
from ragscore.errors import DatasetError
from ragscore.items import Item

FAULTS_SHOWN = 20


def read_jsonl(path: Path, *, name: str | None = None) -> Dataset:
    """Read and check all items of a JSONL file; blank lines are passed over.

    Args:
        path: The file, UTF-8 (a byte-order mark is allowed).
        name: How the history calls the dataset; the path when left out.

    Raises:
        DatasetError: the file cannot be read, holds no item, or has faulty lines: all of them at once, the first 20
            with line and field.
    """
    items: list[Item] = []
    faults: list[str] = []
    lines_of_ids: dict[str, int] = {}
    for line, text in _lines(path):
        try:
            item = item_of(_row(text))
        except RowFault as fault:
            faults.append(f"{path}:{line}: {fault.field}: {fault.what} — {fault.mend}")
            continue
        if item.id in lines_of_ids:
            first = lines_of_ids[item.id]
            faults.append(f"{path}:{line}: id: {item.id!r} stands on line {first} already — give every item its own id")
            continue
        lines_of_ids[item.id] = line
        items.append(item)
    if faults:
        raise DatasetErrors(faults)
    if not items:
        raise DatasetError("holds no items", where=str(path), mend='write one JSON object a line: {"input": …}')
    return Dataset(name=name or str(path), items=items)


class DatasetErrors(DatasetError):
    """Several faulty lines at once, one line of text each; the first 20 and the count."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__("; ".join(faults))
        self.faults = faults

    def __str__(self) -> str:
        shown = self.faults[:FAULTS_SHOWN]
        if len(self.faults) > len(shown):
            shown = [*shown, f"… and {len(self.faults) - len(shown)} more faulty lines"]
        return "\n".join(shown)

    def __reduce__(self) -> tuple[object, ...]:
        return (DatasetErrors, (self.faults,))


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    try:
        with path.open(encoding="utf-8-sig") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield number, line
    except FileNotFoundError:
        raise DatasetError("no such file", where=str(path), mend="check `dataset.path` in the suite") from None
    except IsADirectoryError:
        raise DatasetError("is a directory", where=str(path), mend="name a JSONL file") from None
    except UnicodeDecodeError as error:
        raise DatasetError(
            f"is not UTF-8 text (byte {error.start})", where=str(path), mend="save the file as UTF-8"
        ) from None
    except OSError as error:
        raise DatasetError(f"cannot be read: {error.strerror}", where=str(path), mend="check its rights") from None


def _row(text: str) -> dict[str, Any]:
    def refuse(constant: str) -> NoReturn:
        raise RowFault("line", f"holds {constant}, which is not JSON", "write null, or text in quotes")

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        row = dict(pairs)
        if len(row) < len(pairs):
            twice = next(key for number, (key, _) in enumerate(pairs) if key in dict(pairs[:number]))
            raise RowFault(twice, "stands twice in one object", "remove one of the two")
        return row

    try:
        row = json.loads(text, parse_constant=refuse, object_pairs_hook=once)
    except json.JSONDecodeError as error:
        what = f"is not JSON: {error.msg} at column {error.colno}"
        raise RowFault("line", what, "write one JSON object a line") from None
    if not isinstance(row, dict):
        raise RowFault("line", "is not a JSON object", 'write {"input": …, "reference": …}')
    return row
