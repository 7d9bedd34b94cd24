"""Brief opens of the history file: wait for whoever holds it, say clearly what is wrong with it, damage nothing.

DuckDB lets one process write to a file, or several read it. So nobody keeps the file open: every read and every
write opens it, does one transaction and closes it (about 10 ms), and waits its turn when somebody else is at it.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import secrets
import threading
import time
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from ragscore.errors import HistoryError, HistoryLocked, HistoryTooNew, HistoryUnreadable, UsageError
from ragscore.history import schema

if TYPE_CHECKING:
    import duckdb

#: How long a history that others hold is waited for, in seconds.
LOCK_TIMEOUT_S = 60.0
#: Any DuckDB from this version on opens what we write.
STORAGE_VERSION = "v1.5.0"

#: No file may make DuckDB fetch an extension: ragscore opens no connection that nobody asked for.
_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
}
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.01, 0.25
_MAGIC_AT, _MAGIC = 8, b"DUCK"

# What DuckDB says when somebody else is at the file: another process (POSIX, Windows), or other code in this one.
_LOCKED = ("Could not set lock on file", "because it is being used by another process", "different configuration than")
# What it says of a file that is cut short or overwritten.
_DAMAGED = ("Corrupt", "Could not read enough bytes", "not a valid DuckDB database", "checksum")

# What it says when the disk, a quota or a limit of the process is used up; at a commit not as an IOException.
_NO_ROOM = ("No space left", "File too large", "quota exceeded", "Could not write file")

#: The file that `one_state` of this thread or task holds open, and its connection.
_held: ContextVar[tuple[Path, duckdb.DuckDBPyConnection] | None] = ContextVar("held", default=None)
_guard = threading.Lock()
_turns: dict[Path, threading.Lock] = {}


@contextlib.contextmanager
def reading(path: Path, *, lock_timeout_s: float = LOCK_TIMEOUT_S) -> Iterator[duckdb.DuckDBPyConnection]:
    """A read-only connection to the history at `path`, closed at the end of the block.

    A history of an older schema is migrated first. Do not open the same file again within the block (`one_state` may).

    Raises:
        UsageError: There is no history at `path`.
        HistoryLocked: It was held by others for all of `lock_timeout_s` seconds.
        HistoryTooNew: A later ragscore or DuckDB wrote it.
        HistoryUnreadable: It is damaged, not a history, or may not be read.
    """
    held = _held.get()
    if held is not None and held[0] == path.resolve():
        yield held[1]
        return
    if not _present(path):
        raise UsageError(
            "there is no history here yet", where=str(path), mend="make a run first, or name the file with --history"
        )
    with _opened(path, read_only=True, lock_timeout_s=lock_timeout_s) as connection:
        if schema.number_of(connection, path) == schema.newest():
            yield connection
            return
    with writing(path, lock_timeout_s=lock_timeout_s):
        pass  # brings the schema up to date
    with _opened(path, read_only=True, lock_timeout_s=lock_timeout_s) as connection:
        yield connection


@contextlib.contextmanager
def one_state(path: Path, *, lock_timeout_s: float = LOCK_TIMEOUT_S) -> Iterator[None]:
    """Within the block every `reading` of `path` sees the same state, whoever writes meanwhile: they wait.

    For what is read at several places and belongs together. Keep it short, and write nothing within it. Errors as for
    `reading`.
    """
    with reading(path, lock_timeout_s=lock_timeout_s) as connection:
        token = _held.set((path.resolve(), connection))
        try:
            yield
        finally:
            _held.reset(token)


@contextlib.contextmanager
def writing(path: Path, *, lock_timeout_s: float = LOCK_TIMEOUT_S) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection inside one transaction: committed at the end of the block, rolled back when it raises.

    Makes the file, with its folder, when it is not there, and brings an older schema up to date.

    Raises:
        HistoryLocked: It was held by others for all of `lock_timeout_s` seconds.
        HistoryTooNew: A later ragscore or DuckDB wrote it; nothing was changed.
        HistoryUnreadable: It is damaged, not a history, or may not be written; nothing was changed.
    """
    if not _present(path):
        _create(path)
    with _opened(path, read_only=False, lock_timeout_s=lock_timeout_s) as connection:
        schema.bring_up_to_date(connection, path)
        connection.execute("SET threads = 1")  # a checkpoint takes a buffer per thread, and rows come in few at a time
        connection.begin()
        try:
            yield connection
        except BaseException:
            _roll_back(connection)
            raise
        connection.commit()


