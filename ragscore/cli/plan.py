"""`ragscore plan`: what a run will take, before it is run."""

from __future__ import annotations

import json as json_
import sys
from pathlib import Path

from ragscore.cli.options import HistoryFile, Json


def plan(suite: Path, /, *, history: HistoryFile = None, json: Json = False) -> int:
    """Estimate judge calls, tokens, cost and time of a run. Makes no call and asks no target.

    Parameters
    ----------
    suite
        The suite file (YAML).
    """
    import asyncio
    import dataclasses

    from ragscore.assembly import assemble
    from ragscore.forecast import forecast
    from ragscore.history import History
    from ragscore.home import history_path
    from ragscore.report.layout import console
    from ragscore.report.terminal import print_forecast
    from ragscore.suite_file import read_suites

    told = []
    for file in read_suites(suite):
        parts = assemble(file)
        expected = forecast(parts, History(history_path(history)))
        asyncio.run(parts.judging.aclose())
        target = parts.suite.target
        title = f"{parts.suite.name}: {target.retriever} {target.version}"
        if json:
            told.append({"suite": title, "calls": expected.calls, **dataclasses.asdict(expected)})
        else:
            print_forecast(title, parts.judge.name, expected, console())
    if json:
        sys.stdout.write(json_.dumps(told[0] if len(told) == 1 else told, ensure_ascii=False, indent=2) + "\n")
    return 0
