"""Which judge `ragscore calibrate` asks, and asking it."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ragscore.calibration import Judged, Label, judged_labels, read_labels
from ragscore.calibration.measuring import Calibration, calibrations
from ragscore.errors import UsageError
from ragscore.history import History
from ragscore.items import Usage
from ragscore.judges.setup import JudgeSetup, judge_setup
from ragscore.suite import JudgePart
from ragscore.suite_file import read_suites


def calibrated(labels: Path, *, suite: Path | None, judge: str | None, remembered: bool) -> Judged:
    """The labels with a judge's verdicts: asked now, or those of the sheet where no judge is named.

    Raises:
        UsageError: two judges are named.
        ConfigError: the labels, the suite or the judge's declaration is wrong.
        JudgeRefused, JudgeUnavailable: the judge will not work, or does not answer.
    """
    read = read_labels(labels)
    if suite is not None and judge is not None:
        raise UsageError("two judges are named", where="--suite and --judge", mend="name one of them")
    if suite is None and judge is None:
        return Judged(read, (), "{}", Usage())
    file = read_suites(suite)[0] if suite is not None else None
    part = file.suite.judge if file is not None else JudgePart(model=judge or "")
    salt = "" if remembered else f"calibrate-{secrets.token_hex(4)}"
    setup = judge_setup(part, dataset=labels, salt=salt, secrets=file.secrets if file is not None else None)
    return asyncio.run(_asked(setup, read, part.concurrency))


async def _asked(setup: JudgeSetup, read: Sequence[Label], concurrency: int) -> Judged:
    try:
        await setup.prepare()
        found = await judged_labels(read, setup.judge, concurrency=concurrency)
        return replace(found, params=setup.params)
    finally:
        await setup.aclose()


def measured(found: Judged, labels: Path, history: History) -> list[Calibration]:
    """Agreement and drift; earlier calibrations are known by the name of the labels' file."""
    return calibrations(found, name=labels.name, history=history)
