"""A private folder for rows that can be read only once, or not in place; it goes when nobody reads it any more."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from pathlib import Path


class Spool:
    """A temporary folder that lives as long as this object."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="ragscore-dataset-"))
        self._finaliser = weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)

    def file(self, name: str) -> Path:
        """A path in the folder."""
        return self.folder / name
