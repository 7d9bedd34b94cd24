"""`ragscore up`: server, worker and deployments in one command, and nothing left of them after Ctrl-C."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time

import httpx
import pytest

from tests.workspace import Workspace

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")]


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


def test_up_starts_everything_prints_the_address_and_ctrl_c_stops_it(workspace: Workspace) -> None:
    port = free_port()
    process = subprocess.Popen(
        workspace.command("up", "suite.yaml", "--port", str(port)),
        cwd=workspace.folder,
        env=workspace.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        assert url == f"http://127.0.0.1:{port}", process.stderr.read() if process.stderr else ""
        api = f"{url}/api"
        deployment = httpx.get(f"{api}/deployments/name/evaluate/drinks").raise_for_status().json()
        begun = httpx.post(f"{api}/deployments/{deployment['id']}/create_flow_run", json={}).raise_for_status().json()
        deadline = time.monotonic() + 120
        state = ""
        while state != "COMPLETED":
            state = httpx.get(f"{api}/flow_runs/{begun['id']}").raise_for_status().json()["state_type"]
            assert state not in ("FAILED", "CRASHED", "CANCELLED")
            assert time.monotonic() < deadline
            time.sleep(0.5)
        assert workspace.sql("select suite, status, flow_run_id from runs") == [("drinks", "complete", begun["id"])]
        busy = workspace.ragscore("up", "suite.yaml", "--port", str(port))
        assert busy.returncode == 3
        assert "something answers there already" in busy.stderr
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=90)
        assert process.returncode == 0, said
        with pytest.raises(httpx.ConnectError):
            httpx.get(url, timeout=5)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=30)
