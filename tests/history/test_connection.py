"""Several at one file, files that are none of ours, and a process that dies: nothing is lost or damaged."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pytest

from ragscore.errors import HistoryError, HistoryLocked, HistoryTooNew, HistoryUnreadable, RagscoreError
from ragscore.history import History, select, summaries
from ragscore.history.connection import one_state, reading, writing
from ragscore.history.schema import migrations, newest

from .records import record, run_row, store

ROOT = Path(__file__).parents[2]

WRITER = """
    import sys
    from pathlib import Path
    sys.path.insert(0, {tests!r})
    from records import record, run_row, store
    from ragscore.history import History
    history, run_id = History(Path({path!r})), sys.argv[1]
    history.start_run(run_row(run_id, items=24))
    for first in range(0, 24, 4):
        store(history, run_id, [record(number) for number in range(first, first + 4)])
        print("written", first, flush=True)
    print(history.finish_run(run_id, status="complete").status, flush=True)
"""


def start(code: str, path: Path, *args: str) -> subprocess.Popen[str]:
    source = textwrap.dedent(code).format(path=str(path), tests=str(Path(__file__).parent))
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", source, *args],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )


def test_what_is_read_of_one_state_does_not_change_while_others_write_and_they_lose_nothing(history: History) -> None:
    history.start_run(run_row(items=2))
    store(history, "run-1", [record(1)])
    counted = "SELECT count(*) FROM latest_scores"
    with ThreadPoolExecutor() as pool:
        with one_state(history.path):
            (before,) = select(history.path, counted).rows
            writer = pool.submit(store, history, "run-1", [record(2)])
            other = start(WRITER, history.path, "run-2")
            for _ in range(3):
                assert select(history.path, counted).rows == [before]
                assert summaries(history, "run-1")[0].n == 1
            assert history.run("run-1").items == 2
        writer.result(timeout=60)
        said, wrong = other.communicate(timeout=60)
    assert (said.splitlines()[-1], wrong) == ("complete", "")
    assert select(history.path, counted).rows[0][0] > before[0]
    assert summaries(history, "run-1")[0].n == 2


@contextmanager
def held(path: Path) -> Iterator[int]:
    """Another process that keeps the file open for writing; gives its process id."""
    holder = start("import duckdb; c = duckdb.connect({path!r}); print('held', flush=True); input()", path)
    assert holder.stdout is not None
    holder.stdout.readline()
    try:
        yield holder.pid
    finally:
        holder.kill()
        holder.communicate()


def test_two_processes_write_and_one_reads_and_nobody_loses_or_sees_anything(history: History) -> None:
    writers = [start(WRITER, history.path, f"run-{number}") for number in (1, 2)]
    seen = []
    while any(writer.poll() is None for writer in writers):
        if history.exists():
            seen.append(sum(summary.n for row in history.runs() for summary in summaries(history, row.run_id)))
    for writer in writers:
        out, err = writer.communicate()
        assert (err, writer.returncode) == ("", 0)
        assert out.splitlines()[-1] == "complete"
    assert seen == sorted(seen)
    assert [(row.status, row.written_scores) for row in history.runs()] == [("complete", 48)] * 2
    assert [summary.n for run in ("run-1", "run-2") for summary in summaries(history, run)] == [24] * 4
    assert [file.name for file in history.path.parent.iterdir()] == [history.path.name]


def test_threads_of_one_process_take_turns(history: History, count: Callable[[str], int]) -> None:
    history.start_run(run_row(items=8))

    def work(number: int) -> int:
        store(history, "run-1", [record(number)])
        return len(history.scored("run-1", [f"item-{number}"]))

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(work, range(8))) == [1] * 8
    assert count("scores") == 16


def test_a_history_made_by_several_at_once_is_made_once(history: History) -> None:
    starters = [start(WRITER, history.path, "the-same") for _ in range(3)]
    for starter in starters:
        _, err = starter.communicate()
        assert err == ""
    assert len(history.runs()) == 1
    assert history.finish_run("the-same", status="complete").ok


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGKILL")
def test_a_process_killed_while_it_writes_leaves_whole_batches(history: History) -> None:
    dying = """
        import os, signal, sys
        from pathlib import Path
        sys.path.insert(0, {tests!r})
        from records import record, run_row, store
        from ragscore.history import History, store as module, tables
        history = History(Path({path!r}))
        history.start_run(run_row(items=3))
        store(history, "run-1", [record(1)])
        inside = tables._append
        def append(connection, table, rows):
            inside(connection, table, rows)
            if table == sys.argv[1]:
                os.kill(os.getpid(), signal.SIGKILL)
        tables._append = append
        store(history, "run-1", [record(2)])
    """
    done = start(dying, history.path, "scores")
    assert done.communicate()[1] == ""
    assert done.returncode == -signal.SIGKILL
    ids = ["item-1", "item-2"]
    assert list(history.responses("run-1", ids)) == ids
    assert list(history.scored("run-1", ids)) == ["item-1"]
    assert select(history.path, "SELECT count(*) FROM verdicts").rows == [(6,)]
    assert store(history, "run-1", [record(1), record(2), record(3)]) == (1, 1, 4)
    assert history.finish_run("run-1", status="complete").ok


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGKILL")
def test_what_was_committed_before_a_kill_is_there_although_the_file_was_never_closed(history: History) -> None:
    committed = """
        import os, duckdb
        connection = duckdb.connect({path!r})
        connection.execute("UPDATE runs SET error = 'kept'")
        os.kill(os.getpid(), 9)
    """
    history.start_run(run_row())
    start(committed, history.path).communicate()
    assert history.path.with_name(history.path.name + ".wal").exists()
    assert history.run("run-1").error == "kept"  # read-only first
    assert history.store_scores("run-1", [record(1)]) == 2
    assert history.run("run-1").error == "kept"


def test_a_history_held_too_long_is_named_with_its_holder(history: History) -> None:
    history.start_run(run_row())
    with held(history.path) as pid:
        impatient = History(history.path, lock_timeout_s=0.2)
        for call in (impatient.runs, lambda: impatient.store_scores("run-1", [])):
            with pytest.raises(HistoryLocked, match=rf"held by process {pid} \(.*\) for more than 0.2 s") as raised:
                call()
            assert raised.value.transient
            assert str(history.path) in str(raised.value)
    assert len(history.runs()) == 1


def test_a_waiting_writer_goes_on_when_the_holder_is_gone(history: History) -> None:
    history.start_run(run_row())
    with held(history.path):
        written: list[int] = []
        thread = threading.Thread(target=lambda: written.append(history.store_scores("run-1", [record(1)])))
        thread.start()
    thread.join()
    assert written == [2]


def test_other_code_of_this_process_at_the_file_is_waited_for_too(history: History) -> None:
    history.start_run(run_row())
    with (
        duckdb.connect(history.path, read_only=True),
        pytest.raises(HistoryLocked, match="another connection of this process"),
    ):
        History(history.path, lock_timeout_s=0.05).reopen_run("run-1")
    inside = History(history.path, lock_timeout_s=0.05)
    with reading(history.path), pytest.raises(HistoryLocked, match=rf"this process \(PID {os.getpid()}\)"):
        inside.runs()


def test_a_block_that_raises_writes_nothing(history: History, count: Callable[[str], int]) -> None:
    history.start_run(run_row())

    def work() -> None:
        with writing(history.path) as connection:
            connection.execute("DELETE FROM runs")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        work()
    assert count("runs") == 1


def _not_duckdb(good: bytes) -> bytes:
    return b"hello, this is no database\n" * 50


def _sqlite(good: bytes) -> bytes:
    return b"SQLite format 3\x00" + good[16:]


def _empty(good: bytes) -> bytes:
    return b""


def _cut(good: bytes) -> bytes:
    return good[: len(good) // 2]


def _cut_in_the_header(good: bytes) -> bytes:
    return good[:5000]


def _overwritten(good: bytes) -> bytes:
    return good[:12_288] + b"\xff" * 4096 + good[16_384:]


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (_not_duckdb, "is not a DuckDB file"),
        (_sqlite, "is not a DuckDB file"),
        (_empty, "is empty"),
        (_cut, "is damaged"),
        (_cut_in_the_header, "is damaged"),
        (_overwritten, "is damaged"),
    ],
)
def test_a_file_that_is_no_history_or_damaged_is_said_at_once_and_left_alone(
    history: History, spoil: Callable[[bytes], bytes], message: str
) -> None:
    history.start_run(run_row())
    store(history, "run-1", [record(1)])
    spoilt = spoil(history.path.read_bytes())
    history.path.write_bytes(spoilt)
    for call in (history.runs, lambda: history.start_run(run_row("b")), lambda: select(history.path, "FROM runs")):
        with pytest.raises(HistoryUnreadable, match=message) as raised:
            call()
        assert "\n" not in str(raised.value)
        assert str(history.path) in str(raised.value)
        assert not raised.value.transient
        assert history.path.read_bytes() == spoilt
    assert [file.name for file in history.path.parent.iterdir()] == [history.path.name]


def test_a_newer_schema_is_refused_and_left_alone(history: History) -> None:
    history.start_run(run_row())
    with duckdb.connect(history.path) as connection:
        connection.execute("INSERT INTO schema_migrations VALUES (999, 'later', now(), '9.9.9')")
    before = history.path.read_bytes()
    for call in (history.runs, lambda: history.start_run(run_row("b"))):
        with pytest.raises(HistoryTooNew, match=r"ragscore 9\.9\.9 with schema 999; ragscore .* knows \d+.*upgrade"):
            call()
        assert history.path.read_bytes() == before


def test_a_database_of_somebody_else_is_refused_and_left_alone(path: Path) -> None:
    path.parent.mkdir()
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TABLE customers (name VARCHAR)")
    before = path.read_bytes()
    for call in (History(path).runs, lambda: History(path).start_run(run_row())):
        with pytest.raises(HistoryUnreadable, match="not a history of ragscore"):
            call()
        assert path.read_bytes() == before


@pytest.mark.parametrize("place", ["a-file/history.duckdb", "a-folder"])
def test_a_place_where_no_history_can_be_is_said_so(tmp_path: Path, place: str) -> None:
    (tmp_path / "a-file").touch()
    (tmp_path / "a-folder").mkdir()
    with pytest.raises(HistoryUnreadable, match=re.escape(str(tmp_path / place))):
        History(tmp_path / place).start_run(run_row())


@pytest.mark.skipif(not hasattr(os, "seteuid"), reason="POSIX permissions")
def test_a_folder_that_may_not_be_written_is_said_so_and_can_still_be_read(tmp_path: Path) -> None:
    folder = tmp_path / "fixed"
    history = History(folder / "history.duckdb")
    history.start_run(run_row())
    root, shared = os.geteuid() == 0, Path(tempfile.gettempdir()).resolve()
    if root and not folder.resolve().is_relative_to(shared):
        pytest.skip("root cannot try permissions in a place that nobody else can reach")
    parents = [parent for parent in folder.resolve().parents if parent != shared and parent.is_relative_to(shared)]
    modes = {parent: parent.stat().st_mode for parent in parents}
    try:
        folder.chmod(0o555)
        history.path.chmod(0o444)
        if root:  # permissions mean nothing to root
            for parent in modes:
                parent.chmod(parent.stat().st_mode | 0o055)
            os.seteuid(65534)
        with pytest.raises(HistoryUnreadable, match=r"cannot be used: .*[Pp]ermission"):
            history.start_run(run_row("b"))
        with pytest.raises(HistoryUnreadable, match="cannot be made here: Permission denied"):
            History(folder / "new.duckdb").start_run(run_row("b"))
        assert [row.run_id for row in history.runs()] == ["run-1"]
    finally:
        if root:
            os.seteuid(0)
        for parent, mode in modes.items():
            parent.chmod(mode)
        folder.chmod(0o755)


def test_the_file_is_kept_in_the_format_that_every_supported_duckdb_opens(history: History) -> None:
    history.start_run(run_row())
    for number in range(3):
        store(history, "run-1", [record(number)])
    found = select(
        history.path, "SELECT tags['storage_version'] FROM duckdb_databases() WHERE database_name = 'history'"
    )
    assert found.rows == [("v1.5.0+",)]


def test_migrations_are_numbered_without_gaps_and_marked_when_applied(history: History) -> None:
    assert [step.number for step in migrations()] == list(range(1, newest() + 1))
    history.start_run(run_row())
    found = select(history.path, "SELECT number, name FROM schema_migrations ORDER BY 1")
    assert found.rows == [(step.number, step.name) for step in migrations()]


def test_every_error_of_the_history_has_an_exit_code() -> None:
    assert issubclass(HistoryError, RagscoreError)
    assert {kind.exit_code for kind in (HistoryLocked, HistoryUnreadable)} == {3}
    assert HistoryTooNew.exit_code == 2
