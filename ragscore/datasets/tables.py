"""Tables that DuckDB reads: CSV and TSV, all columns as text; Parquet, as it is typed."""

from __future__ import annotations

import csv
import datetime
import io
import json
import math
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ragscore.datasets import duck
from ragscore.datasets.faults import DatasetErrors
from ragscore.datasets.opening import opened
from ragscore.datasets.source import Row, Wanted
from ragscore.datasets.spool import Spool
from ragscore.errors import DatasetError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

Kind = Literal["csv", "tsv", "parquet"]
#: Tables smaller than this are read by Python alone.
SMALL = 1 << 20
#: Rows that are fetched at once.
CHUNK = 1000
#: Bytes in which the header of a table has to end.
HEADER = 1 << 20
#: A first line by which Excel is told the delimiter; it is no part of the table.
SEPARATOR = re.compile(r'"?sep=([,;\t|])"?\r?\n', re.IGNORECASE)
#: Types whose JSON text is what Python would make of them. Objects are too: where text is due they are no text.
SIMPLE = frozenset({"VARCHAR", "VARCHAR[]", "BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UBIGINT", "DOUBLE"})
#: pandas writes its index so.
INDEX = "__index_level_0__"


@dataclass(frozen=True)
class Tables:
    """The rows of CSV, TSV or Parquet files, in order.

    Attributes:
        files: The files.
        name: How the source is shown in messages.
        kind: How they are read.
        shown: How each file is shown; its path where left out.
        spool: Keeps the files alive, where they are a spool.
    """

    files: Sequence[Path]
    name: str
    kind: Kind
    shown: Sequence[str] = ()
    unit: str = "row"
    spool: Spool | None = None

    @property
    def textual(self) -> bool:
        """Lists may be written as text, in Parquet too where it was made from CSV."""
        return True

    def rows(self, wanted: Wanted = None) -> Iterator[Row]:
        """See `Source.rows`."""
        if wanted is not None and not len(wanted):
            return
        position = 0
        for shown, path in zip(self.shown or [str(each) for each in self.files], self.files, strict=True):
            query = self._query(path, shown)
            with duck.connected() as connection:
                with self._explained(path, shown):
                    connection.execute(query)
                    described = [(str(each[0]), each[1]) for each in connection.description or ()]
                    json_columns = {name: kind for name, kind in described if "JSON" in str(kind)}
                number = 0
                while True:
                    with self._explained(path, shown):
                        chunk = connection.fetchmany(CHUNK)
                    if not chunk:
                        break
                    for values in chunk:
                        number += 1
                        if wanted is not None and position >= len(wanted):
                            return
                        if wanted is None or wanted[position]:
                            row = {name: plain(value) for (name, _), value in zip(described, values, strict=True)}
                            row |= {name: _parsed(row[name], kind) for name, kind in json_columns.items()}
                            yield Row(position, shown, number, row)
                        position += 1

    def relation(self, connection: DuckDBPyConnection) -> str:
        """See `Source.relation`."""
        queries = [self._query(path, str(path)) for path in self.files]
        return " UNION ALL BY NAME ".join(f"({query})" for query in queries)

    def columns_as_json(self, connection: DuckDBPyConnection, columns: Sequence[str]) -> str | None:
        """See `Source.columns_as_json`; None where a column has a type that Python has to look at."""
        if sum(each.stat().st_size for each in self.files) < SMALL:
            return None
        relation = self.relation(connection)
        with duck.explained(self.name):
            described = connection.execute(f"DESCRIBE {relation}").fetchall()
        types = {str(each[0]): str(each[1]) for each in described}
        if not all((kind := types.get(each, "VARCHAR")) in SIMPLE or kind.startswith("STRUCT(") for each in columns):
            return None
        taken = [
            f"to_json({duck.name(each)}) AS {duck.name(each)}" if each in types else f"NULL::JSON AS {duck.name(each)}"
            for each in columns
        ]
        # to_json says 'null' for NULL.
        nulled = [f"nullif(CAST({duck.name(each)} AS VARCHAR), 'null') AS {duck.name(each)}" for each in columns]
        return f"SELECT {', '.join(nulled)} FROM (SELECT {', '.join(taken)} FROM ({relation}))"

    def _query(self, path: Path, shown: str) -> str:
        if self.kind == "parquet":
            without = f" EXCLUDE ({INDEX})" if self._has_index(path, shown) else ""
            return f"SELECT *{without} FROM read_parquet({duck.text(str(path))})"
        return _csv_query(path, shown, self.kind)

    def _has_index(self, path: Path, shown: str) -> bool:
        query = f"SELECT count(*) FROM parquet_schema({duck.text(str(path))}) WHERE name = {duck.text(INDEX)}"
        with self._explained(path, shown), duck.connected() as connection:
            found = connection.execute(query).fetchone()
        return bool(found and found[0])

    def _explained(self, path: Path, shown: str) -> Any:
        return _Explained(path, shown, self.kind)


class _Explained:
    """Turns an error of DuckDB about a table into all that is wrong with its rows."""

    def __init__(self, path: Path, shown: str, kind: str) -> None:
        self._path, self._shown, self._kind = path, shown, kind

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        import duckdb

        if not isinstance(error, duckdb.Error):
            return
        if self._kind == "parquet":
            raise duck.said_by_duckdb(error, self._shown, mend="is it a Parquet file?") from None
        faults = _faults_of(self._path, self._shown, self._kind) or _mixed_ends(self._path, self._shown)
        raise faults or duck.said_by_duckdb(error, self._shown) from None


