"""Starts the misbehaving server in a process of its own, for tests and benchmarks."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_SERVER = Path(__file__).with_name("server.py")


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A server that listens. `url` is what a client takes as its base URL; it ends in /v1."""

    url: str
    process: subprocess.Popen[str]

    def stats(self) -> dict[str, Any]:
        """What was asked and answered so far; see `state.Stats.described`."""
        return self._fetch("/_stats", None)

    def control(self, **config: Any) -> dict[str, Any]:
        """Changes fields of `state.Config`; `reset=True` also forgets all counts. The configuration then in force."""
        return self._fetch("/_control", config)

    def stop(self) -> None:
        """Ends the process; again is nothing."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()

    def _fetch(self, path: str, body: dict[str, Any] | None) -> dict[str, Any]:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url.removesuffix("/v1") + path, data=data)
        # No proxy: the address is this machine's own.
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=10) as reply:
            answer: dict[str, Any] = json.loads(reply.read())
        return answer


def start(**config: Any) -> RunningServer:
    """A server with fields of `state.Config` as given; it ends with this process at the latest."""
    process = subprocess.Popen(
        [sys.executable, str(_SERVER), "--port", "0", "--until-stdin-closes", "--config", json.dumps(config)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    port = process.stdout.readline().strip()
    if not port:
        process.wait()
        raise ValueError(f"the server did not start with {config}")
    return RunningServer(f"http://127.0.0.1:{port}/v1", process)


@contextmanager
def running(**config: Any) -> Iterator[RunningServer]:
    """A server for the length of a `with` block."""
    server = start(**config)
    try:
        yield server
    finally:
        server.stop()
