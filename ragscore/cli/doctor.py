"""`ragscore doctor`: is everything there that a run needs, and does it answer?"""

from __future__ import annotations

import json as json_
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ragscore.cli.options import HistoryFile, Json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ragscore.cli.checkup import Check


def doctor(suite: Path | None = None, /, *, history: HistoryFile = None, json: Json = False) -> int:
    """Look at versions, judge, Prefect API, history, remembered judgements and locks; say what is wrong.

    With a suite, its judge is asked one small thing. No key is ever shown.

    Parameters
    ----------
    suite
        A suite file (YAML).
    """
    found: list[Check] = []
    for check in _checks(suite, history):
        found.append(check)
        if not json:
            _print(check)
    if json:
        rows = [{"about": each.about, "state": each.state, "said": each.said} for each in found]
        sys.stdout.write(json_.dumps({"checks": rows}, ensure_ascii=False, indent=2) + "\n")
    return 3 if any(each.state == "failed" for each in found) else 0


def _checks(suite: Path | None, history: Path | None) -> Iterator[Check]:
    import os

    from ragscore.cli import checkup
    from ragscore.errors import ConfigError
    from ragscore.home import history_path, home
    from ragscore.judges.frozen_claims import place
    from ragscore.suite_file import read_suites

    yield from checkup.versions()
    guarded = [home() / "judgements.sqlite.lock"]
    if suite is not None:
        try:
            file = read_suites(suite)[0]  # its targets share the judge
        except ConfigError as error:
            yield checkup.Check("suite", "failed", str(error))
        else:
            dataset = file.base_dir / Path(file.suite.dataset.beside).expanduser()
            members = {member.model_dump_json(): member for member, _ in file.suite.judge.seats()}  # of a jury, each
            for member in members.values():
                yield from checkup.judge(member, dataset, os.environ)
            claims = place(dataset, home())
            guarded.append(claims.with_name(f".{claims.name}.lock"))
    yield checkup.prefect_api()
    yield from checkup.history(history_path(history))
    yield checkup.judgements()
    yield from checkup.locks(*guarded)


def _print(check: Check) -> None:
    from ragscore.report.layout import visible

    sign = {"ok": "✓", "warning": "!", "failed": "✗"}[check.state]
    for number, line in enumerate(visible(check.said).splitlines() or [""]):
        sys.stdout.write(f"{sign if number == 0 else ' '} {check.about if number == 0 else '':<14} {line}\n")
    sys.stdout.flush()
