"""Inboxes on shared storage: any address that fsspec reaches (s3://, gs://, az://, sftp://, file://, …)."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ragscore.errors import HistoryError, UsageError
from ragscore.history.inbox import ENDING
from ragscore.history.store import History, Ingested


def is_address(place: str) -> bool:
    """Whether `place` is an address rather than a path."""
    return "://" in place


def ingest_from(history: History, address: str) -> Ingested:
    """Take in the batches at `address`, and remove there what was taken in.

    Raises:
        UsageError: The address cannot be understood, the package for it is not installed, or a file is no batch.
        HistoryError: The storage does not let us read.
    """
    files, folder = _open(address)
    with _explained(address), tempfile.TemporaryDirectory(prefix="ragscore-") as local:
        found = sorted(files.glob(f"{folder}/*{ENDING}"))
        for remote in found:
            files.get_file(remote, str(Path(local) / remote.rsplit("/", 1)[-1]))
        ingested = history.ingest(Path(local))
        for remote in found:
            with contextlib.suppress(FileNotFoundError):
                files.rm_file(remote)
    return ingested


def leave_at(file: Path, address: str) -> str:
    """Move a batch to `address`, where it appears under its name when it is whole; gives its address."""
    files, folder = _open(address)
    with _explained(address):
        files.makedirs(folder, exist_ok=True)
        files.put_file(str(file), f"{folder}/.{file.name}.new")
        files.mv(f"{folder}/.{file.name}.new", f"{folder}/{file.name}")
    file.unlink()
    return f"{address.rstrip('/')}/{file.name}"


def _open(address: str) -> tuple[Any, str]:
    import fsspec.core

    try:
        files, folder = fsspec.core.url_to_fs(address)
    except (ValueError, ImportError) as error:
        raise UsageError(f"cannot be reached: {error}", where=address, mend="name a path, or install it") from error
    return files, folder.rstrip("/")


@contextlib.contextmanager
def _explained(address: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise HistoryError(f"the storage answers: {error}", where=address) from error