@contextlib.contextmanager
def opened(path: Path, *, lock_timeout_s: float = LOCK_TIMEOUT_S) -> Iterator[duckdb.DuckDBPyConnection]:
    """A read-only connection to the history at `path` as it is, of whatever schema. Errors as for `reading`."""
    with _opened(path, read_only=True, lock_timeout_s=lock_timeout_s) as connection:
        yield connection


@contextlib.contextmanager
def _opened(path: Path, *, read_only: bool, lock_timeout_s: float) -> Iterator[duckdb.DuckDBPyConnection]:
    import duckdb

    deadline = time.monotonic() + lock_timeout_s
    with _turn(path, lock_timeout_s):
        connection, is_settled = _connect(path, read_only=read_only, deadline=deadline, lock_timeout_s=lock_timeout_s)
        try:
            if is_settled:
                _check_length(connection, path)
            connection.execute("SET TimeZone = 'UTC'")
            yield connection
        except duckdb.Error as error:
            _raise_explained(error, path)
        finally:
            _close(connection, path)


def _connect(
    path: Path, *, read_only: bool, deadline: float, lock_timeout_s: float
) -> tuple[duckdb.DuckDBPyConnection, bool]:
    """A connection, and whether no change was waiting in the write-ahead log of somebody who died."""
    import duckdb

    wait = _FIRST_WAIT_S
    while True:
        is_settled = not path.with_name(path.name + ".wal").exists()
        try:
            return duckdb.connect(path, read_only=read_only, config=dict(_CONFIG)), is_settled
        except duckdb.Error as error:
            message = str(error)
            if not any(sign in message for sign in _LOCKED):
                _check_header(path)
                raise _explained(error, path) or HistoryUnreadable(first_line(error), where=str(path)) from error
            if time.monotonic() >= deadline:
                raise HistoryLocked(
                    f"the history was held by {_holder(message)} for more than {lock_timeout_s:g} s",
                    where=str(path),
                    mend="close what holds it (a notebook, a database browser), or try again later",
                ) from error
        # Jitter, so that those who wait do not come back all at once.
        pause = wait * random.uniform(0.5, 1.5)
        time.sleep(max(0.0, min(pause, deadline - time.monotonic())))
        wait = min(wait * 1.5, _LONGEST_WAIT_S)


@contextlib.contextmanager
def _turn(path: Path, lock_timeout_s: float) -> Iterator[None]:
    # Within one process DuckDB does not wait but refuses a second connection of another kind to the same file.
    with _guard:
        lock = _turns.setdefault(path.resolve(), threading.Lock())
    if not lock.acquire(timeout=lock_timeout_s):
        raise HistoryLocked(
            f"the history was held by this process (PID {os.getpid()}) for more than {lock_timeout_s:g} s",
            where=str(path),
            mend="try again later",
        )
    try:
        yield
    finally:
        lock.release()


def _present(path: Path) -> bool:
    try:
        path.stat()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise HistoryUnreadable(f"cannot be reached: {error.strerror}", where=str(path)) from error
    return True


