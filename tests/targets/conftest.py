"""A real HTTP server for targets, which answers as a test tells it."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest


@dataclass
class Request:
    """What came in. `query` and `form` have lists of values."""

    method: str
    path: str
    headers: dict[str, str]
    body: str

    @property
    def query(self) -> dict[str, list[str]]:
        return parse_qs(urlsplit(self.path).query)

    @property
    def form(self) -> dict[str, list[str]]:
        return parse_qs(self.body)

    @property
    def json(self) -> Any:
        return json.loads(self.body)


#: Status, body (text as it is, all else as JSON), headers.
Answer = tuple[int, Any, dict[str, str]]


@dataclass
class Server:
    """Listens on a port of its own. `answers` are given in turn, the last one again and again."""

    url: str = ""
    answers: list[Answer | Callable[[Request], Answer]] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)

    def answer(self, body: Any, status: int = 200, **headers: str) -> None:
        self.answers.append((status, body, {name.replace("_", "-"): value for name, value in headers.items()}))


@pytest.fixture
def server() -> Iterator[Server]:
    yield from serving()


def serving(tls: ssl.SSLContext | None = None) -> Generator[Server, None, None]:
    """A server for as long as it is iterated over; with HTTPS where a context is given."""
    told = Server()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def _reply(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0)).decode()
            headers = {name.lower(): value for name, value in self.headers.items()}
            request = Request(self.command, self.path, headers, body)
            told.requests.append(request)
            given = told.answers.pop(0) if len(told.answers) > 1 else told.answers[0]
            status, said, more = given(request) if callable(given) else given
            content = said.encode() if isinstance(said, str) else json.dumps(said).encode()
            self.send_response(status)
            if not isinstance(said, str):
                self.send_header("content-type", "application/json")
            for name, value in more.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = _reply

        def log_message(self, *arguments: Any) -> None:
            pass

    class Listening(ThreadingHTTPServer):
        def handle_error(self, request: Any, client_address: Any) -> None:
            """A client that gave up waiting is nothing to print."""

    listening = Listening(("127.0.0.1", 0), Handler)
    listening.daemon_threads = True
    if tls is not None:
        listening.socket = tls.wrap_socket(listening.socket, server_side=True)
    told.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{listening.server_address[1]}"
    thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield told
    finally:
        listening.shutdown()
        listening.server_close()
