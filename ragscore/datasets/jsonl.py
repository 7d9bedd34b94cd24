"""JSONL: one row a line. Rows of other sources are spooled as JSONL too."""

from __future__ import annotations

import codecs
import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from ragscore.datasets import duck
from ragscore.datasets.checking import checked
from ragscore.datasets.dataset import Dataset
from ragscore.datasets.faults import RowFault
from ragscore.datasets.json_types import relation_of
from ragscore.datasets.opening import opened
from ragscore.datasets.source import Row, Wanted
from ragscore.datasets.spool import Spool
from ragscore.errors import DatasetError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

#: Half of a surrogate pair, as it is left when text is cut in the middle of an emoji.
HALF = re.compile("[\ud800-\udfff]")
#: Files smaller than this are read by Python alone: they take less time than DuckDB needs to start.
SMALL = 4 << 20
#: A line may be this long for DuckDB (bytes); longer ones are looked at by Python alone.
LONGEST_LINE = 16 << 20


@dataclass(frozen=True)
class JsonLines:
    """The rows of JSONL files, UTF-8 (a byte-order mark is allowed), also gzipped; blank lines are passed over.

    Attributes:
        files: The files, in order.
        name: How the source is shown in messages.
        shown: How each file is shown; its path where left out.
        unit: `line`, or what a row is where the files are a spool of something else.
        spool: Keeps the files alive, where they are a spool.
    """

    files: Sequence[Path]
    name: str
    shown: Sequence[str] = ()
    unit: str = "line"
    textual: bool = False
    spool: Spool | None = None

    def rows(self, wanted: Wanted = None) -> Iterator[Row]:
        """See `Source.rows`; a line that is not sound is a row whose values are its fault."""
        if wanted is not None and not len(wanted):
            return
        position = 0
        for shown, path in zip(self.shown or [str(each) for each in self.files], self.files, strict=True):
            for count, (line, raw) in enumerate(_lines(path, shown), start=1):
                if wanted is not None and position >= len(wanted):
                    return
                if wanted is None or wanted[position]:
                    number = line if self.unit == "line" else count
                    yield Row(position, shown, number, _sound(raw, f"{shown}:{line}"))
                position += 1

    def relation(self, connection: DuckDBPyConnection) -> str:
        """See `Source.relation`; columns have the types that their values have in JSON, texts stay texts."""
        return relation_of(connection, [str(each) for each in self.files], self.name)

    def columns_as_json(self, connection: DuckDBPyConnection, columns: Sequence[str]) -> str | None:
        """See `Source.columns_as_json`."""
        if sum(each.stat().st_size for each in self.files) < SMALL:
            return None
        types = "{" + ", ".join(f"{duck.text(each)}: 'JSON'" for each in columns) + "}"
        return (
            f"SELECT * FROM read_json({duck.texts([str(each) for each in self.files])}, format = 'newline_delimited',"
            f" columns = {types}, maximum_object_size = {LONGEST_LINE})"
        )


def read_jsonl(path: Path, *, name: str | None = None) -> Dataset:
    """Read and check all items of a JSONL file; blank lines are passed over.

    Args:
        path: The file, UTF-8 (a byte-order mark is allowed).
        name: How the history calls the dataset; the path when left out.

    Raises:
        DatasetError: the file cannot be read, holds no item, or has faulty lines: all of them at once, the first 20
            with line and field.
    """
    return checked(JsonLines([path], str(path)), name=name or str(path))


def _lines(path: Path, shown: str) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, and their numbers."""
    with opened(path, shown) as file:
        for number, line in enumerate(file, start=1):
            raw = (line.removeprefix(codecs.BOM_UTF8) if number == 1 else line).strip()
            if raw:
                yield number, raw


def _sound(raw: bytes, where: str) -> dict[str, Any] | RowFault:
    try:
        text = raw.decode("utf-8").strip()
    except UnicodeDecodeError:
        raise DatasetError("is not UTF-8 text", where=where, mend="save the file as UTF-8") from None
    try:
        return object_of(text)
    except RowFault as fault:
        return fault


def object_of(text: str) -> dict[str, Any]:
    """The JSON object of a line.

    Raises:
        RowFault: it is no sound JSON object: not JSON, NaN, a key that stands twice, half a character.
    """

    def refuse(constant: str) -> NoReturn:
        raise RowFault("line", f"holds {constant}, which is not JSON", "write null, or text in quotes")

    def finite(number: str) -> float:
        if not math.isfinite(value := float(number)):
            raise RowFault("line", f"holds {number}, which is beyond all numbers", "write it as text in quotes")
        return value

    try:
        row = json.loads(text, parse_constant=refuse, parse_float=finite, object_pairs_hook=_once)
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


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) < len(pairs):
        twice = next(key for number, (key, _) in enumerate(pairs) if key in dict(pairs[:number]))
        raise RowFault(twice, "stands twice in one object", "remove one of the two")
    return row