def _create(path: Path) -> None:
    """Make an empty history beside `path` and put it there in one step.

    So nobody ever meets half a file, and of several who make it at once the first wins and the others use his.
    """
    import duckdb

    new = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        new.touch()  # says plainly when that is not allowed
        new.unlink()
        connection = duckdb.connect(new, config=_CONFIG | {"storage_compatibility_version": STORAGE_VERSION})
        try:
            connection.execute("SET TimeZone = 'UTC'")
            schema.bring_up_to_date(connection, path)
        finally:
            connection.close()
        try:
            os.link(new, path)
        except FileExistsError:
            pass
        except OSError:  # a file system without links
            with contextlib.suppress(FileExistsError), path.open("xb") as file:
                file.write(new.read_bytes())
    except duckdb.Error as error:
        _raise_explained(error, path)
    except OSError as error:
        raise HistoryUnreadable(
            f"cannot be made here: {error.strerror}", where=str(path), mend="name another place with --history"
        ) from error
    finally:
        with contextlib.suppress(OSError):
            new.unlink()


def _check_length(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    """Refuse a file that is shorter than the blocks in use, of which DuckDB says nothing until it needs a lost one.

    Not by the count of all blocks: those at the end that are free need not be in the file. And not while changes wait
    in the write-ahead log: their blocks may not be in the file yet.
    """
    found = connection.execute(
        "SELECT block_size * used_blocks FROM pragma_database_size() WHERE database_name = current_database()"
    ).fetchone()
    length = path.stat().st_size
    if found is not None and length < found[0]:
        raise HistoryUnreadable(
            f"is damaged: it was cut short, to {length} bytes",
            where=str(path),
            mend="restore it from a copy, or move it away to begin anew",
        )


def _check_header(path: Path) -> None:
    # Only where DuckDB failed to open it: closing a file takes away the locks that this process holds on it (POSIX).
    try:
        with path.open("rb") as file:
            head = file.read(_MAGIC_AT + len(_MAGIC))
    except OSError as error:
        raise HistoryUnreadable(f"cannot be read: {error.strerror}", where=str(path)) from error
    if head[_MAGIC_AT:] != _MAGIC:
        what = "is not a DuckDB file" if head else "is empty, not a history"
        raise HistoryUnreadable(what, where=str(path), mend="name another file with --history, or move this one away")


def _explained(error: Exception, path: Path) -> HistoryError | None:
    """What a failure of DuckDB means to the user; None when it is a fault of ours, to be seen with its traceback."""
    import duckdb

    message, line = str(error), first_line(error)
    if "version number" in message and "Trying to read a database file" in message:
        return HistoryTooNew(
            "was written by a later DuckDB", where=str(path), mend=f"upgrade duckdb (here {duckdb.__version__})"
        )
    if damaged(error):
        return HistoryUnreadable(
            f"is damaged: {line}", where=str(path), mend="restore it from a copy, or move it away to begin anew"
        )
    if any(sign in message for sign in _NO_ROOM) or isinstance(error, duckdb.OutOfMemoryException):
        return HistoryError(f"could not be written: {line}", where=str(path), mend="make room, then resume the run")
    if isinstance(
        error, duckdb.IOException | duckdb.FatalException | duckdb.InternalException | duckdb.PermissionException
    ):
        return HistoryUnreadable(f"cannot be used: {line}", where=str(path))
    return None


def _raise_explained(error: Exception, path: Path) -> NoReturn:
    explained = _explained(error, path)
    if explained is None:
        raise error
    raise explained from error


def damaged(error: Exception) -> bool:
    """Whether DuckDB says that the file itself is broken."""
    return any(sign in str(error) for sign in _DAMAGED)


def first_line(error: Exception) -> str:
    """What DuckDB says, without the excerpts, hints and addresses that it adds."""
    line = str(error).strip().split("\n", 1)[0]
    return re.sub(r"\. See also https?://\S+$", "", line)


def _holder(message: str) -> str:
    found = re.search(r"held in (.+?) \(PID (\d+)\)", message)
    if found:
        return f"process {found[2]} ({Path(found[1]).name})"
    return "another connection of this process" if _LOCKED[2] in message else "another process"


def _roll_back(connection: duckdb.DuckDBPyConnection) -> None:
    import duckdb

    with contextlib.suppress(duckdb.Error):  # a fatal error has ended the transaction already
        connection.rollback()


def _close(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    import duckdb

    try:
        connection.close()
    except duckdb.Error as error:  # what was committed is in the write-ahead log
        _raise_explained(error, path)
