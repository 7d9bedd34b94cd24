"""Whether histories go between DuckDB 1.5 and 2: what `make check-compat` runs.

    python tests/compat/check.py [FOLDER]

Makes a virtual environment in FOLDER (`.venv-compat`, kept) with the DuckDB that this Python does not have, runs the
tests of the history there, and then lets each of the two read and extend what the other wrote.
"""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

import duckdb

ROOT = Path(__file__).parents[2]
#: What the history and its tests import besides DuckDB.
NEEDED = (
    "pytest>=8.4",
    "pytest-asyncio>=1",
    "pytest-timeout>=2.3",
    "hypothesis>=6.130",
    "pyyaml",
    "cyclopts>=4",
    "rich",
    "fsspec",
)


def main() -> int:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / ".venv-compat"
    other = "duckdb>=1.5.5,<2" if int(duckdb.__version__.split(".")[0]) >= 2 else "duckdb>=2,<3"
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not python.exists():
        venv.create(folder, with_pip=True)
    install = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", other, *NEEDED]
    subprocess.run(install, check=True)
    quiet = ["-m", "pytest", "-q", "-p", "no:cacheprovider"]
    here = {**os.environ, "PYTHONPATH": str(ROOT)}
    codes = [
        subprocess.run([str(python), *quiet, "tests/history"], cwd=ROOT, env=here, check=False).returncode,
        subprocess.run(
            [sys.executable, *quiet, "tests/compat"],
            cwd=ROOT,
            env={**here, "RAGSCORE_OTHER_PYTHON": str(python.absolute())},
            check=False,
        ).returncode,
    ]
    return max(codes)


if __name__ == "__main__":
    sys.exit(main())
