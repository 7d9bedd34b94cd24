"""`ragscore schema`: what a suite file may say."""

from __future__ import annotations

import json
import sys


def schema() -> int:
    """Print the JSON Schema of suite files, for editors.

    `ragscore init` writes it beside the suite and points the editor to it.
    """
    from ragscore.suite_schema import suite_schema

    sys.stdout.write(json.dumps(suite_schema(), indent=2, ensure_ascii=False) + "\n")
    return 0
