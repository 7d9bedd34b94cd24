"""JSONL: one item a line."""

from __future__ import annotations

import codecs
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from ragscore.datasets.dataset import Dataset
from ragscore.datasets.rows import RowFault, item_of
from ragscore.errors import DatasetError
from ragscore.items import Item

FAULTS_SHOWN = 20
#: Half of a surrogate pair, as it is left when text is cut in the middle of an emoji.
HALF = re.compile("[\ud800-\udfff]")


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
            row = _row(text)
            item = item_of(row)
            first = lines_of_ids.setdefault(item.id, line)
            if first != line:
                raise _repeated(item, first, has_id=str(row.get("id")) == item.id)
        except RowFault as fault:
            faults.append(f"{path}:{line}: {fault.field}: {fault.what} — {fault.mend}")
            continue
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
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                text = _decoded(line.removeprefix(codecs.BOM_UTF8) if number == 1 else line, f"{path}:{number}")
                if text:
                    yield number, text
    except FileNotFoundError:
        raise DatasetError("no such file", where=str(path), mend="check `dataset.path` in the suite") from None
    except IsADirectoryError:
        raise DatasetError("is a directory", where=str(path), mend="name a JSONL file") from None
    except OSError as error:
        raise DatasetError(f"cannot be read: {error.strerror}", where=str(path), mend="check its rights") from None


def _decoded(line: bytes, where: str) -> str:
    try:
        return line.decode("utf-8").strip()
    except UnicodeDecodeError:
        raise DatasetError("is not UTF-8 text", where=where, mend="save the file as UTF-8") from None


def _repeated(item: Item, first: int, *, has_id: bool) -> RowFault:
    if has_id:
        return RowFault("id", f"{item.id!r} stands on line {first} already", "give every item its own id")
    return RowFault("input", f"is the same as on line {first}, without an id", "remove one, or give each its own `id`")


def _row(text: str) -> dict[str, Any]:
    def refuse(constant: str) -> NoReturn:
        raise RowFault("line", f"holds {constant}, which is not JSON", "write null, or text in quotes")

    def finite(number: str) -> float:
        if not math.isfinite(value := float(number)):
            raise RowFault("line", f"holds {number}, which is beyond all numbers", "write it as text in quotes")
        return value

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        row = dict(pairs)
        if len(row) < len(pairs):
            twice = next(key for number, (key, _) in enumerate(pairs) if key in dict(pairs[:number]))
            raise RowFault(twice, "stands twice in one object", "remove one of the two")
        return row

    try:
        row = json.loads(text, parse_constant=refuse, parse_float=finite, object_pairs_hook=once)
    except json.JSONDecodeError as error:
        what = f"is not JSON: {error.msg.removesuffix(' at')} at column {error.colno}"
        raise RowFault("line", what, "write one JSON object a line") from None
    except RecursionError:
        raise RowFault("line", "is nested too deeply", "write one JSON object a line") from None
    except RowFault:
        raise
    except ValueError:  # Python reads whole numbers of 4300 digits at most
        raise RowFault("line", "holds a number with too many digits", "write it as text in quotes") from None
    if "\\ud" in text.lower() and (half := HALF.search(json.dumps(row, ensure_ascii=False))) is not None:
        # It cannot be written as UTF-8 anywhere, and two ids that differ in it only would become one.
        raise RowFault("line", f"holds {half[0]!a}, half of a character", "write the whole character, or remove it")
    if not isinstance(row, dict):
        raise RowFault("line", "is not a JSON object", 'write {"input": …, "reference": …}')
    return row
