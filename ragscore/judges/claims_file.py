"""The claims of each reference, in a file beside the dataset, like a lock file beside a project.

One line of JSON per reference, meant to be committed and reviewed:

    {"input": "When …?", "reference": "The first 80 characters …", "claims": ["…", "…"],
     "hash": "…", "judge": "openai/gpt-5-mini", "prompt": "…", "check": "…"}

`hash` says which reference (read as the answer to its input) the claims belong to; `input` and `reference` are there
for reviewers only. `check` is the hash of the claims as they were extracted: a line whose claims have another hash, or
that has no check, was edited by a person. An edit is kept, counts as another claim set, and is never overwritten
unasked.

Lines are appended under a lock of the operating system, and the first one in wins: of several processes that extract
the claims of one reference, all use what stands in the file. Where a reference stands twice (two branches were merged),
the first line counts. What an append leaves behind when its process is killed (a last line without its end) is no line.
"""

from __future__ import annotations

import codecs
import contextlib
import json
import os
import shutil
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from ragscore.errors import DatasetError
from ragscore.items import Item, digest, normalised
from ragscore.judges.claims import ClaimSet, reference_hash

#: Characters of input and reference that a line shows to reviewers.
SHOWN = 80
#: Seconds to wait for a process that is writing; a write takes about a millisecond.
LOCK_TIMEOUT_S = 60.0
_REMEMBERED_BYTES = 256


def beside(dataset: Path) -> Path:
    """Where the claims of a dataset belong: `support.jsonl` → `support.claims.jsonl` in the same folder."""
    return dataset.with_name(f"{dataset.stem}.claims.jsonl")


def place(dataset: Path, home: Path) -> Path:
    """Where the claims of a dataset can be written: beside it, else in `home` (RAGSCORE_HOME).

    Claims that stand beside the dataset are read in either case (`FrozenClaims(…, committed=beside(dataset))`).
    """
    path = beside(dataset)
    writable = os.access(path.parent, os.W_OK | os.X_OK) and (not path.exists() or os.access(path, os.W_OK))
    return path if writable else home / "claims" / f"{digest(str(dataset.resolve()))}.claims.jsonl"


@dataclass(frozen=True, slots=True)
class FrozenEntry:
    """One line of the file: the claims of the reference with that `hash`.

    `judge` and `prompt` (its version) say who extracted them, and are empty when a person wrote the line.
    """

    hash: str
    claims: tuple[str, ...]
    judge: str = ""
    prompt: str = ""
    check: str = ""
    input: str = ""
    reference: str = ""

    @classmethod
    def of(cls, item: Item, claims: Sequence[str], *, judge: str, prompt: str) -> FrozenEntry:
        """The line for an item whose claims a judge has just extracted."""
        return cls(
            hash=reference_hash(item),
            claims=tuple(claims),
            judge=judge,
            prompt=prompt,
            check=digest(list(claims)),
            input=_shown(item.input),
            reference=_shown(item.reference or ""),
        )

    @property
    def edited(self) -> bool:
        """Whether a person changed the claims, or wrote them."""
        return self.check != digest(list(self.claims))

    @property
    def claim_set(self) -> ClaimSet:
        """The claims as scorers take them; `origin` is `frozen` or `edited`."""
        return ClaimSet(self.claims, "edited" if self.edited else "frozen")


@dataclass(frozen=True, slots=True)
class ClaimsDiff:
    """How claims extracted now differ from the frozen ones of the same reference (None: there are none yet)."""

    hash: str
    entry: FrozenEntry | None
    added: tuple[str, ...]
    removed: tuple[str, ...]


