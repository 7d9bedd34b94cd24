"""`ragscore notify`: announce that a retriever was deployed, and wait for the verdict."""

from __future__ import annotations

import json as json_
import sys
from typing import Annotated, Any

from cyclopts import Parameter

from ragscore.cli.options import Json


def notify(
    retriever: str,
    version: str,
    /,
    *,
    deploy_id: str | None = None,
    payload: Annotated[tuple[str, ...], Parameter(negative="")] = (),
    wait: Annotated[bool, Parameter(negative="")] = False,
    timeout: float = 3600,
    url: str | None = None,
    json: Json = False,
) -> int:
    """Announce that a retriever was deployed; its suites are run and gated on the Prefect server.

    Parameters
    ----------
    retriever
        Which one; suites name it as target.retriever.
    version
        What was deployed.
    deploy_id
        The deploy; the same one announced twice runs once. Made from retriever, version and the run of the CI system
        when left out.
    payload
        What else to keep with the flow run, as KEY=VALUE; may be repeated.
    wait
        Wait for the verdict, and exit with the gate's code: 0 pass, 1 fail, 3 could not be evaluated, 4 inconclusive.
    timeout
        Seconds to wait.
    url
        Address of the Prefect API; the configured one when left out.
    """
    from dataclasses import replace

    from ragscore.errors import EngineError, UsageError
    from ragscore.flows.announce import FLOW, TRIGGERED_WITHIN_S, Server, deploy_id_of, followed, triggered
    from ragscore.flows.settings import configured_api

    api = url or configured_api()
    if api is None:
        raise UsageError("no Prefect API is configured", mend="set PREFECT_API_URL, or name it with --url")
    more: dict[str, Any] = {}
    for each in payload:
        key, is_pair, value = each.partition("=")
        if not is_pair or not key:
            raise UsageError(f"{each!r} is not KEY=VALUE", where="--payload", mend="write --payload commit=1a2b3c")
        more[key] = value
    deploy = deploy_id or deploy_id_of(retriever, version)
    server = Server(api)
    link = f"{server.shown.removesuffix('/api')}/runs/flow-run/"
    try:
        deployments = server.deployments()
        if not deployments:
            raise EngineError(
                f"no deployment of {FLOW} is there, so that nothing would listen",
                where=server.shown,
                mend="make it with `ragscore deploy`",
            )
        found = server.flow_run_of(deploy, deployments)
        if found is not None:
            again = ""
            if found.state in ("CRASHED", "CANCELLED"):  # it has no verdict
                again = f", its flow run is {found.state.lower()} and is tried again"
                found = server.retried(found)
            found = replace(found, was_there=True)
            _say(f"deploy {deploy} was announced before{again}: {link}{found.flow_run_id}")
        else:
            server.announce(retriever, version, deploy, more)
            found = triggered(server, deploy, deployments)
            if found is None:
                raise EngineError(
                    f"the event was taken, but triggered no flow run within {TRIGGERED_WITHIN_S:g} s",
                    where=server.shown,
                    mend="is the automation of `ragscore deploy` enabled, and do the server's services run?",
                )
            _say(f"deploy {deploy}: flow run {found.name}, {link}{found.flow_run_id}")
        if wait:
            found = followed(server, found, timeout_s=timeout, tell=lambda now: _say(f"  {now.state.lower()}"))
    finally:
        server.close()
    code = _code(found.state, found.message) if wait else 0
    if json:
        shown = {
            "deploy_id": deploy,
            "flow_run_id": found.flow_run_id,
            "flow_run": found.name,
            "announced_before": found.was_there,
            "superseded": found.superseded,
            "state": found.state.lower(),
            "message": found.message or None,
            "exit_code": code if wait else None,
        }
        sys.stdout.write(json_.dumps(shown, ensure_ascii=False, indent=2) + "\n")
    elif wait:
        sys.stdout.write(f"{found.message or found.state.lower()}\n")
    return code


def _code(state: str, message: str) -> int:
    from ragscore.flows.codes import code_of

    return code_of(state, message)


def _say(line: str) -> None:
    sys.stderr.write(line + "\n")
