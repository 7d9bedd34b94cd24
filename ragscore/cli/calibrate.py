"""`ragscore calibrate`: the judge against people."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ragscore.cli.options import HistoryFile, Json


def calibrate(
    labels: Path,
    /,
    *,
    suite: Path | None = None,
    judge: str | None = None,
    remembered: Annotated[bool, Parameter(negative="")] = False,
    disagreements: int = 10,
    exit_code: Annotated[bool, Parameter(negative="")] = False,
    history: HistoryFile = None,
    json: Json = False,
) -> int:
    """Hold a judge against people: agreement with its uncertainty, the disagreements to read, and drift.

    Parameters
    ----------
    labels
        Human verdicts, JSONL or CSV, one a row (`ragscore label` writes such a sheet).
    suite
        Ask the judge of this suite. When neither this nor `judge` is given, the verdicts in the sheet are taken.
    judge
        Ask this judge: `offline`, or a model such as openai/gpt-5-mini.
    remembered
        Take what the judge is remembered to have said, instead of asking again.
    disagreements
        How many are shown.
    exit_code
        Exit with 1 if the judge drifted.
    """
    import json as json_

    from ragscore.cli.calibrating import calibrated, measured
    from ragscore.history import History
    from ragscore.home import history_path
    from ragscore.report.layout import console
    from ragscore.report.measurements import calibration_dict, print_calibration

    store = History(history_path(history))
    found = calibrated(labels, suite=suite, judge=judge, remembered=remembered)
    kinds = measured(found, labels, store)
    store.store_calibration([row for each in kinds for row in each.rows])
    if json:
        shown = calibration_dict(kinds, found)
        sys.stdout.write(json_.dumps(shown, ensure_ascii=False, indent=2) + "\n")
    else:
        print_calibration(kinds, found, console(), most=disagreements)
    return 1 if exit_code and any(each.drift is not None and each.drift.drifted for each in kinds) else 0
