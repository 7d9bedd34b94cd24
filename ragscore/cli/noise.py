"""`ragscore noise`: how much the judge differs from itself."""

from __future__ import annotations

import sys
from pathlib import Path

from ragscore.cli.options import HistoryFile, Json


def noise(
    suite: Path, /, *, repeats: int = 5, run: str | None = None, history: HistoryFile = None, json: Json = False
) -> int:
    """Judge the same stored retrievals again, memory bypassed: how often do verdicts flip, and which drop is noise?

    The smallest drop that is not noise is kept in the history, and the gate tolerates at least that much. It costs as
    many judge calls as so many runs without memory; the target is not asked.

    Parameters
    ----------
    suite
        The suite file.
    repeats
        How often everything is judged.
    run
        The run whose retrievals are judged; the latest complete run of the suite when left out.
    """
    import asyncio
    import json as json_
    import secrets

    from ragscore.assembly import assemble
    from ragscore.errors import UsageError
    from ragscore.history import History
    from ragscore.home import history_path
    from ragscore.noise import measure_noise
    from ragscore.report.layout import console
    from ragscore.report.measurements import noise_dict, print_noise
    from ragscore.suite_file import read_suites

    if repeats < 2:
        raise UsageError("one repeat cannot differ from itself", where="--repeats", mend="take two or more")
    file = read_suites(suite)[0]
    store = History(history_path(history))
    name = file.suite.name
    row = store.run(run) if run else next((r for r in store.runs(suite=name) if r.status == "complete"), None)
    if row is None:
        raise UsageError(f"the history holds no complete run of {name}", mend=f"ragscore run {suite}")
    noise_id = f"noise-{secrets.token_hex(4)}"
    fresh = file.changed(judge__fresh=True)
    parts = [assemble(fresh, run_id=f"{noise_id}-{number}") for number in range(repeats)]
    found = asyncio.run(measure_noise(store, row, parts))
    store.store_noise(found.rows(noise_id))
    if json:
        sys.stdout.write(json_.dumps(noise_dict(found), ensure_ascii=False, indent=2) + "\n")
    else:
        print_noise(found, console())
    return 0
