"""Arrow files, as Hugging Face datasets lie on disk; spooled as JSONL.

Read with nanoarrow, a small package of the Arrow project: DuckDB reads Arrow only with an extension that has to be
downloaded, and pyarrow is forty times as large.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ragscore.datasets.jsonl import JsonLines
from ragscore.datasets.spool import Spool
from ragscore.datasets.tables import plain
from ragscore.errors import DatasetError

#: An Arrow *file* is a stream after this, with a footer behind it.
FILE_MAGIC = b"ARROW1\0\0"


def arrow_source(paths: list[Path], name: str) -> JsonLines:
    """The rows of Arrow files (streams or files, not compressed).

    Raises:
        DatasetError: nanoarrow is not installed, or a file cannot be read.
    """
    spool = Spool()
    files = []
    for number, path in enumerate(paths):
        spooled = spool.file(f"{number}.jsonl")
        with spooled.open("w", encoding="utf-8") as file:
            for row in _rows(path):
                file.write(json.dumps(plain(row), default=str) + "\n")
        files.append(spooled)
    return JsonLines(files, name, shown=[str(path) for path in paths], unit="row", spool=spool)


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    try:
        import nanoarrow  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        mend = "install nanoarrow, or write the dataset as Parquet: dataset.to_parquet(…)"
        raise DatasetError("Arrow files need the package nanoarrow", where=str(path), mend=mend) from None
    try:
        with path.open("rb") as file:
            if file.read(len(FILE_MAGIC)) != FILE_MAGIC:
                file.seek(0)
            for batch in nanoarrow.ArrayStream.from_readable(file):
                yield from batch.iter_py()
    except FileNotFoundError:
        raise DatasetError("no such file", where=str(path), mend="check `dataset.path` in the suite") from None
    except (OSError, RuntimeError, ValueError, NotImplementedError, KeyError) as error:
        said = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        mend = "write the dataset as Parquet: dataset.to_parquet(…)"
        raise DatasetError(f"cannot be read as Arrow: {said}", where=str(path), mend=mend) from None
