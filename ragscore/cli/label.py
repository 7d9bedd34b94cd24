"""`ragscore label`: a sheet of verdicts for people to correct."""

from __future__ import annotations

import sys
from pathlib import Path

from ragscore.cli.options import HistoryFile, Json
from ragscore.counting import counted


def label(
    run: str = "last",
    /,
    *,
    output: Path = Path("labels.csv"),
    sample: int = 100,
    seed: int = 0,
    history: HistoryFile = None,
    json: Json = False,
) -> int:
    """Write verdicts of a run as a sheet: fill in the column `human` with yes or no, then `ragscore calibrate` it.

    Half of the rows are where the judge is least sure or its evidence was not found, half are drawn at random.

    Parameters
    ----------
    run
        The run's id, a beginning of it, or `last`.
    output
        The sheet, .csv or .jsonl; a file that is there is not written over.
    sample
        At most so many verdicts.
    seed
        Of the drawing: the same seed draws the same rows.
    """
    import json as json_
    from collections import Counter

    from ragscore.calibration import labels_of_run, write_labels
    from ragscore.errors import UsageError
    from ragscore.history import History
    from ragscore.home import history_path

    store = History(history_path(history))
    row = store.run(run)
    if sample < 1:
        raise UsageError("nothing to write", where="--sample", mend="take one verdict or more")
    if output.exists():
        raise UsageError(
            "is there already, maybe with people's work in it", where=str(output), mend="name another file"
        )
    labels = labels_of_run(store, row, sample=sample, seed=seed)
    if not labels:
        raise UsageError(
            f"run {row.run_id} has no verdicts of a judge on claims or contexts", mend="`ragscore runs` lists the runs"
        )
    try:
        write_labels(labels, output)
    except OSError as error:
        raise UsageError(f"cannot be written: {error.strerror}", where=str(output)) from None
    chosen = dict(Counter(each.chosen for each in labels))
    if json:
        said = {"file": str(output), "run_id": row.run_id, "rows": len(labels), "chosen": chosen}
        sys.stdout.write(json_.dumps(said, ensure_ascii=False, indent=2) + "\n")
    else:
        how = ", ".join(f"{count} {word}" for word, count in chosen.items())
        sys.stdout.write(
            f"{counted(len(labels), 'verdict')} of run {row.run_id} ({how}) in {output}\n"
            f"Fill in `human` with yes or no, then: ragscore calibrate {output}\n"
        )
    return 0
