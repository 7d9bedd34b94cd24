"""A Prefect server and a worker of a test's own, as real processes that can be killed."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import yaml

from ragscore.history import select


@dataclass
class Site:
    """A folder with suites, a Prefect server of its own, and a worker that can be killed."""

    folder: Path
    port: int
    server: subprocess.Popen[bytes] | None = None
    worker: subprocess.Popen[bytes] | None = None
    _logs: list[Any] = field(default_factory=list)

    @property
    def api(self) -> str:
        return f"http://127.0.0.1:{self.port}/api"

    @property
    def history(self) -> Path:
        return self.folder / ".ragscore" / "history.duckdb"

    def environment(self) -> dict[str, str]:
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("PREFECT_", "RAGSCORE_"))}
        return {
            **kept,
            "PREFECT_HOME": str(self.folder / "prefect"),
            "PREFECT_API_URL": self.api,
            "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
            "PREFECT_WORKER_QUERY_SECONDS": "1",
            "PREFECT_SERVER_SERVICES_SCHEDULER_LOOP_SECONDS": "5",
            "DO_NOT_TRACK": "1",
            "NO_COLOR": "1",
            "PYTHONUTF8": "1",
        }

    def start_server(self) -> None:
        self.server = self._begin("server", "server", "start", "--host", "127.0.0.1", "--port", str(self.port))
        wait_for(self.answers, "the server answers", 120)

    def answers(self) -> bool:
        with contextlib.suppress(httpx.HTTPError):
            return httpx.get(f"{self.api}/health", timeout=5).is_success
        return False

    def start_worker(self) -> None:
        self.worker = self._begin("worker", "worker", "start", "--pool", "ragscore", "--type", "process")

    def stop(self, process: subprocess.Popen[bytes] | None, how: int = signal.SIGKILL) -> None:
        """End a process; with kill -9 all of its children too."""
        if process is None or process.poll() is not None:
            return
        if how == signal.SIGKILL:
            for pid in descendants(process.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, how)
        process.send_signal(how)
        process.wait(timeout=60)

    def ragscore(self, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "ragscore", *arguments],
            cwd=self.folder,
            env={**self.environment(), **more},
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )

    def order(self, **orders: Any) -> None:
        new = self.folder / "suites" / "orders.new"
        new.write_text(json.dumps({"deployed": "v1", **orders}), encoding="utf-8")
        new.replace(new.with_name("orders.json"))

    def calls(self) -> list[str]:
        log = self.folder / "suites" / "calls.log"
        return log.read_text(encoding="utf-8").splitlines() if log.exists() else []

    def write_suite(self, **changes: Any) -> None:
        suite = {
            "name": "python-reference",
            "dataset": "questions.jsonl",
            "target": {"retriever": "docs-search", "version": "dev", "python": "app:ask", "concurrency": 2},
            "judge": "offline",
            "scorers": ["context_recall", "context_precision"],
            "gate": {"context_recall": {"min": 0.5, "max_drop": 0.05}},
            "batch_size": 5,
            "retry_delay_s": 1,
            **changes,
        }
        (self.folder / "suites" / "docs.yaml").write_text(yaml.safe_dump(suite), encoding="utf-8")

    def sql(self, query: str) -> list[tuple[Any, ...]]:
        return select(self.history, query).rows if self.history.exists() else []

    def post(self, path: str, body: Any) -> Any:
        answer = httpx.post(f"{self.api}{path}", json=body, timeout=30)
        for _ in range(5):
            if answer.status_code != 503:
                break
            time.sleep(1)  # its SQLite was locked
            answer = httpx.post(f"{self.api}{path}", json=body, timeout=30)
        answer.raise_for_status()
        return answer.json() if answer.content else None

    def get(self, path: str) -> Any:
        return httpx.get(f"{self.api}{path}", timeout=30).raise_for_status().json()

    def flow_runs(self, flow: str) -> list[dict[str, Any]]:
        """The flow runs of a flow that are not waiting for their schedule, oldest first."""
        found = self.post("/flow_runs/filter", {"flows": {"name": {"any_": [flow]}}, "limit": 200})
        begun = [run for run in found if run["state_name"] not in ("Scheduled", "Late") or not run["auto_scheduled"]]
        return sorted(begun, key=lambda run: str(run["created"]))

    def ended(self, flow_run_id: str, *, within: float = 120) -> dict[str, Any]:
        found: dict[str, Any] = {}

        def has_ended() -> bool:
            found.update(self.get(f"/flow_runs/{flow_run_id}"))
            return found["state_type"] in ("COMPLETED", "FAILED", "CANCELLED", "CRASHED")

        wait_for(has_ended, f"flow run {flow_run_id} ends", within)
        return found

    def events(self, name: str) -> list[dict[str, Any]]:
        body = {"filter": {"event": {"name": [name]}, "occurred": {"since": "2000-01-01T00:00:00Z"}}, "limit": 50}
        return list(self.post("/events/filter", body)["events"])

    def deployment(self, name: str) -> dict[str, Any]:
        return dict(self.get(f"/deployments/name/{name}"))

    def run_deployment(self, name: str, **parameters: Any) -> str:
        deployment_id = self.deployment(name)["id"]
        return str(self.post(f"/deployments/{deployment_id}/create_flow_run", {"parameters": parameters})["id"])

    def _begin(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        log = (self.folder / f"{name}.log").open("ab")
        self._logs.append(log)
        return subprocess.Popen(
            [sys.executable, "-m", "prefect", *arguments],
            cwd=self.folder,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def close(self) -> None:
        self.stop(self.worker)
        self.stop(self.server)
        for log in self._logs:
            log.close()


def descendants(pid: int) -> list[int]:
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in map(int, task.read_text().split()):
                found += [child, *descendants(child)]
    return found


def wait_for(holds: Callable[[], Any], what: str, within: float = 60) -> None:
    """A deadline for the machine, not a measure of time: ends as soon as it holds."""
    deadline = time.monotonic() + within
    while not holds():
        assert time.monotonic() < deadline, f"it never came about that {what}"
        time.sleep(0.25)


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])
