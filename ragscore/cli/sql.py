"""`ragscore sql`: read the history with SQL."""

from __future__ import annotations

import itertools
import json as json_
import math
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from ragscore.cli.options import HistoryFile, Json

if TYPE_CHECKING:
    from ragscore.history import Selection

# What JSON lets stand as it is, and a terminal may obey.
_CONTROL = re.compile("[\x7f-\x9f]")


def sql(
    query: str | None = None,
    /,
    *,
    file: Annotated[Path | None, Parameter(name=("--file", "-f"))] = None,
    format: Literal["table", "csv", "json", "parquet"] = "table",
    output: Annotated[Path | None, Parameter(name=("--output", "-o"))] = None,
    allow_external: bool = False,
    history: HistoryFile = None,
    json: Json = False,
) -> int:
    """Run SQL on the history, read-only; docs/sql.md describes its tables and views.

    Parameters
    ----------
    query
        For example "select retriever, version, scorer, mean, n from score_history". Of several statements the last
        gives the rows.
    file
        Read the SQL from this file; - is standard input.
    format
        How rows are written. Only a table makes control characters visible; the others keep values as they are.
    output
        Write to this file, replaced when it is there.
    allow_external
        Let the SQL read and write other files. The history stays read-only.
    """
    from ragscore.errors import UsageError
    from ragscore.history import save, select
    from ragscore.home import history_path

    text = _text(query, file)
    path = history_path(history)
    if json:
        format = "json"
    if format == "parquet":
        if output is None:
            raise UsageError("Parquet is not for a terminal", mend="name a file with --output")
        save(path, text, output, allow_external=allow_external)
        return 0
    selection = select(path, text, allow_external=allow_external)
    if format == "table" and output is None:
        _print_table(selection)
        return 0
    written = {"json": _as_json, "csv": _as_csv, "table": _as_text}[format](selection)
    if output is None:
        sys.stdout.write(written)
        return 0
    try:
        output.write_text(written, encoding="utf-8", newline="")
    except OSError as error:
        raise UsageError(f"cannot be written: {error.strerror}", where=str(output)) from error
    return 0


def _text(query: str | None, file: Path | None) -> str:
    from ragscore.errors import UsageError

    if (query is None) == (file is None):
        raise UsageError("write the SQL, or name its file with -f", mend='ragscore sql "select * from score_history"')
    if query is not None:
        return query
    assert file is not None
    try:
        return sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror}", where=str(file)) from error
    except UnicodeDecodeError as error:
        raise UsageError("is not UTF-8", where=str(file), mend="save it as UTF-8") from error


def _as_json(selection: Selection) -> str:
    nested = {place for place, kind in enumerate(selection.types) if kind == "JSON"}
    names = _apart(selection.columns)
    rows = [
        {
            name: json_.loads(value) if place in nested and value is not None else _finite(value)
            for place, (name, value) in enumerate(zip(names, row, strict=True))
        }
        for row in selection.rows
    ]
    text = json_.dumps(rows, ensure_ascii=False, indent=2, default=str)
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text) + "\n"


def _apart(columns: Sequence[str]) -> list[str]:
    """The names of columns, numbered as DuckDB does it (`score`, `score_1`) where several have the same: an object of
    JSON would keep the last one alone."""
    names: list[str] = []
    for name in columns:
        numbered = (f"{name}_{number}" for number in itertools.count(1))
        names.append(next(each for each in itertools.chain([name], numbered) if each not in names))
    return names


def _finite(value: Any) -> Any:
    """NaN and infinities are not in JSON; they are null there."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _as_csv(selection: Selection) -> str:
    """RFC 4180 with \\n; an empty cell is NULL, "" the empty text; lists and structures are JSON."""
    lines = [",".join(_cell(name) for name in selection.columns)]
    lines += [",".join(_cell(value) for value in row) for row in selection.rows]
    return "\n".join(lines) + "\n"


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    text = json_.dumps(value, ensure_ascii=False, default=str) if isinstance(value, list | dict) else str(value)
    return '"' + text.replace('"', '""') + '"' if not text or any(mark in text for mark in ',"\r\n') else text


def _as_text(selection: Selection) -> str:
    import io

    from rich.console import Console

    from ragscore.report.layout import PIPED_WIDTH

    out = Console(file=io.StringIO(), width=PIPED_WIDTH, highlight=False)
    out.print(_table(selection))
    assert isinstance(out.file, io.StringIO)
    return out.file.getvalue()


def _print_table(selection: Selection) -> None:
    from ragscore.report.layout import console

    console().print(_table(selection))


def _table(selection: Selection) -> Any:
    from rich.table import Table

    from ragscore.report.layout import Words

    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for column, kind in zip(selection.columns, selection.types, strict=True):
        is_number = any(word in kind for word in ("INT", "DOUBLE", "FLOAT", "DECIMAL"))
        table.add_column(Words(column), justify="right" if is_number else "left", overflow="fold")
    for row in selection.rows:
        table.add_row(*(Words("NULL" if value is None else str(value)) for value in row))
    return table
