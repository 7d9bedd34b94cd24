"""Where rows come from: the protocol that every kind of source fulfils."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from ragscore.datasets.faults import RowFault

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


class Mask(Protocol):
    """Which rows are meant, by position; those beyond its end are not."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> Any: ...


#: None means all rows.
Wanted = Mask | None


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a source, or what is wrong with it before it could become an item.

    Attributes:
        position: Its place among all rows of the source; the first is 0.
        file: The file that it stands in, as it is shown.
        number: Its number there (line, row); the first is 1.
        values: Its columns by name, values as JSON has them; or the fault.
    """

    position: int
    file: str
    number: int
    values: Mapping[str, Any] | RowFault


class Source(Protocol):
    """Rows in a fixed order, readable again and again."""

    @property
    def name(self) -> str:
        """How the source is shown in messages."""
        ...

    @property
    def unit(self) -> str:
        """What a row is called: `line` where `Row.number` counts lines of a text file, else `row`, `item`, `query`."""
        ...

    @property
    def textual(self) -> bool:
        """Whether lists, objects and truth values may stand as text (tables)."""
        ...

    def rows(self, wanted: Wanted = None) -> Iterator[Row]:
        """The rows that are wanted, in order. Rows that are not wanted cost little.

        Raises:
            DatasetError: the source cannot be read.
        """
        ...

    def relation(self, connection: DuckDBPyConnection) -> str:
        """A SQL query that gives the same rows in the same order, columns as they are in the source (for `where`)."""
        ...

    def columns_as_json(self, connection: DuckDBPyConnection, columns: Sequence[str]) -> str | None:
        """A SQL query that gives these columns of all rows in order, each as JSON text (type JSON), NULL for null.

        None where it is not worth it: the source is small, or knows no such query.
        """
        ...


def place(source: Source, row: Row) -> str:
    """Where a row stands, for messages: `data.jsonl:3`, `data.csv: row 3`."""
    return f"{row.file}:{row.number}" if source.unit == "line" else f"{row.file}: {source.unit} {row.number}"
