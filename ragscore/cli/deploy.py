"""`ragscore deploy`: make it run by itself on a Prefect server."""

from __future__ import annotations

import json as json_
import sys
from pathlib import Path

from ragscore.cli.options import HistoryFile, Json


def deploy(
    *suites: Path,
    cron: str | None = None,
    timezone: str | None = None,
    pool: str = "ragscore",
    at_once: int | None = None,
    notify: str | None = None,
    history: HistoryFile = None,
    json: Json = False,
) -> int:
    """Make or update deployments, work pool and automations on the configured Prefect server; doing it again is safe.

    Parameters
    ----------
    suites
        Suite files, and folders of them; the folder `suites` when left out. Each suite is evaluated every night, and
        when its retriever is deployed (see `ragscore notify`).
    cron
        When every suite is evaluated; `0 2 * * *` when left out.
    timezone
        Of all schedules, e.g. Europe/Berlin; UTC when left out.
    pool
        The work pool. A worker for it: `prefect worker start --pool ragscore`.
    at_once
        The most flow runs of the pool at once; as many as the worker takes when left out.
    notify
        A notification block that is told of regressions, failures, drift and silence, e.g. slack-webhook/my-team;
        when left out, who was named before stays.
    """
    from ragscore.errors import UsageError
    from ragscore.flows.engine import choose
    from ragscore.flows.settings import configured_api

    if configured_api() is None:
        raise UsageError(
            "no Prefect API is configured",
            mend="set PREFECT_API_URL, or start server, worker and deployments with `ragscore up`",
        )
    choose("auto")  # says plainly when it does not answer
    said = deploy_to_server(
        suites, history=history, cron=cron, timezone=timezone, pool=pool, at_once=at_once, notify=notify
    )
    if json:
        sys.stdout.write(json_.dumps(said, ensure_ascii=False, indent=2) + "\n")
    else:
        sys.stdout.write("".join(f"{line}\n" for line in said))
        sys.stdout.write(f"A worker takes them up: prefect worker start --pool {pool}\n")
    return 0


def deploy_to_server(
    suites: tuple[Path, ...],
    *,
    history: Path | None,
    cron: str | None = None,
    timezone: str | None = None,
    pool: str = "ragscore",
    at_once: int | None = None,
    notify: str | None = None,
) -> list[str]:
    """Deploy to the server that `PREFECT_API_URL` names; one line for each thing that is there now."""
    import asyncio

    from ragscore.errors import UsageError
    from ragscore.flows.deployments import Settings, deploy
    from ragscore.flows.suites import suite_paths
    from ragscore.home import history_path, home

    places = suites or (Path("suites"),)
    paths = suite_paths(places)
    if not paths:
        raise UsageError("no suite is here", where=", ".join(map(str, places)), mend="name suite files or their folder")
    settings = Settings(
        suites=paths,
        places=[place.resolve() for place in places],
        history=history_path(history).resolve(),
        home=home().resolve(),
        working_dir=Path.cwd(),
        pool=pool,
        at_once=at_once,
        cron=cron,
        timezone=timezone,
        notify=notify,
    )
    return asyncio.run(deploy(settings))
