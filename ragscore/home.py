"""Where ragscore keeps what it remembers: `RAGSCORE_HOME`, else `.ragscore` in the working directory."""

from __future__ import annotations

import os
from pathlib import Path


def home() -> Path:
    """The folder of history and judgements; it may not exist yet."""
    return Path(os.environ.get("RAGSCORE_HOME") or ".ragscore")


def history_path(given: Path | None = None) -> Path:
    """The history file: the one given, else `history.duckdb` in the home."""
    return given if given is not None else home() / "history.duckdb"
