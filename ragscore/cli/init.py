"""`ragscore init`: the files to begin with, which run as they are."""

from __future__ import annotations

import json
import sys
from pathlib import Path


def init(folder: Path = Path(), /) -> int:
    """Write a commented suite, a tiny dataset, a target to replace, and a script for CI. Asks nothing.

    Files that are there already are never touched.

    Parameters
    ----------
    folder
        Where to write; made if it is not there.
    """
    from importlib import resources

    from ragscore.errors import UsageError
    from ragscore.suite_schema import suite_schema

    starter = resources.files("ragscore.cli") / "starter"
    files = {each.name: each.read_text(encoding="utf-8") for each in starter.iterdir() if each.is_file()}
    files["suite.schema.json"] = json.dumps(suite_schema(), indent=2, ensure_ascii=False) + "\n"
    there = sorted(name for name in files if (folder / name).exists())
    if there:
        raise UsageError(f"{', '.join(there)} exist already", where=str(folder), mend="name another folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in sorted(files.items()):
            path = folder / name
            path.write_text(text, encoding="utf-8")
            if name.endswith(".sh"):
                path.chmod(path.stat().st_mode | 0o111)
            sys.stdout.write(f"wrote {path}\n")
    except OSError as error:
        raise UsageError(
            f"cannot be written: {error.strerror}", where=str(folder), mend="name another folder"
        ) from None
    sys.stdout.write(f"\nNext: ragscore run {folder / 'suite.yaml'}\n")
    return 0
