"""A throwaway Prefect server: quiet, deaf to Ctrl-C, and gone when the run that started it is gone.

Prefect can start one by itself, but that one shares the terminal's process group (Ctrl-C ends it under a run that is
finishing what is in flight), writes to the user's standard error, and outlives a killed run.
"""

from __future__ import annotations

import atexit
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

from ragscore.errors import EngineError
from ragscore.home import home

#: Seconds that a first start may take; it makes the database.
STARTUP_S = 120.0

#: Quiet, alone, and telling nobody; for the server and for its client in this process.
SETTINGS = {
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "DO_NOT_TRACK": "1",
    "PREFECT_LOGGING_TO_API_ENABLED": "false",
    "PREFECT_LOGGING_LEVEL": "CRITICAL",
    "PREFECT_SERVER_LOGGING_LEVEL": "ERROR",
    "PREFECT_CLIENT_SERVER_VERSION_CHECK_ENABLED": "false",
    "PREFECT_SERVER_UI_ENABLED": "false",
    "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "120",
}


class ThrowawayServer:
    """The server of this process; its place is kept between runs, so that migrations run once."""

    def __init__(self) -> None:
        self._place = home().resolve() / "prefect"
        self._process: subprocess.Popen[str] | None = None
        self._url = ""

    def start(self) -> None:
        """Start it without waiting; must be called before Prefect is imported, whose settings it decides."""
        try:
            self._place.mkdir(parents=True, exist_ok=True)
            log = self._log.open("w", encoding="utf-8")
        except OSError as error:
            raise EngineError(
                f"the throwaway Prefect server has no place: {error.strerror}",
                where=str(self._place),
                mend="set RAGSCORE_HOME to a folder that can be written, or run with --engine local",
            ) from error
        for name in ("NO_PROXY", "no_proxy"):  # a proxy cannot reach our loopback
            os.environ[name] = ",".join(filter(None, [os.environ.get(name), "127.0.0.1", "localhost"]))
        os.environ.pop("PREFECT_API_URL", None)
        os.environ["PREFECT_HOME"] = str(self._place)
        os.environ["PREFECT_PROFILES_PATH"] = str(self._place / "profiles.toml")
        os.environ.update(SETTINGS)
        with log:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", __name__],  # -P: no module of the user's folder
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={**os.environ, "PREFECT__SERVER_EPHEMERAL": "1", "PREFECT__SERVER_FINAL": "1"},
                start_new_session=True,
            )
        atexit.register(self.stop)
        assert self._process.stdout is not None
        port = self._process.stdout.readline().strip()
        if not port:
            raise self._did_not_start()
        self._url = f"http://127.0.0.1:{port}/api"
        os.environ["PREFECT_API_URL"] = self._url

    def wait(self) -> None:
        """Block until it answers.

        Raises:
            EngineError: it ended, or did not answer within two minutes.
        """
        import httpx

        deadline = time.monotonic() + STARTUP_S
        while self._process is not None and self._process.poll() is None and time.monotonic() < deadline:
            try:
                if httpx.get(f"{self._url}/health", timeout=5, trust_env=False).is_success:
                    return
            except httpx.HTTPError:
                pass  # not yet
            time.sleep(0.1)
        raise self._did_not_start()

    def stop(self) -> None:
        """End it; it has nothing to save that matters."""
        process, self._process = self._process, None
        if process is None:
            return
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()  # the end of its standard input tells it to go
        try:
            process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    @property
    def _log(self) -> Path:
        return self._place / "server.log"

    def _did_not_start(self) -> EngineError:
        lines = self._log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return EngineError(
            f"the throwaway Prefect server did not start: {lines[-1] if lines else 'it said nothing'}",
            where=str(self._log),
            mend="look there, or run with --engine local",
        )


def serve() -> None:
    """The server process: say the port, serve, and go when standard input ends, however the parent ended."""
    threading.Thread(target=_go_with_parent, daemon=True).start()
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    sys.stdout.write(f"{listening.getsockname()[1]}\n")
    sys.stdout.flush()

    import uvicorn

    config = uvicorn.Config("prefect.server.api.server:create_app", factory=True, lifespan="on", log_level="error")
    uvicorn.Server(config).run(sockets=[listening])


def _go_with_parent() -> None:
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    serve()
