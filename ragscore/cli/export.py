"""`ragscore export`: the history, or one run, as files."""

from __future__ import annotations

import json as json_
import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from ragscore.cli.options import HistoryFile, Json


def export(
    run: str | None = None,
    /,
    *,
    to: Path = Path("ragscore-export"),
    format: Literal["parquet", "csv", "jsonl"] = "parquet",
    inbox: Annotated[str | None, Parameter(name="--inbox")] = None,
    history: HistoryFile = None,
    json: Json = False,
) -> int:
    """Write the tables of the history to a folder, one file each; docs/sql.md describes their columns.

    Parameters
    ----------
    run
        Only this run: its id, a beginning of it, or `last`.
    to
        The folder; it must not be there, or be empty.
    format
        Of the files. In CSV, lists are JSON text, an empty cell is NULL and "" the empty text.
    inbox
        Instead, leave the run as one batch in this folder or at this address (s3://…, …), for `ragscore ingest`.
    """
    from ragscore.errors import UsageError
    from ragscore.history import History
    from ragscore.history.exporting import export as export_files
    from ragscore.home import history_path

    store = History(history_path(history))
    if inbox is None:
        rows = export_files(store, to, format=format, run=run)
        _say({"folder": str(to), "rows": rows}, f"{to}: {_listed(rows)}", json)
        return 0
    if run is None:
        raise UsageError("an inbox takes one run", mend="name it: `ragscore export last --inbox …`")
    left = _leave(store, run, inbox)
    _say({"batch": left}, f"left {left}", json)
    return 0


def _leave(store: object, run: str, place: str) -> str:
    import tempfile

    from ragscore.history import History
    from ragscore.history.exporting import export_batch
    from ragscore.history.remote import is_address, leave_at

    assert isinstance(store, History)
    if not is_address(place):
        return str(export_batch(store, run, Path(place)))
    with tempfile.TemporaryDirectory(prefix="ragscore-") as folder:
        return leave_at(export_batch(store, run, Path(folder)), place)


def _listed(rows: dict[str, int]) -> str:
    return ", ".join(f"{count} {table}" for table, count in rows.items() if count) or "nothing"


def _say(value: object, text: str, json: bool) -> None:
    sys.stdout.write((json_.dumps(value, ensure_ascii=False, indent=2) if json else text) + "\n")
