"""How a Dask cluster is named, found out without importing Prefect or Dask."""

from __future__ import annotations

import importlib.util
import re

from ragscore.errors import UsageError

#: Processes of this machine: one per core, or so many.
LOCAL = re.compile(r"local(?::([1-9][0-9]*))?")


def checked(dask: str) -> str:
    """`dask` as it was given, if it is an address or `local`, and the packages for it are there.

    Raises:
        UsageError: it is not, or they are not.
    """
    if not LOCAL.fullmatch(dask) and not re.fullmatch(r"(?!local:)(?:\w+://)?[^\s/]+:\d+", dask):
        mend = "write local, local:4, or the address of a scheduler like tcp://host:8786"
        raise UsageError(f"{dask!r} is no Dask cluster", where="--dask", mend=mend)
    if importlib.util.find_spec("prefect_dask") is None:
        raise UsageError("the package prefect-dask is not installed", where="--dask", mend="install the extra `dask`")
    return dask
