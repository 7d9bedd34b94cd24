"""A disk that is full: a clear error, exit 3, and what was there stays whole."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from ragscore.history import History, select

from .records import record, run_row, store

WRITER = """
    import random, sys
    sys.path.insert(0, {tests!r})
    from pathlib import Path
    from records import record
    from ragscore.errors import HistoryError
    from ragscore.history import History
    from ragscore.items import Response
    if {limit}:
        import resource
        resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))
    history = History(Path({path!r}))
    try:
        for number in range(3, 30):
            answer = Response(output=random.Random(number).randbytes(500_000).hex())  # does not get smaller packed
            history.store_responses("run-1", [record(number).having(response=answer)])
    except HistoryError as error:
        print(error.exit_code, error)
"""


def fill(path: Path, *, limit: int = 0) -> str:
    code = textwrap.dedent(WRITER).format(tests=str(Path(__file__).parent), path=str(path), limit=limit)
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        check=False,
        timeout=55,
    )
    assert done.stderr == "", done.stderr[-600:]
    return done.stdout


def check(history: History, said: str) -> None:
    assert said.startswith("3 ")
    assert str(history.path) in said
    assert said.count("\n") == 1
    assert [row.run_id for row in history.runs()] == ["run-1"]
    assert set(history.scored("run-1", ["item-0", "item-1", "item-2"])) == {"item-0", "item-1", "item-2"}
    assert select(history.path, "SELECT count(*), count(DISTINCT item_id) FROM items").rows[0][0] >= 3


def begun(path: Path) -> History:
    history = History(path)
    history.start_run(run_row(items=3))
    store(history, "run-1", [record(number) for number in range(3)])
    return history


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such limits")
def test_a_file_that_may_not_grow_is_said_and_stays_whole(history: History) -> None:
    begun(history.path)
    check(history, fill(history.path, limit=6 * 2**20))
    assert history.store_scores("run-1", [record(7)]) == 2


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 8 MiB; only root can have one."""
    place = tmp_path / "small"
    place.mkdir()
    mount = shutil.which("mount")
    if mount is None or not hasattr(os, "geteuid") or os.geteuid() != 0:
        pytest.skip("only root can mount a small disk")
    done = subprocess.run(
        [mount, "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(place)], capture_output=True, check=False
    )
    if done.returncode != 0:
        pytest.skip("a small disk cannot be mounted here")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_full_disk_is_said_and_what_was_there_stays_whole(small_disk: Path) -> None:
    history = begun(small_disk / "history.duckdb")
    said = fill(history.path)
    check(history, said)
    assert "make room" in said
