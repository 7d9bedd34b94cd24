"""Where judgements are remembered: one SQLite file that many processes and threads share.

The file may be deleted at any time: that costs money, not results. For the same reason nothing that befalls it stops
a run: a damaged file is moved aside, and where no file can be kept judging goes on without memory. Either is said once,
as a logged warning and in `JudgementStore.notes`.

Every write is one transaction, committed before the call returns. In WAL mode with `synchronous=NORMAL` a commit is in
the operating system's hands: a `kill -9` at any moment loses none. A power cut may lose the last ones, but damages
nothing; waiting for the disk at each judgement would take ten times as long, to save a few calls in a rare case.

Calls are short (well under a millisecond) and are made from the event loop itself. WAL needs shared memory between the
processes, so the file must be on a local disk, not on a network share.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from filelock import FileLock

#: Version of the tables, kept in `PRAGMA user_version`.
VERSION = 1
#: Seconds to wait for a process that is creating or mending the file.
OPEN_TIMEOUT_S = 30.0

_TABLES = (
    """CREATE TABLE IF NOT EXISTS judgements (
        key TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL,
        judge TEXT NOT NULL, task TEXT NOT NULL, created_at REAL NOT NULL)""",
    "CREATE TABLE IF NOT EXISTS learnt (key TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL)",
)
_KEYS_PER_QUERY = 500  # SQLite before 3.32 takes at most 999 variables
_ROWS_PER_STATEMENT = 100

_log = logging.getLogger(__name__)
_log.addHandler(logging.NullHandler())  # where no logging is set up, `notes` say it, and standard error not again
_T = TypeVar("_T")
_U = TypeVar("_U")
_Row = tuple[str, str, str, str, float]


class JudgementStore:
    """Judgements and learnt facts by key; values are JSON objects.

    Open it once per process and share it between threads; close it, or use it as a context manager.

    Args:
        path: The file, made with its folder when it is not there; `judgements.sqlite` in RAGSCORE_HOME.
        busy_timeout_s: Seconds that one call waits for another process that is writing. (A write takes about a
            millisecond; only a process that was stopped in the middle of one is waited for longer.)
    """

    def __init__(self, path: Path, *, busy_timeout_s: float = 5.0) -> None:
        self.path = path
        self._busy_timeout_s = busy_timeout_s
        self._guard = threading.RLock()
        self._notes: list[str] = []
        self._unwritten: dict[str, _Row] = {}
        self._opened_file: tuple[int, int] | None = None
        self._connection = self._open()

    @property
    def notes(self) -> tuple[str, ...]:
        """What went wrong with the file, one line each, every kind once; empty when all is well."""
        return tuple(self._notes)

    @property
    def remembers(self) -> bool:
        """Whether there is a file to remember in."""
        return self._connection is not None

    def get_many(self, keys: Sequence[str]) -> dict[str, dict[str, Any]]:
        """The values of those `keys` that are known."""

        def read(connection: sqlite3.Connection) -> dict[str, dict[str, Any]]:
            return _values(connection, keys)

        with self._guard:
            unwritten = {key: json.loads(self._unwritten[key][1]) for key in keys if key in self._unwritten}
            found = self._do(read, otherwise=None)
            return {**(found or {}), **unwritten}

    def put_many(self, values: Mapping[str, Mapping[str, Any]], *, judge: str, task: str) -> dict[str, dict[str, Any]]:
        """Remember `values`, at once and for good; the first value of a key wins.

        Args:
            values: By key.
            judge: Name of the judge, for people who look into the file.
            task: Name of the task, for the same.

        Returns:
            The value that stands for each key, `values`' own or one that another process had put before: everybody
            uses what stands, so that two processes that judge the same thing end with the same scores.
        """
        now = time.time()
        rows = {key: (key, json.dumps(value), judge, task, now) for key, value in values.items()}

        def write(connection: sqlite3.Connection) -> dict[str, dict[str, Any]]:
            pending = {**rows, **self._unwritten}
            if _insert(connection, pending) == len(pending) and rows.keys().isdisjoint(self._unwritten):
                standing = {}  # all new, so that ours stand
            else:
                standing = _values(connection, list(rows))
            self._unwritten.clear()
            return standing

        if not rows:
            return {}
        with self._guard:
            standing = self._do(write, otherwise=None)
            if standing is None and self.remembers:  # busy or full for now: the next write takes these along
                rows |= {key: self._unwritten[key] for key in rows if key in self._unwritten}
                self._unwritten |= rows
        return {key: json.loads(row[1]) for key, row in rows.items()} | (standing or {})

    def get(self, key: str) -> dict[str, Any] | None:
        """What was learnt under `key` (about a model at an address), or None."""

        def read(connection: sqlite3.Connection) -> dict[str, Any] | None:
            row = connection.execute("SELECT value FROM learnt WHERE key = ?", (key,)).fetchone()
            return _object(row[0]) if row else None

        return self._do(read, otherwise=None)

    def put(self, key: str, value: dict[str, Any]) -> None:
        """Remember what was learnt; here the last one wins."""

        def write(connection: sqlite3.Connection) -> None:
            with _transaction(connection):
                connection.execute("INSERT OR REPLACE INTO learnt VALUES (?, ?)", (key, json.dumps(value)))

        self._do(write, otherwise=None)

    def count(self) -> int:
        """How many judgements are remembered."""
        return self._do(lambda c: int(c.execute("SELECT count(*) FROM judgements").fetchone()[0]), otherwise=0)

    def close(self) -> None:
        """Close the file; the store cannot be used afterwards."""
        with self._guard:
            if self._unwritten:
                self._do(lambda connection: _insert(connection, self._unwritten), otherwise=0)
            if self._connection is not None:
                self._connection.close()

    def __enter__(self) -> JudgementStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _do(self, work: Callable[[sqlite3.Connection], _T], *, otherwise: _U) -> _T | _U:
        """Run `work`; on damage with a new file, else, when SQLite cannot, say why and give `otherwise`."""
        with self._guard:
            for _ in range(2):
                if self._connection is None:
                    break
                try:
                    return work(self._connection)
                except sqlite3.ProgrammingError:
                    raise  # a closed store, or a mistake of ours
                except sqlite3.DatabaseError as error:
                    if _is(error, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
                        self._connection.close()
                        self._connection = self._open(damaged=self._opened_file)
                    elif _is(error, sqlite3.SQLITE_READONLY):
                        self._connection.close()
                        self._connection = None
                        self._note(f"{self.path}: cannot be written; judging goes on without memory")
                    else:
                        self._note(f"{self.path}: {error}; what is judged now is remembered when that has passed")
                        break
            return otherwise

    def _open(self, *, damaged: tuple[int, int] | None = None) -> sqlite3.Connection | None:
        # One process at a time: SQLite does not wait while another one turns a new file to WAL, and two processes
        # that find the same damage must not move each other's new file aside.
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(f"{self.path}.lock", timeout=OPEN_TIMEOUT_S, poll_interval=0.01):
                if damaged is not None and _file_of(self.path) == damaged:
                    self._move_aside()
                connection = self._connect()
                self._opened_file = _file_of(self.path)
                return connection
        except _TooNew:
            self._note(f"{self.path}: was written by a later ragscore; judging goes on without memory")
        except (OSError, NotImplementedError, sqlite3.Error) as error:
            why = getattr(error, "strerror", None) or str(error)
            self._note(f"{self.path}: cannot be kept ({why}); judging goes on without memory")
        return None

    def _connect(self) -> sqlite3.Connection:
        for last in (False, True):
            connection = sqlite3.connect(
                self.path, timeout=self._busy_timeout_s, isolation_level=None, check_same_thread=False
            )
            try:
                _make_ready(connection)
                return connection
            except BaseException as error:
                connection.close()
                broken = isinstance(error, sqlite3.DatabaseError) and _is(
                    error, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB
                )
                if last or not broken:
                    raise
                self._move_aside()
        raise AssertionError("unreachable")

    def _move_aside(self) -> None:
        number = 1
        while (aside := self.path.with_name(f"{self.path.name}.damaged-{number}")).exists():
            number += 1
        # The log first: a new file must never find the log of the old one beside it.
        for suffix in ("-wal", "-shm", ""):
            with contextlib.suppress(FileNotFoundError):
                os.replace(f"{self.path}{suffix}", f"{aside}{suffix}")
        self._note(f"{self.path}: was damaged and is now {aside.name}; what it remembered will be judged again")

    def _note(self, text: str) -> None:
        if text not in self._notes:
            self._notes.append(text)
            _log.warning("%s", text)


class _TooNew(Exception):
    pass


def _make_ready(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > VERSION:
        raise _TooNew
    if version < VERSION:
        with _transaction(connection):
            for table in _TABLES:
                connection.execute(table)
            connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.execute("SELECT key FROM judgements LIMIT 1").fetchone()
    connection.execute("SELECT key FROM learnt LIMIT 1").fetchone()


@contextlib.contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _insert(connection: sqlite3.Connection, rows: Mapping[str, _Row]) -> int:
    """Insert those rows whose keys are new, and say how many they were."""
    if len(rows) <= _ROWS_PER_STATEMENT:  # one statement is a transaction of its own, and a third of the work
        places = ",".join(["(?, ?, ?, ?, ?)"] * len(rows))
        values = [value for row in rows.values() for value in row]
        return connection.execute(f"INSERT OR IGNORE INTO judgements VALUES {places}", values).rowcount
    with _transaction(connection):
        return connection.executemany("INSERT OR IGNORE INTO judgements VALUES (?, ?, ?, ?, ?)", rows.values()).rowcount


def _values(connection: sqlite3.Connection, keys: Sequence[str]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    unreadable: list[tuple[str]] = []
    for start in range(0, len(keys), _KEYS_PER_QUERY):
        some = keys[start : start + _KEYS_PER_QUERY]
        marks = ",".join("?" * len(some))
        for key, text in connection.execute(f"SELECT key, value FROM judgements WHERE key IN ({marks})", some):
            if (value := _object(text)) is None:
                unreadable.append((key,))
            else:
                found[key] = value
    if unreadable:  # left there, they would win over every new value
        connection.executemany("DELETE FROM judgements WHERE key = ?", unreadable)
    return found


def _object(text: Any) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (TypeError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def _is(error: sqlite3.Error, *codes: int) -> bool:
    code = getattr(error, "sqlite_errorcode", None)  # extended codes keep the primary one in the low byte
    return code is not None and code & 0xFF in codes


def _file_of(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino
