"""The commands that a page or a summary names as the next ones, as they can be typed in this place."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path

from ragscore.home import history_path


def command(*words: str, history: Path) -> str:
    """`ragscore WORDS`, with the history named where it is not the default one, quoted for a shell.

    Where `ragscore` is not on the PATH it is named as it was called (`.venv/bin/ragscore`).
    """
    named = [] if history == history_path() else ["--history", str(history)]
    called = sys.argv[0] if Path(sys.argv[0]).name == "ragscore" else f"{Path(sys.executable).name} -m ragscore"
    program = "ragscore" if shutil.which("ragscore") else called
    return " ".join([program, *(shlex.quote(word) for word in [*words, *named])])
