"""The labelled questions about `ragscore.demo.corpus`, written by hand: `questions.jsonl` beside this file.

Each has a reference of two to four facts and names the chunks that state them; one cannot be answered from the corpus.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ragscore.demo.corpus import resolve

#: The dataset, as a suite names it.
QUESTIONS = Path(__file__).with_name("questions.jsonl")


def labelled_questions() -> list[dict[str, Any]]:
    """The rows of `QUESTIONS` in order, their `reference_context_ids` resolved to chunks of the running Python.

    The ids in the file are those of Python 3.11 to 3.13; one that a later release no longer has is left out.
    """
    rows: list[dict[str, Any]] = [json.loads(line) for line in QUESTIONS.read_text("utf-8").splitlines()]
    for row in rows:
        if "reference_context_ids" in row:
            found = map(resolve, row["reference_context_ids"])
            row["reference_context_ids"] = list(dict.fromkeys(each for each in found if each is not None))
    return rows
