"""Which engine carries out a run: Prefect where an API is configured, else this process."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, replace
from typing import Literal

from ragscore.addresses import without_secrets
from ragscore.errors import EngineError, UsageError
from ragscore.flows.clusters import checked
from ragscore.flows.server import ThrowawayServer
from ragscore.flows.settings import configured_api
from ragscore.runs import Run

EngineName = Literal["auto", "prefect", "local"]


@dataclass(frozen=True, slots=True)
class Engine:
    """The engine chosen, and why, in the words of the first line that a run prints."""

    name: Literal["prefect", "local"]
    said: str
    server: ThrowawayServer | None = None
    dask: str | None = None

    async def carry_out(self, run: Run) -> None:
        """Take the run through the chain.

        Raises:
            RagscoreError: it cannot go on; what is stored stays.
        """
        if self.name == "local":
            from ragscore.engine import evaluate_locally

            await evaluate_locally(run)
        else:
            if self.server is not None:
                await asyncio.to_thread(self.server.wait)
            from ragscore.flows.evaluate import evaluate_run

            await evaluate_run(run, watched=self.server is None, dask=self.dask)


def choose(engine: EngineName, *, dask: str | None = None) -> Engine:
    """The engine for `auto`, `prefect` or `local`. Must be called before Prefect is imported.

    Args:
        engine: Which one.
        dask: A Dask cluster whose workers are to carry out the stages; Prefect brings them there.

    Raises:
        EngineError: a configured API does not answer; never a silent fallback.
        UsageError: `dask` is no cluster, or the engine is `local`.
    """
    if dask is not None:
        if engine == "local":
            raise UsageError("a Dask cluster is reached through Prefect", where="--dask", mend="leave --engine out")
        checked(dask)
        chosen = _chosen("prefect")
        return replace(chosen, said=f"{chosen.said} and Dask ({dask})", dask=dask)
    return _chosen(engine)


def _chosen(engine: EngineName) -> Engine:
    if engine == "local":
        return Engine("local", "local")
    api = configured_api()
    if api is None:
        if engine == "auto":
            return Engine("local", "local (no Prefect API is configured)")
        server = ThrowawayServer()
        server.start()
        return Engine("prefect", "Prefect (a throwaway server; no API is configured)", server)
    _check(api)
    # The terminal belongs to the progress; the server gets its logs all the same. Before Prefect is imported.
    for name in ("PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL", "PREFECT_LOGGING_INTERNAL_LEVEL"):
        os.environ.setdefault(name, "CRITICAL")
    return Engine("prefect", f"Prefect ({without_secrets(api)})")


def _check(api: str) -> None:
    import httpx

    mend, where = "start it, correct PREFECT_API_URL, or run with --engine local", without_secrets(api)
    try:
        answer = httpx.get(f"{api.rstrip('/')}/health", timeout=10)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise EngineError(f"the Prefect API does not answer: {error}", where=where, mend=mend) from error
    if not answer.is_success:
        raise EngineError(f"the Prefect API answers with status {answer.status_code}", where=where, mend=mend)
