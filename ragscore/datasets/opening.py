"""Opening a file of rows, gzipped or not; whatever keeps it from being read is a sentence."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from ragscore.errors import DatasetError


@contextmanager
def opened(path: Path, shown: str) -> Iterator[IO[bytes]]:
    """The file, decompressed where its name ends with `.gz`.

    Raises:
        DatasetError: it cannot be opened, or reading it within the block fails.
    """
    try:
        with gzip.open(path, "rb") if path.suffix.lower() == ".gz" else path.open("rb") as file:
            yield cast(IO[bytes], file)
    except FileNotFoundError:
        raise DatasetError("no such file", where=shown, mend="check `dataset.path` in the suite") from None
    except IsADirectoryError:
        raise DatasetError("is a directory", where=shown, mend="name a file in it") from None
    except EOFError:
        raise DatasetError("is cut off", where=shown, mend="compress the file again") from None
    except zlib.error:
        raise DatasetError("is damaged", where=shown, mend="compress the file again") from None
    except OSError as error:
        what = f"cannot be read: {error.strerror or error}"
        raise DatasetError(what, where=shown, mend="check the file and its rights") from None
