"""What memory a run takes: items with their contexts, rank metrics, no judge, from the first row to the summary.

    python benchmarks/memory.py [ITEMS]

Runs `ragscore run` on ITEMS precomputed items (100,000 by default; 230 MB) with five contexts each, and on a fifth of
them, each in a process of its own with a history of its own, and prints the most memory that each held. The target is
that of DESIGN §10: 400 MiB, whatever the number; the exit code is 1 where it is missed.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

MOST_MIB = 400
SUITE = """
name: memory-{items}
dataset: items-{items}.jsonl
target: none
contexts: {{item: true}}
scorers: [ndcg_at_k, mrr]
"""
WORDS = [f"word{number}" for number in range(5000)]


def write(folder: Path, items: int) -> Path:
    """A suite and its dataset; the suite's path."""
    dice = random.Random(1)
    with (folder / f"items-{items}.jsonl").open("w", encoding="utf-8") as file:
        for number in range(items):
            ids = [f"d{(number + 7 * place) % 100_000}" for place in range(5)]
            row = {
                "id": f"q{number}",
                "input": f"What about {' '.join(dice.choices(WORDS, k=8))}, number {number}?",
                "reference": " ".join(dice.choices(WORDS, k=20)),
                "reference_context_ids": [dice.choice(ids), "elsewhere"],
                "contexts": [{"id": each, "text": " ".join(dice.choices(WORDS, k=40))} for each in ids],
            }
            file.write(json.dumps(row) + "\n")
    suite = folder / f"suite-{items}.yaml"
    suite.write_text(SUITE.format(items=items), encoding="utf-8")
    return suite


def peak_mib(suite: Path, history: Path) -> int:
    """The most memory (resident, MiB) that `ragscore run` held."""
    command = [sys.executable, "-m", "ragscore", "run", str(suite), "--engine", "local", "--history", str(history)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    most = 0

    def watch() -> None:
        nonlocal most
        status = Path(f"/proc/{process.pid}/status")
        while process.poll() is None:
            for line in status.read_text(encoding="utf-8").splitlines():
                if line.startswith("VmHWM"):
                    most = max(most, int(line.split()[1]) >> 10)
            time.sleep(0.2)

    watching = threading.Thread(target=watch)
    watching.start()
    _, said = process.communicate()
    watching.join()
    if process.returncode != 0:
        raise SystemExit(said)
    return most


def main(items: int) -> int:
    """Measure, print, and say by the exit code whether the target holds."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        peaks = {}
        for count in (items // 5, items):
            began = time.perf_counter()
            peaks[count] = peak_mib(write(folder, count), folder / f"history-{count}.duckdb")
            print(f"{count:>9,} items   at most {peaks[count]:4} MiB   {time.perf_counter() - began:6.0f} s")
        print(f"target: at most {MOST_MIB} MiB")
    return 0 if max(peaks.values()) <= MOST_MIB else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000))
