"""`ragscore ingest`: take in batches that could not be written, or that other hosts left."""

from __future__ import annotations

import json as json_
import sys

from ragscore.cli.options import HistoryFile, Json
from ragscore.counting import counted


def ingest(*inboxes: str, history: HistoryFile = None, json: Json = False) -> int:
    """Take the batches of an inbox into the history, and remove them. Doing it twice changes nothing.

    Parameters
    ----------
    inboxes
        Folders, or addresses that fsspec reaches (s3://…, gs://…, file://…); the history's own when left out.
    """
    from pathlib import Path

    from ragscore.errors import UsageError
    from ragscore.history import History
    from ragscore.history.remote import ingest_from, is_address
    from ragscore.home import history_path

    store = History(history_path(history))
    told = []
    for place in inboxes or (str(store.inbox),):
        if inboxes and not is_address(place) and not Path(place).is_dir():
            raise UsageError("there is no such folder", where=place)
        found = ingest_from(store, place) if is_address(place) else store.ingest(Path(place))
        told.append({"inbox": place, "batches": found.batches, "rows": found.rows, "run_ids": list(found.run_ids)})
        if not json:
            what = (
                f"{counted(found.batches, 'batch')} of {counted(len(found.run_ids), 'run')}, {found.rows} rows were new"
            )
            sys.stdout.write(f"{place}: {what if found.batches else 'nothing waits'}\n")
    if json:
        sys.stdout.write(json_.dumps(told, ensure_ascii=False, indent=2) + "\n")
    return 0