def _csv_query(path: Path, shown: str, kind: str, *, more: str = "") -> str:
    """Everything is said to DuckDB, so that nothing is sniffed: columns, delimiter, quotes; an empty cell is NULL."""
    header = _header(path, shown)
    declared = SEPARATOR.match(header)
    if declared is not None:
        header = header[declared.end() :]
    delimiter = "\t" if kind == "tsv" else declared[1] if declared is not None else delimiter_of(header)
    names = next(csv.reader(io.StringIO(header), delimiter=delimiter), [])
    names = [each.strip() for each in names]
    if not any(names):
        raise DatasetError("is empty", where=shown, mend="the first line names the columns")
    if len(set(map(str.lower, names))) < len(names):
        twice = next(each for n, each in enumerate(names) if each.lower() in map(str.lower, names[:n]))
        said = f"the column `{twice}` stands twice" if twice else "several columns have no name"
        raise DatasetError(said, where=f"{shown}:1", mend="give every column its own name")
    columns = ", ".join(f"{duck.text(each or 'unnamed')}: 'VARCHAR'" for each in names)
    return (
        f"SELECT * FROM read_csv({duck.text(str(path))}, auto_detect = false, header = true,"
        f" skip = {int(declared is not None)},"
        f" columns = {{{columns}}}, delim = {duck.text(delimiter)}, quote = '\"', escape = '\"', nullstr = '',"
        f" max_line_size = {64 << 20}, null_padding = false, strict_mode = true{more})"
    )


def _header(path: Path, shown: str) -> str:
    """The first record of a table: its lines up to the one that closes all quotes."""
    with opened(path, shown) as file:
        raw = file.read(HEADER)
    head = b""
    for line in raw.splitlines(keepends=True):
        head += line
        if head.count(b'"') % 2 == 0 and not SEPARATOR.fullmatch(head.decode("utf-8-sig", "replace")):
            break
    try:
        return head.decode("utf-8-sig").strip("\r\n")
    except UnicodeDecodeError:
        mend = "save the file as UTF-8 (Excel: CSV UTF-8)"
        raise DatasetError("is not UTF-8 text", where=f"{shown}:1", mend=mend) from None


def delimiter_of(header: str) -> str:
    """What separates the columns of a header: the most frequent of , ; tab | outside of quotes."""
    outside = "".join(part for number, part in enumerate(header.split('"')) if number % 2 == 0)
    return max(",;\t|", key=lambda each: (outside.count(each), each == ","))


def _faults_of(path: Path, shown: str, kind: str) -> DatasetError | None:
    """All rows that DuckDB cannot read, by line; None where there are none of that sort."""
    import duckdb

    with duck.connected() as connection:
        try:
            connection.execute(
                f"SELECT count(*) FROM ({_csv_query(path, shown, kind, more=', store_rejects = true')})"
            ).fetchall()
            found = connection.execute(
                "SELECT DISTINCT ON (line) line, error_type, error_message FROM reject_errors ORDER BY line"
            ).fetchall()
        except duckdb.Error:
            return None
    if not found:
        return None
    mends = {
        "MISSING COLUMNS": ("has fewer cells than the header", "put texts with separators or line breaks in quotes"),
        "TOO MANY COLUMNS": ("has more cells than the header", "put texts with separators in quotes"),
        "UNQUOTED VALUE": ("has a quote that is not closed", 'write a quote within quotes twice: ""'),
        "INVALID ENCODING": ("is not UTF-8 text", "save the file as UTF-8 (Excel: CSV UTF-8)"),
        "INVALID UNICODE": ("is not UTF-8 text", "save the file as UTF-8 (Excel: CSV UTF-8)"),
    }
    faults = []
    for line, error_type, message in found:
        what, mend = mends.get(str(error_type), (f"cannot be read: {str(message).splitlines()[0]}", "check the line"))
        faults.append(f"{shown}:{line}: {what} — {mend}")
    return DatasetErrors(faults)


def _parsed(value: Any, kind: Any) -> Any:
    """What JSON says, wherever a DuckDB type has it: a column of texts and lists is of the type JSON."""
    if value is None or "JSON" not in str(kind):
        return value
    if str(kind) == "JSON":
        return json.loads(value)
    match kind.id:
        case "list" | "array":
            return [_parsed(each, kind.children[0][1]) for each in value]
        case "struct":
            return {name: _parsed(value.get(name), child) for name, child in kind.children}
        case "map":
            return {name: _parsed(each, kind.children[1][1]) for name, each in value.items()}
    return value


def _mixed_ends(path: Path, shown: str) -> DatasetError | None:
    """What DuckDB calls an invalid state of its parser: rows that end with CR LF, and rows that end with LF."""
    quotes, first = 0, None
    with opened(path, shown) as file:
        for number, line in enumerate(file, start=1):
            quotes += line.count(b'"')
            if quotes % 2 or not line.endswith(b"\n"):  # within a cell, or the end of the file
                continue
            end = "CR LF" if line.endswith(b"\r\n") else "LF"
            if end != (first := first or end):
                what = f"ends with {end}, the rows before with {first}"
                return DatasetError(what, where=f"{shown}:{number}", mend="save the file with one kind of line end")
    return None


def plain(value: Any) -> Any:
    """A value of DuckDB as JSON has it; what JSON knows only as text becomes an instance of `Foreign`."""
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, (Decimal, uuid.UUID, datetime.date, datetime.time, datetime.timedelta, bytes, bytearray)):
        return value
    tolist = getattr(value, "tolist", None)  # numpy
    return plain(tolist()) if callable(tolist) else value
