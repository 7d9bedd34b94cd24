"""`ragscore validate`: everything that is wrong with suites, at once, without asking anything."""

from __future__ import annotations

import json as json_
import sys
from pathlib import Path

from ragscore.cli.options import Json
from ragscore.counting import counted


def validate(suite: Path, /, *more: Path, json: Json = False) -> int:
    """Check suites with all that they name: dataset, target, contexts, judge. Asks nothing, writes nothing.

    Parameters
    ----------
    suite
        A suite file (YAML).
    more
        Further suite files.
    """
    from ragscore.assembly import checked

    found = {str(path): checked(path) for path in (suite, *more)}
    if json:
        told = {
            path: {"faults": [str(each) for each in faults], "items": items} for path, (faults, items) in found.items()
        }
        sys.stdout.write(json_.dumps(told, ensure_ascii=False, indent=2) + "\n")
    else:
        for path, (faults, items) in found.items():
            for fault in faults:
                sys.stderr.write(f"error: {fault}\n")
            if not faults:
                sys.stdout.write(f"{path}: ok, {counted(items, 'item')}\n")
    return 2 if any(faults for faults, _ in found.values()) else 0
