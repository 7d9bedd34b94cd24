"""Data as the API takes it: mappings, dataclasses, models, items, pandas or polars frames, or a path."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ragscore.datasets import Dataset
from ragscore.datasets.columns import settle
from ragscore.datasets.faults import DatasetErrors, RowFault
from ragscore.datasets.loading import load_dataset
from ragscore.errors import DatasetError
from ragscore.items import Item
from ragscore.suite import DatasetPart
from ragscore.targets.shapes import jsonable


def dataset_of(data: Any, *, name: str = "data") -> Dataset:
    """The dataset that `data` is.

    Args:
        data: A path (any kind of file that a suite takes); or rows: mappings, dataclasses, pydantic models, `Item`s; or
            a pandas or polars frame, or an Arrow table. Columns go by the names that common tools use
            (docs/datasets.md); `ground_truth` and `groundTruth` are the reference. None and NaN are missing cells.
        name: How the history calls it, where it has no path.

    Raises:
        DatasetError: it is none of these, is empty, or rows are wrong: all of them at once, with their numbers.
    """
    if isinstance(data, (str, Path)):
        return load_dataset(DatasetPart(path=str(data)), base_dir=Path())
    rows = list(_rows(data))
    if not rows:
        raise DatasetError("holds no items", where=name, mend='give rows like {"input": …, "reference": …}')
    plain = [row for row in rows if not isinstance(row, Item)]
    reading = settle(plain, where=name) if plain else None
    items: list[Item] = []
    faults: list[str] = []
    given: Counter[str] = Counter()
    for number, row in enumerate(rows):
        try:
            item = row if isinstance(row, Item) else reading.item(row) if reading is not None else None
            assert item is not None
            given[item.id] += 1
            if given[item.id] > 1:
                if isinstance(row, Item) or row.get("id") is not None:
                    raise RowFault("id", f"{item.id!r} stands in an earlier row already", "give every item its own id")
                item = dataclasses.replace(item, id=f"{item.id}-{given[item.id]}")
            items.append(item)
        except RowFault as fault:
            faults.append(f"{name}[{number}]: {fault.field}: {fault.what} — {fault.mend}")
    if faults:
        raise DatasetErrors(faults)
    return Dataset(name, items)


def _rows(data: Any) -> Iterable[dict[str, Any] | Item]:
    if hasattr(data, "to_dicts"):  # polars
        data = data.to_dicts()
    elif hasattr(data, "to_dict") and hasattr(data, "columns"):  # pandas
        data = data.to_dict(orient="records")
    elif hasattr(data, "to_pylist"):  # Arrow
        data = data.to_pylist()
    elif isinstance(data, Mapping) or not isinstance(data, Iterable):
        raise DatasetError(
            f"is a {type(data).__name__}, not rows", where="data", mend="give a list of mappings, or a path"
        )
    for number, row in enumerate(data):
        if isinstance(row, Item):
            yield row
        else:
            yield _plain(row, number)


def _plain(row: Any, number: int) -> dict[str, Any]:
    if dataclasses.is_dataclass(row) and not isinstance(row, type):
        row = {each.name: getattr(row, each.name) for each in dataclasses.fields(row)}
    elif hasattr(row, "model_dump"):
        row = row.model_dump()
    if not isinstance(row, Mapping):
        raise DatasetError(
            f"is a {type(row).__name__}, not a mapping",
            where=f"data[{number}]",
            mend='write {"input": …, "reference": …}',
        )
    return {str(key): _value(value) for key, value in row.items()}


def _value(value: Any) -> Any:
    """A cell as JSON has it; what frames put for a missing one is missing."""
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return None if value != value else value
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    return jsonable(value)
