"""Files behind addresses (http, https, s3, …): fetched once by DuckDB's httpfs, then read as local ones.

Fetched, because a file that changes between the passes over it would mix two datasets, and so that line numbers and
messages are those of local files.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

from ragscore.datasets import duck
from ragscore.datasets.spool import Spool
from ragscore.errors import DatasetError

#: Keeps what was fetched until the process ends: paths do not keep a spool alive.
_fetched: list[Spool] = []


def fetched(address: str) -> list[Path]:
    """The files behind an address, or behind a pattern of addresses (s3), in their order.

    Credentials are DuckDB's own (secrets that it remembers, or the environment through its aws extension).

    Raises:
        DatasetError: httpfs is not installed, or the address cannot be read.
    """
    spool = Spool()
    paths: list[Path] = []
    where = shown(address)
    with duck.connected() as connection, duck.explained(where, mend="check the address and that you may read it"):
        connection.execute("LOAD httpfs")
        connection.execute(f"SELECT filename, content FROM read_blob({duck.text(address)})")
        while (row := connection.fetchone()) is not None:
            name = PurePosixPath(re.sub(r"[?#].*", "", str(row[0]))).name or "data"
            path = spool.file(f"{len(paths):06}") / name
            path.parent.mkdir()
            path.write_bytes(row[1])
            paths.append(path)
    if not paths:
        raise DatasetError("matches no file", where=where, mend="check the address")
    _fetched.append(spool)
    return paths


def shown(address: str) -> str:
    """An address without user, password and query, which may hold a key."""
    return re.sub(r"(?<=://)[^/@]*@", "", re.sub(r"[?#].*", "", address))
