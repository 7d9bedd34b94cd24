"""`ragscore up`: a local Prefect server, a worker and the deployments, in one command."""

from __future__ import annotations

import sys
from pathlib import Path

from ragscore.cli.options import HistoryFile


def up(
    *suites: Path, port: int = 4200, cron: str | None = None, timezone: str | None = None, history: HistoryFile = None
) -> int:
    """Start a local Prefect server and a worker, deploy the suites, and print the address; Ctrl-C stops everything.

    Parameters
    ----------
    suites
        Suite files, and folders of them; the folder `suites` when left out.
    port
        Of the server, on this machine only.
    cron
        When every suite is evaluated; `0 2 * * *` when left out.
    timezone
        Of all schedules, e.g. Europe/Berlin; UTC when left out.
    """
    from ragscore.cli.deploy import deploy_to_server
    from ragscore.flows.suites import suite_paths
    from ragscore.flows.up import LocalServer, wait_for_the_end
    from ragscore.home import home

    suite_paths(suites or (Path("suites"),))  # what is wrong is said before anything starts
    local = LocalServer(home().resolve() / "prefect-server", port=port)
    try:
        sys.stderr.write("starting a Prefect server …\n")
        local.start()
        for line in deploy_to_server(suites, history=history, cron=cron, timezone=timezone):
            sys.stderr.write(f"{line}\n")
        local.work("ragscore")
        sys.stdout.write(f"{local.url}\n")
        sys.stdout.flush()
        sys.stderr.write(
            f"To announce a deploy: PREFECT_API_URL={local.url}/api ragscore notify RETRIEVER VERSION --wait\n"
            "Ctrl-C stops server and worker; schedules and history stay.\n"
        )
        wait_for_the_end(local)
    except KeyboardInterrupt:
        pass
    finally:
        sys.stderr.write("stopping …\n")
        local.stop()
    return 0
