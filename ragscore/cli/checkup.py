"""What `ragscore doctor` looks at: each check gives one line, and fails nobody but itself."""

from __future__ import annotations

import asyncio
import os
import platform
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

from filelock import FileLock, Timeout

from ragscore.addresses import without_secrets
from ragscore.counting import counted
from ragscore.errors import RagscoreError
from ragscore.home import home
from ragscore.judges.llm.addresses import effective_base_url, key_variable
from ragscore.judges.setup import JudgeSetup, judge_setup
from ragscore.suite import JudgePart

#: Releases of LiteLLM that carried malicious code.
MALICIOUS_LITELLM = ("1.82.7", "1.82.8", "1.107.")
#: Seconds that a history is waited for which somebody holds.
PATIENCE_S = 2.0


@dataclass(frozen=True, slots=True)
class Check:
    """One line: `state` is `ok`, `warning` (works, but look at it) or `failed`."""

    about: str
    state: Literal["ok", "warning", "failed"]
    said: str


def versions() -> Iterator[Check]:
    """Python and the packages that matter."""
    yield Check("python", "ok", f"{platform.python_version()} ({sys.executable})")
    for package, name in (
        ("ragscore-evals", "ragscore"),
        ("prefect", "prefect"),
        ("litellm", "litellm"),
        ("duckdb", "duckdb"),
    ):
        try:
            found = version(package)
        except PackageNotFoundError:
            yield Check(name, "failed", "is not installed")
            continue
        yield litellm_release(found) if name == "litellm" else Check(name, "ok", found)


def litellm_release(found: str) -> Check:
    """Whether that release of LiteLLM is one of the malicious ones."""
    if any(found == bad or (bad.endswith(".") and found.startswith(bad)) for bad in MALICIOUS_LITELLM):
        what = "is a malicious release: remove it, and change every secret that this machine could read"
        return Check("litellm", "failed", f"{found} {what}")
    return Check("litellm", "ok", found)


def judge(part: JudgePart, dataset: Path, environment: Mapping[str, str]) -> Iterator[Check]:
    """Where the suite's judge is, where its key comes from, how it is spoken to, and whether it answers."""
    if part.plugin is not None:
        yield Check("judge", "ok", f"{part.plugin.name}, offered by an installed package; not asked anything here")
        return
    if part.model == "offline":
        yield Check("judge", "ok", "offline: judges by words, needs no network and no key")
        return
    address = effective_base_url(part.model, part.base_url, environment)
    shown = without_secrets(address) if address else "the provider's own address"
    yield Check("judge", "ok", f"{part.model} at {shown}")
    variable = key_variable(part)
    if variable is None:
        yield Check("key", "ok", "none is sent: the suite names an address and no judge.api_key_env")
    else:
        is_set = bool(environment.get(variable))
        why = "" if is_set else " (fine for providers that need none, or use other credentials)"
        yield Check("key", "ok" if is_set else "warning", f"{variable} is {'set' if is_set else 'not set'}{why}")
    try:
        setup = judge_setup(part, dataset=dataset, environment=environment)
    except RagscoreError as error:
        yield Check("judge answers", "failed", str(error))
        return
    yield asyncio.run(_answer(setup))


async def _answer(setup: JudgeSetup) -> Check:
    model = setup.model
    assert model is not None
    try:
        calls = await model.check()
    except RagscoreError as error:
        return Check("judge answers", "failed", str(error))
    finally:
        await setup.aclose()
    manners = model.manners
    how = (
        f"asked for {manners.mode}, with {', '.join(f'{k} {v}' for k, v in manners.params.items()) or 'no parameters'}"
    )
    if manners.dropped:
        how += f"; it refuses {', '.join(sorted(manners.dropped))}"
    if manners.window is not None:
        how += f"; its window is {manners.window} tokens"
    took = f"{calls[-1].latency_ms:.0f} ms" if calls and calls[-1].latency_ms is not None else "?"
    return Check("judge answers", "ok", f"yes, in {took}; {how}")


def prefect_api() -> Check:
    """Whether an API is configured, and answers."""
    from ragscore.flows.engine import choose
    from ragscore.flows.settings import configured_api

    api = configured_api()
    if api is None:
        return Check("prefect api", "ok", "none is configured: runs go without Prefect")
    try:
        choose("auto")
    except RagscoreError as error:
        return Check("prefect api", "failed", str(error))
    return Check("prefect api", "ok", f"{without_secrets(api)} answers")


def history(path: Path) -> Iterator[Check]:
    """The history: size, schema, runs, whether it opens, and runs that were left unfinished."""
    from ragscore.history import History, select
    from ragscore.runs import may_be_taken_up

    if not path.exists():
        yield Check("history", "ok", f"{path}: not there yet; the first run makes it")
        return
    size = path.stat().st_size
    try:
        runs = History(path, lock_timeout_s=PATIENCE_S).runs()
        ((schema,),) = select(path, "select max(number) from schema_migrations").rows
    except RagscoreError as error:
        yield Check("history", "failed", str(error))
        return
    yield Check("history", "ok", f"{path}: {size / 1e6:.1f} MB, schema {schema}, {counted(len(runs), 'run')}")
    for run in runs:
        if run.status != "running":
            continue
        try:
            may_be_taken_up(run)
            where = "" if run.host in (None, platform.node()) else f" on {run.host}"
            said = f"{run.run_id} was left unfinished{where}: `ragscore resume {run.run_id}` does the rest"
            yield Check("run", "warning", said)
        except RagscoreError:
            yield Check("run", "ok", f"{run.run_id} is being written by process {run.pid}")


def judgements() -> Check:
    """The remembered judgements: how many, and what is wrong with their file."""
    from ragscore.judges.judgement_store import JudgementStore

    path = home() / "judgements.sqlite"
    if not path.exists():
        return Check("judgements", "ok", f"{path}: not there yet; the first run with a model makes it")
    with JudgementStore(path, busy_timeout_s=PATIENCE_S) as store:
        count, notes = store.count(), store.notes
    if notes:
        return Check("judgements", "warning", "; ".join(notes))
    size = sum(file.stat().st_size for file in path.parent.glob(f"{path.name}*"))  # the log beside it, too
    return Check("judgements", "ok", f"{path}: {size / 1e6:.1f} MB, {count} judgements")


def locks(*guarded: Path) -> Iterator[Check]:
    """Lock files that somebody holds, and who. A held lock is no fault: writes take a moment."""
    for lock in guarded:
        if not lock.exists():
            continue
        try:
            with FileLock(lock, timeout=0):
                pass
        except Timeout:
            holder = holder_of(lock)
            by = f"process {holder}" if holder is not None else "another process"
            yield Check("lock", "warning", f"{lock} is held by {by}")
        except OSError as error:
            yield Check("lock", "failed", f"{lock}: {error.strerror}; make it writable")


def holder_of(lock: Path) -> int | None:
    """The process that holds a lock file, where the system says (Linux)."""
    try:
        table = Path("/proc/locks").read_text(encoding="ascii", errors="replace")
        inode = os.stat(lock).st_ino
    except OSError:
        return None
    for line in table.splitlines():
        words = line.split()
        if len(words) > 5 and words[1] in ("FLOCK", "POSIX") and words[5].rpartition(":")[2] == str(inode):
            return int(words[4])
    return None
