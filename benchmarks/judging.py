"""What judging with a model costs: calls, prompt tokens, wall time, and CPU of our own, against a local server.

    python benchmarks/judging.py [--items 60] [--latency-ms 800] [--rounds 5] [--profile]

The server is the one of the tests, in a process of its own, with a fixed latency. Items have five contexts of 500
characters and a reference of four sentences. Tokens are characters ÷ 4, by the server's count of what it was sent.
The targets are those of DESIGN §10; the exit code is 1 where one is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import cProfile
import pstats
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from ragscore.assembly import Parts, assemble
from ragscore.engine import evaluate_locally
from ragscore.history import History
from ragscore.items import ContextSet, Status
from ragscore.judges.llm.client import _litellm
from ragscore.runs import Run, begin
from ragscore.scorers import Sample, Scorer
from ragscore.suite_file import read_suite
from tests.judges.judged_suites import JudgedSuite
from tests.llm_server.running import RunningServer, running
from tests.workspace import make_workspace

CONCURRENCY = 16
CONTEXT_CHARS = 500
#: Contexts come with the dataset: what a target takes is its own affair.
TARGET = {"retriever": "none", "version": "v1", "none": True}
TOKENS_TARGET, WALL_TARGET, CPU_TARGET = 1900, 1.10, 1.30


def rows(count: int, *, swapped: bool = False) -> list[dict[str, Any]]:
    """Items of the size that the targets speak of; `swapped`: the last context is another one."""
    made = []
    for n in range(count):
        facts = [
            f"The lighthouse of Port {n} was lit in {1700 + n} after a storm of three nights.",
            f"Its keeper {n} sold lamps and rope to every ship that came into the harbour.",
            f"The tower has {40 + n} steps of granite and a gallery of iron.",
            f"In {1800 + n} the lamp was turned to gas, and the light was seen from the islands.",
        ]
        texts = [*facts[:3], f"Herrings were salted in barrels beside quay {n}.", f"Fog lay over hill {n} all winter."]
        if swapped:
            texts[4] = f"Sails were sewn for boat {n} through the spring."
        filler = f" Nothing else is told of season {n} in that old book of voyages and tides."
        contexts = [(text + filler * 9)[:CONTEXT_CHARS] for text in texts]
        asked = f"What is known of the lighthouse of Port {n}?"
        made.append({"id": f"i{n:04}", "input": asked, "reference": " ".join(facts), "contexts": contexts})
    return made


@contextmanager
def a_suite(server: RunningServer, items: int) -> Iterator[JudgedSuite]:
    """A user's folder with a suite of that many items."""
    with tempfile.TemporaryDirectory() as folder:
        price = {"input_per_million": 1, "output_per_million": 1}
        suite = JudgedSuite(make_workspace(Path(folder)), server, {"concurrency": CONCURRENCY, "price": price})
        suite.write(rows(items), target=TARGET)
        yield suite


def tokens_per_item(server: RunningServer, items: int) -> dict[str, tuple[float, float]]:
    """(calls, prompt tokens) per item of a first run, with frozen claims, again, and with one context changed."""
    told = {}
    with a_suite(server, items) as suite:

        def measured(name: str) -> None:
            server.control(reset=True)
            suite.run()
            stats = server.stats()
            # The probe is one small request per model, not per item; what is learnt goes with what is remembered.
            probes = name in ("first", "frozen claims")
            told[name] = ((stats["requests"] - probes) / items, stats["prompt_chars"] / 4 / items)

        measured("first")
        suite.forget()
        measured("frozen claims")
        measured("again")
        suite.write(rows(items, swapped=True), target=TARGET)
        measured("one of five contexts changed")
    return told


async def timed(parts: Parts, opened: Callable[[], Run]) -> tuple[float, float]:
    """(wall, CPU of this process) in seconds of the chain from target to the last row; the judge is prepared before."""
    try:
        await parts.judging.prepare()
        run = opened()
        wall, cpu = time.perf_counter(), time.process_time()
        await evaluate_locally(run)
        run.history.finish_run(run.run_id, status="complete")
        return time.perf_counter() - wall, time.process_time() - cpu
    finally:
        await parts.judging.aclose()


def whole_run(suite: JudgedSuite) -> tuple[float, float]:
    """(wall, CPU) of a run."""
    with contextlib.chdir(suite.folder):
        parts = assemble(read_suite(suite.workspace.suite))
        return asyncio.run(timed(parts, lambda: begin(parts, History(suite.workspace.history))))


def wall_ratio(server: RunningServer, items: int, latency_ms: float) -> tuple[float, float, float, int]:
    """(ratio, wall, ideal, calls): wall ÷ (calls × latency ÷ concurrency + the two calls that follow each other)."""
    with a_suite(server, items) as suite:
        server.control(reset=True, latency_ms=latency_ms)
        wall, _ = whole_run(suite)
        server.control(latency_ms=0)
        calls = server.stats()["requests"] - 1
        latency = latency_ms / 1000
        ideal = calls * latency / CONCURRENCY + 2 * latency
        return wall / ideal, wall, ideal, calls