class ClaimsFile:
    """The file itself, shared by threads and processes. A line once read or written stays as it was for this object.

    Args:
        path: The file; it need not be there yet.

    Raises:
        DatasetError: a line cannot be understood (edited, or merged badly), or the file cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._guard = threading.Lock()
        self._lock = FileLock(path.with_name(f".{path.name}.lock"), poll_interval=0.01)
        self._entries: dict[str, FrozenEntry] = {}
        self._read_to = 0  # always the start of a line
        self._lines = 0
        self._before = b""  # the last bytes before `_read_to`, to see whether the file is still the one that was read
        self.read()

    def entries(self) -> tuple[FrozenEntry, ...]:
        """All lines, in the order of the file."""
        return tuple(self._entries.values())

    def get(self, hash: str) -> FrozenEntry | None:
        """The line of one reference, or None."""
        return self._entries.get(hash)

    def read(self) -> None:
        """Take in what others have appended.

        Raises:
            DatasetError: as for the class.
        """
        with self._guard:
            self._take_in()

    def is_behind(self) -> bool:
        """Whether others have written to the file since it was read; a look at its length, which takes no time."""
        try:
            return self.path.stat().st_size != self._read_to
        except OSError:
            return self._read_to != 0

    def append(self, entry: FrozenEntry) -> FrozenEntry:
        """Add a line unless the reference has one; the line that stands is returned, and is what everybody uses.

        Raises:
            DatasetError: the file cannot be written, or a line of it cannot be understood.
        """
        with self._guard, self._locked():
            return self._append(entry)

    def append_now(self, entry: FrozenEntry) -> FrozenEntry | None:
        """As `append`, without waiting: None, and nothing is written, while somebody else is at the file."""
        if not self._guard.acquire(blocking=False):
            return None
        try:
            with self._locked(wait=False):
                return self._append(entry)
        except Timeout:
            return None
        finally:
            self._guard.release()

    def refresh(
        self, item: Item, claims: Sequence[str], *, judge: str, prompt: str, force: bool = False
    ) -> FrozenEntry:
        """Put newly extracted claims in the place of the frozen ones; all other lines stay as they are, to the byte.

        A line that a person edited is kept unless `force`. The file is replaced in one step. The line that stands is
        returned.

        Raises:
            DatasetError: as for `append`.
        """
        entry = FrozenEntry.of(item, claims, judge=judge, prompt=prompt)
        with self._guard, self._locked():
            lines = self.path.read_bytes().split(b"\n") if self.path.exists() else []
            if lines and not _is_whole(lines[-1]):
                lines.pop()  # nothing, or what a killed append left behind
            places: list[int] = []
            for place, line in enumerate(lines):
                standing = _entry_of(line, path=self.path, number=place + 1)
                if standing is not None and standing.hash == entry.hash:
                    if standing.edited and not force and not places:
                        return self._entries.setdefault(entry.hash, standing)
                    places.append(place)
            if places:
                lines[places[0]] = _line_of(entry).rstrip(b"\n")
                lines = [line for place, line in enumerate(lines) if place not in places[1:]]
            else:
                lines.append(_line_of(entry).rstrip(b"\n"))
            _replace(self.path, b"".join(line + b"\n" for line in lines))
            self._entries[entry.hash] = entry
            return entry

    def diff(self, extracted: Mapping[str, Sequence[str]]) -> tuple[ClaimsDiff, ...]:
        """Where claims extracted now, by hash of the reference, say something else than the frozen ones.

        Claims are compared as bags of normalised texts: order and white space make no difference.
        """
        differences = []
        for hash, claims in extracted.items():
            entry = self.get(hash)
            frozen = entry.claims if entry is not None else ()
            added, removed = _beyond(claims, frozen), _beyond(frozen, claims)
            if added or removed or entry is None:
                differences.append(ClaimsDiff(hash, entry, added, removed))
        return tuple(differences)

    def _append(self, entry: FrozenEntry) -> FrozenEntry:
        rest = self._take_in()
        if (standing := self._entries.get(entry.hash)) is not None:
            return standing
        with self.path.open("r+b" if self.path.exists() else "w+b") as file:
            file.seek(self._read_to)
            if _is_whole(rest):  # a line that only lacks its end; else what a killed append left behind
                file.write(rest + b"\n")
            file.write(_line_of(entry))
            file.truncate()
        self._take_in()
        return self._entries[entry.hash]

    def _take_in(self) -> bytes:
        """Read on from where we were, and give what follows the last end of a line."""
        try:
            with self.path.open("rb") as file:
                file.seek(self._read_to - len(self._before))
                if file.read(len(self._before)) != self._before:  # an editor, git or `refresh` wrote it anew
                    self._read_to, self._lines, self._before = 0, 0, b""
                    file.seek(0)
                *lines, rest = file.read().split(b"\n")
        except FileNotFoundError:
            self._read_to, self._lines, self._before = 0, 0, b""
            return b""
        except OSError as error:
            raise DatasetError(
                f"cannot be read: {error.strerror}", where=str(self.path), mend="check its rights"
            ) from None
        for number, line in enumerate([*lines, rest] if _is_whole(rest) else lines, start=self._lines + 1):
            if (entry := _entry_of(line, path=self.path, number=number)) is not None:
                self._entries.setdefault(entry.hash, entry)
        read = b"".join(line + b"\n" for line in lines)
        self._read_to += len(read)
        self._lines += len(lines)
        self._before = (self._before + read)[-_REMEMBERED_BYTES:]
        return rest

    @contextlib.contextmanager
    def _locked(self, *, wait: bool = True) -> Iterator[None]:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self._lock.acquire(timeout=LOCK_TIMEOUT_S if wait else 0):
                yield
        except Timeout:
            if not wait:
                raise
            raise DatasetError(
                f"has been locked by another process for {LOCK_TIMEOUT_S:.0f} s",
                where=str(self.path),
                mend="end that process, then run again",
            ) from None
        except (OSError, NotImplementedError) as error:
            what = f"cannot be written: {getattr(error, 'strerror', None) or error}"
            raise DatasetError(what, where=str(self.path), mend="make the file and its folder writable") from None


def _shown(text: str) -> str:
    text = " ".join(text.split())  # as it was written, which NFKC would not leave it
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"


def _line_of(entry: FrozenEntry) -> bytes:
    order = ("input", "reference", "claims", "hash", "judge", "prompt", "check")
    row = {name: getattr(entry, name) for name in order}
    try:
        return f"{json.dumps(row, ensure_ascii=False)}\n".encode()
    except UnicodeEncodeError:  # half a surrogate pair, which UTF-8 cannot say
        return f"{json.dumps(row)}\n".encode()


def _entry_of(line: bytes, *, path: Path, number: int) -> FrozenEntry | None:
    """The entry on a line; None for a blank one."""

    def fault(what: str, mend: str) -> DatasetError:
        return DatasetError(what, where=f"{path}:{number}", mend=mend)

    line = line.removeprefix(codecs.BOM_UTF8).strip()
    if not line:
        return None
    if line.startswith((b"<<<<<<<", b"=======", b">>>>>>>", b"|||||||")):
        raise fault("is the mark of a merge conflict", "remove the marks, and keep one line for each reference")
    again = "mend the line, or remove it: the claims are then extracted again"
    try:
        row = json.loads(line)
    except ValueError as error:  # not JSON, or not UTF-8
        raise fault(f"is not JSON: {error}", again) from None
    if not isinstance(row, dict) or not isinstance(row.get("hash"), str):
        raise fault('is not an object with a "hash"', again)
    claims = row.get("claims")
    if not isinstance(claims, list) or not all(isinstance(claim, str) and claim.strip() for claim in claims):
        raise fault('"claims" is not a list of texts', 'write "claims": ["one fact", "another one"]')
    names = ("judge", "prompt", "check", "input", "reference")
    return FrozenEntry(row["hash"], tuple(claims), **{name: str(row.get(name) or "") for name in names})


def _is_whole(line: bytes) -> bool:
    """Whether a last line without its end is one: an editor may leave it so, a killed append leaves less."""
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def _beyond(claims: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    left = Counter(map(normalised, others))
    beyond = []
    for claim in claims:
        if left[normalised(claim)]:
            left[normalised(claim)] -= 1
        else:
            beyond.append(claim)
    return tuple(beyond)


def _replace(path: Path, content: bytes) -> None:
    """Write a file in one step: a reader sees the old one or the new one, and so does who comes after a power cut."""
    path = path.resolve()  # a link stays a link
    path.touch()  # a new file gets the rights that new files get
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        shutil.copymode(path, temporary)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
