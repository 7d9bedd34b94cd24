"""`ragscore merge`: several histories as one."""

from __future__ import annotations

import json as json_
import sys
from pathlib import Path

from ragscore.cli.options import HistoryFile, Json


def merge(*others: Path, history: HistoryFile = None, json: Json = False) -> int:
    """Copy what other histories hold into this one. Doing it twice changes nothing; the others stay as they are.

    Parameters
    ----------
    others
        History files, such as those that CI jobs or other hosts made.
    """
    from ragscore.errors import UsageError
    from ragscore.history import History
    from ragscore.history.merging import merge as merge_one
    from ragscore.home import history_path

    if not others:
        raise UsageError("names no history to merge", mend="ragscore merge OTHER.duckdb")
    store = History(history_path(history))
    told = []
    for other in others:
        merged = merge_one(store, other)
        told.append(
            {
                "from": str(other),
                "new_runs": list(merged.new_runs),
                "known_runs": list(merged.known_runs),
                "rows": dict(merged.rows),
            }
        )
        if not json:
            rows = ", ".join(f"{count} {table}" for table, count in merged.rows.items() if count) or "no new rows"
            known = f", {len(merged.known_runs)} known ones" if merged.known_runs else ""
            sys.stdout.write(f"{other}: {len(merged.new_runs)} new runs{known}; {rows}\n")
    if json:
        sys.stdout.write(json_.dumps(told, ensure_ascii=False, indent=2) + "\n")
    return 0