async def bare(bodies: Sequence[dict[str, Any]], url: str) -> float:
    """CPU seconds of `litellm.acompletion` for the same requests, as many in flight, nothing done with the answers."""
    litellm: Any = _litellm()
    slots = asyncio.Semaphore(CONCURRENCY)

    async def one(body: dict[str, Any]) -> None:
        async with slots:
            await litellm.acompletion(
                **{**body, "model": f"openai/{body['model']}"},
                api_base=url,
                api_key="none",
                timeout=60,
                max_retries=0,
                num_retries=0,
            )

    began = time.process_time()
    await asyncio.gather(*(one(body) for body in bodies))
    took = time.process_time() - began
    await litellm.close_litellm_async_clients()
    litellm.in_memory_llm_clients_cache.flush_cache()
    return took


async def judging(parts: Parts) -> float:
    """CPU seconds of judging and scoring all items, with memory and frozen claims, without target and history."""
    samples = [Sample(item, None, ContextSet("item", item.contexts or ())) for item in parts.dataset.items]

    async def one(scorer: Scorer, sample: Sample) -> None:
        judged = await scorer.judge(sample, judge=parts.judge, claims=parts.claims)
        assert scorer.score(sample, judged).status is Status.OK

    try:
        await parts.judging.prepare()
        began = time.process_time()
        await asyncio.gather(*(one(scorer, sample) for sample in samples for scorer in parts.scorers))
        return time.process_time() - began
    finally:
        await parts.judging.aclose()


def cpu_rounds(server: RunningServer, items: int, rounds: int) -> list[tuple[float, float, float]]:
    """CPU milliseconds per call of judging, of bare LiteLLM, and of a whole run with its history.

    In alternating rounds; the first one warms up and is left out.
    """
    measured: list[tuple[float, float, float]] = []
    for _ in range(rounds + 1):
        with a_suite(server, items) as suite:
            server.control(reset=True, keep=10 * items)
            _, whole = whole_run(suite)
            bodies = [last["body"] for last in server.stats()["last"]][1:]  # without the probe
            server.control(keep=1)
        plain = asyncio.run(bare(bodies, server.url))
        with a_suite(server, items) as suite, contextlib.chdir(suite.folder):
            ours = asyncio.run(judging(assemble(read_suite(suite.workspace.suite))))
        ms = 1000 / len(bodies)
        measured.append((ours * ms, plain * ms, whole * ms))
    return measured[1:]


def profiled(server: RunningServer, items: int) -> None:
    """Print where the CPU of judging goes."""
    with a_suite(server, 3) as suite:
        whole_run(suite)  # LiteLLM is imported, and warm
    with a_suite(server, items) as suite, contextlib.chdir(suite.folder):
        parts = assemble(read_suite(suite.workspace.suite))
        profile = cProfile.Profile()
        profile.enable()
        asyncio.run(judging(parts))
        profile.disable()
        pstats.Stats(profile).sort_stats("cumtime").print_stats("ragscore|litellm/main|client.py|wire", 60)
        pstats.Stats(profile).sort_stats("tottime").print_stats(30)


def main() -> int:
    """Print the figures beside their targets."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=60)
    parser.add_argument("--latency-ms", type=float, default=800)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--profile", action="store_true")
    given = parser.parse_args()
    with running() as server:
        if given.profile:
            profiled(server, given.items)
            return 0
        told = tokens_per_item(server, given.items)
        for name, (calls, tokens) in told.items():
            print(f"{name:<30} {calls:5.2f} calls  {tokens:7.0f} prompt tokens per item")
        ratio, wall, ideal, calls_made = wall_ratio(server, 2 * given.items, given.latency_ms)
        print(
            f"wall {wall:.2f} s for {calls_made} calls, ideal {ideal:.2f} s: ratio {ratio:.3f} (target {WALL_TARGET})"
        )
        measured = cpu_rounds(server, given.items, given.rounds)
        ours, plain, whole = (statistics.median(each) for each in zip(*measured, strict=True))
        cpu = statistics.median(mine / theirs for mine, theirs, _ in measured)
        print(f"CPU per call: {ours:.2f} ms, bare LiteLLM {plain:.2f} ms: ratio {cpu:.3f} (target {CPU_TARGET})")
        print(f"  a whole run with its history: {whole:.2f} ms per call")
        print("  rounds: " + ", ".join(f"{mine:.2f}/{theirs:.2f}" for mine, theirs, _ in measured))
    first_calls, first_tokens = told["first"]
    met = (
        first_calls <= 3 and told["frozen claims"][0] <= 2 and told["again"][0] == 0,
        first_tokens <= TOKENS_TARGET,
        ratio <= WALL_TARGET,
        cpu <= CPU_TARGET,
    )
    for name, is_met in zip(("calls", "tokens", "wall", "CPU"), met, strict=True):
        if not is_met:
            print(f"missed: {name}")
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
