"""What a dataset costs before the first question is asked: the validating pass, and streaming in flat memory.

    python benchmarks/datasets.py [ROWS]

Writes a JSONL file of ROWS rows (1,000,000 by default; 390 MB) to a temporary folder and measures, in one run:

- scan: DuckDB alone reading every column of the file (`read_json` as it comes), the yardstick;
- first batch: `load_dataset`, which checks all rows and finds the hash, and the first 25 items; the ratio to the scan
  is to be 3 at most. Each is the best of several passes, taken in turn, so that what else the machine does concerns
  both;
- all batches: the items streamed to the end, and by how much the process grew meanwhile.
"""

from __future__ import annotations

import json
import random
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb

from ragscore.datasets import Dataset, load_dataset
from ragscore.suite import DatasetPart

BATCH = 25
PASSES = 5
MOST = 3.0
WORDS = [f"word{number}" for number in range(5000)]


def write(path: Path, rows: int) -> None:
    """A file of labelled questions: a question of 10 words, a reference of 20, two ids, an object as metadata."""
    dice = random.Random(1)
    with path.open("w", encoding="utf-8") as file:
        for number in range(rows):
            row = {
                "id": f"q{number}",
                "input": f"What about {' '.join(dice.choices(WORDS, k=8))}, number {number}?",
                "reference": f"{' '.join(dice.choices(WORDS, k=20))}.",
                "reference_context_ids": [f"d{number % 1000}", f"d{number % 77}"],
                "metadata": {"lang": "en", "hops": number % 3},
            }
            file.write(json.dumps(row) + "\n")


def scan(path: Path) -> int:
    """DuckDB alone: all columns of all rows."""
    with duckdb.connect() as connection:
        names = "count(id), count(input), count(reference), count(reference_context_ids), count(metadata)"
        found = connection.execute(f"SELECT {names} FROM read_json('{path}')").fetchone()
    assert found is not None
    return int(found[0])


def first_batch(path: Path) -> Dataset:
    """Everything that happens before the first question is asked."""
    dataset = load_dataset(DatasetPart(path=str(path)), base_dir=path.parent)
    assert len(next(dataset.batches(BATCH))) == BATCH
    assert dataset.hash
    return dataset


def took(call: Callable[[], object]) -> float:
    """Seconds of one call."""
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def mebibytes() -> int:
    """The most that this process has held so far."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most // (1 << 20 if sys.platform == "darwin" else 1 << 10)


def main(rows: int) -> int:
    """Measure, print, and say by the exit code whether the ratio holds."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "questions.jsonl"
        write(path, rows)
        first_batch(path)  # what is imported and what the system caches does not count
        scans, batches = [], []
        for _ in range(PASSES):
            scans.append(took(lambda: scan(path)))
            batches.append(took(lambda: first_batch(path)))
        ratio = min(batches) / min(scans)
        print(f"{rows:,} rows, {path.stat().st_size / 1e6:,.0f} MB")
        print(f"scan          {min(scans):6.2f} s")
        print(f"first batch   {min(batches):6.2f} s   {ratio:.2f} × the scan (at most {MOST:g})")
        print(f"peak so far   {mebibytes():6,} MiB")
        dataset, before = first_batch(path), mebibytes()
        seconds = took(lambda: sum(len(batch) for batch in dataset.batches(BATCH)))
        print(f"all batches   {seconds:6.2f} s   {rows / seconds:,.0f} items/s, grew by {mebibytes() - before} MiB")
    return 0 if ratio <= MOST else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000))
