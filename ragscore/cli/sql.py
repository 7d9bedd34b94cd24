"""`ragscore sql`: read the history with SQL."""

from __future__ import annotations

import json as json_
import sys
from typing import Any

from ragscore.cli.options import HistoryFile, Json


def sql(query: str, /, *, history: HistoryFile = None, json: Json = False) -> int:
    """Run one SQL statement on the history, read-only.

    Parameters
    ----------
    query
        For example "select retriever, version, scorer, mean, n from score_history".
    """
    from ragscore.history import select
    from ragscore.home import history_path

    selection = select(history_path(history), query)
    if json:
        rows = [dict(zip(selection.columns, row, strict=True)) for row in selection.rows]
        sys.stdout.write(json_.dumps(rows, ensure_ascii=False, indent=2, default=str) + "\n")
        return 0
    _print_table(selection.columns, selection.types, selection.rows)
    return 0


def _print_table(columns: tuple[str, ...], types: tuple[str, ...], rows: list[tuple[Any, ...]]) -> None:
    from rich.table import Table
    from rich.text import Text

    from ragscore.report.layout import console

    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for column, kind in zip(columns, types, strict=True):
        is_number = any(word in kind for word in ("INT", "DOUBLE", "FLOAT", "DECIMAL"))
        table.add_column(column, justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text("NULL" if value is None else str(value)) for value in row))
    console().print(table)
