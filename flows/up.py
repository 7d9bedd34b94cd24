"""A local Prefect server and a worker as processes of this one: ready when they answer, gone when this one goes."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType

from ragscore.errors import EngineError

#: Seconds that a first start may take: it makes the database.
STARTUP_S = 180.0
#: Seconds that a process has to end by itself; a worker lets its flow runs note that they were stopped.
ENDING_S = 30.0


class LocalServer:
    """`prefect server start` and `prefect worker start`, with a home of their own.

    Args:
        place: Where database and logs are kept, so that schedules and runs outlive a restart.
        port: Of the server, on this machine only.
    """

    def __init__(self, place: Path, *, port: int) -> None:
        self._place = place
        self._port = port
        self._processes: list[tuple[str, subprocess.Popen[bytes]]] = []

    @property
    def url(self) -> str:
        """Where the UI is."""
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Start the server and wait until it answers; must be called before Prefect is imported, whose settings it
        decides.

        Raises:
            EngineError: something else is at the port; or it ended, or did not answer in time.
        """
        import httpx

        with contextlib.suppress(httpx.HTTPError):
            httpx.get(self.url, timeout=2, trust_env=False)
            raise EngineError("something answers there already", where=self.url, mend="name another --port")
        self._place.mkdir(parents=True, exist_ok=True)
        for name in ("NO_PROXY", "no_proxy"):  # a proxy cannot reach our loopback
            os.environ[name] = ",".join(filter(None, [os.environ.get(name), "127.0.0.1", "localhost"]))
        os.environ.update(
            PREFECT_HOME=str(self._place),
            PREFECT_PROFILES_PATH=str(self._place / "profiles.toml"),
            PREFECT_API_URL=f"{self.url}/api",
            PREFECT_SERVER_ANALYTICS_ENABLED="false",
            DO_NOT_TRACK="1",
        )
        self._begin("server", "server", "start", "--host", "127.0.0.1", "--port", str(self._port))
        deadline = time.monotonic() + STARTUP_S
        while time.monotonic() < deadline:
            self.check()
            with contextlib.suppress(httpx.HTTPError):
                if httpx.get(f"{self.url}/api/health", timeout=5, trust_env=False).is_success:
                    return
            time.sleep(0.3)
        raise EngineError(f"the Prefect server did not answer within {STARTUP_S:g} s", where=str(self._log("server")))

    def work(self, pool: str) -> None:
        """Start a worker for the pool."""
        self._begin("worker", "worker", "start", "--pool", pool, "--type", "process", "--name", "ragscore-up")

    def check(self) -> None:
        """Raise EngineError when one of them has ended."""
        for name, process in self._processes:
            if process.poll() is not None:
                lines = self._log(name).read_text(encoding="utf-8", errors="replace").strip().splitlines()
                said = lines[-1].strip() if lines else "it said nothing"
                raise EngineError(f"the Prefect {name} has ended: {said}", where=str(self._log(name)))

    def stop(self) -> None:
        """End the worker, then the server."""
        while self._processes:
            _, process = self._processes.pop()
            if process.poll() is None:
                process.send_signal(signal.SIGINT if sys.platform != "win32" else signal.SIGTERM)
                try:
                    process.wait(timeout=ENDING_S)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()

    def _begin(self, name: str, *arguments: str) -> None:
        with self._log(name).open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "prefect", *arguments],  # -P: no module of the user's folder
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C comes to us, and we end them in order
            )
        self._processes.append((name, process))

    def _log(self, name: str) -> Path:
        return self._place / f"{name}.log"


def wait_for_the_end(local: LocalServer) -> None:
    """Return at Ctrl-C or SIGTERM.

    Raises:
        EngineError: server or worker has ended by itself.
    """

    def ended(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, ended)
    try:
        while True:
            local.check()
            time.sleep(0.5)
    except KeyboardInterrupt:
        return
    finally:
        signal.signal(signal.SIGTERM, before)
