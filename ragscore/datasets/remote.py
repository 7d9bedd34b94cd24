"""Files behind addresses: fetched once, then read as local ones. http(s) by httpx, s3 by boto3, others by fsspec.

Fetched, because a file that changes between the passes over it would mix two datasets, and so that line numbers and
messages are those of local files. Not by DuckDB's httpfs: it has to be downloaded for each version of DuckDB, and
holds whole files in memory.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote

from ragscore.addresses import without_secrets
from ragscore.datasets.spool import Spool
from ragscore.errors import DatasetError, RagscoreError

#: Seconds that a server may be silent.
TIMEOUT_S = 60.0
#: What a gzipped file begins with.
GZIP = b"\x1f\x8b"
MEND = "check the address and that you may read it"

#: Keeps what was fetched until the process ends: paths do not keep a spool alive.
_spools: list[Spool] = []
#: Of each fetched file its address, as it is shown.
_addresses: dict[Path, str] = {}


def fetched(address: str) -> list[Path]:
    """The files behind an address, or behind a pattern of addresses (not http), in the order of their names.

    Credentials, proxies and certificates are those of the environment, as httpx, boto3 (`AWS_…`, `~/.aws`) and fsspec
    find them; s3 without any is asked as anybody.

    Raises:
        DatasetError: the address cannot be read, matches nothing, or the package that reads it is not installed.
    """
    spool = Spool()
    scheme = address.split("://", 1)[0].lower()
    by_scheme = {"http": _over_http, "https": _over_http, "s3": _from_s3, "s3a": _from_s3, "s3n": _from_s3}
    where = without_secrets(address)
    try:
        paths = by_scheme.get(scheme, _by_fsspec)(address, spool)
    except RagscoreError:
        raise
    except Exception as error:  # noqa: BLE001 - clients of stores, and what they are made of, raise what they like
        said = " ".join(str(error).replace(address, where).split()) or type(error).__name__
        raise DatasetError(f"cannot be fetched: {said}", where=where, mend=MEND) from None
    if not paths:
        raise DatasetError("matches no file", where=where, mend="check the address")
    _spools.append(spool)
    return [_named_by_content(path) for path in paths]


def address_of(path: Path) -> str | None:
    """The address that a file was fetched from, without secrets; None for any other file."""
    return _addresses.get(path)


def _place(spool: Spool, address: str) -> Path:
    """Where the file at `address` goes: under its own name, which says its kind."""
    shown = without_secrets(address)
    name = PurePosixPath(unquote(shown)).name if "/" in shown.partition("://")[2] else ""
    path = spool.file(f"{len(list(spool.folder.iterdir())):06}") / (name or "data")
    path.parent.mkdir()
    _addresses[path] = shown
    return path


def _named_by_content(path: Path) -> Path:
    """The file under a name that ends with `.gz` if, and only if, it is gzipped.

    `Content-Encoding: gzip` says either of what is sent or of what is stored: a server may unpack a file that is called
    `.gz`, and a store may keep one packed that is not called so.
    """
    with path.open("rb") as file:
        is_packed = file.read(len(GZIP)) == GZIP
    if is_packed == (path.suffix.lower() == ".gz"):
        return path
    named = path.with_name(f"{path.name}.gz") if is_packed else path.with_suffix("")
    _addresses[named] = _addresses.pop(path)
    return path.rename(named)


def _over_http(address: str, spool: Spool) -> list[Path]:
    import httpx

    path = _place(spool, address)
    try:
        with (
            httpx.stream("GET", address, follow_redirects=True, timeout=TIMEOUT_S) as answer,
            path.open("wb") as file,
        ):
            if answer.is_error:
                said = f"the server answers {answer.status_code} {answer.reason_phrase}".rstrip()
                raise DatasetError(said, where=without_secrets(address), mend=MEND)
            for piece in answer.iter_bytes():
                file.write(piece)
    except httpx.InvalidURL:  # it says with which part of it, which may be one of a password
        mend = "write `@`, `/`, `?` and `#` in a user or password as %40, %2F, %3F and %23"
        raise DatasetError("is no address", where=without_secrets(address), mend=mend) from None
    return [path]


def _from_s3(address: str, spool: Spool) -> list[Path]:
    import boto3
    from botocore import UNSIGNED
    from botocore.config import Config

    bucket, _, key = address.split("://", 1)[1].partition("/")
    session = boto3.Session()
    settings = {} if session.get_credentials() else {"config": Config(signature_version=UNSIGNED)}
    client = session.client("s3", **settings)
    paths = []
    for found in _keys(client, bucket, key):
        paths.append(_place(spool, f"s3://{bucket}/{found}"))
        client.download_file(bucket, found, str(paths[-1]))
    return paths


def _keys(client: Any, bucket: str, pattern: str) -> Iterator[str]:
    """The keys that a pattern names, in their order; one without magic names itself."""
    import fsspec.utils

    if not glob.has_magic(pattern):
        yield pattern
        return
    fits = re.compile(fsspec.utils.glob_translate(pattern))
    prefix = re.split(r"[*?[]", pattern, maxsplit=1)[0]
    for page in client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
        for found in page.get("Contents", ()):
            if fits.fullmatch(found["Key"]):
                yield found["Key"]


def _by_fsspec(address: str, spool: Spool) -> list[Path]:
    import fsspec.core

    try:
        files, pattern = fsspec.core.url_to_fs(address)
    except (ValueError, ImportError) as error:
        mend = "install that package beside ragscore, or copy the data here"
        raise DatasetError(f"cannot be reached: {error}", where=without_secrets(address), mend=mend) from None
    found = sorted(files.glob(pattern)) if glob.has_magic(pattern) else [pattern]
    paths = []
    for each in found:
        paths.append(_place(spool, files.unstrip_protocol(each)))
        files.get_file(each, str(paths[-1]))
    return paths
