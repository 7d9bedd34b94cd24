"""Real servers that files are fetched from: HTTP, and an S3 that keeps everything in this process."""

from __future__ import annotations

import base64
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

#: What `/private/…` asks for.
USER, PASSWORD = "reader", "s3cret"


class _Files(SimpleHTTPRequestHandler):
    def do_GET(self) -> None:
        given = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        if self.path.startswith("/moved/"):
            self.send_response(302)
            self.send_header("Location", self.path.removeprefix("/moved"))
            self.end_headers()
        elif self.path.startswith("/private/") and self.headers["Authorization"] != f"Basic {given}":
            self.send_error(401)
        else:
            self.path = self.path.removeprefix("/private")
            super().do_GET()

    def end_headers(self) -> None:
        if self.path.startswith("/encoded."):  # what is stored gzipped is said to be sent so
            self.send_header("Content-Encoding", "gzip")
        super().end_headers()

    def log_message(self, *_: object) -> None: ...


@contextmanager
def over_http(folder: Path) -> Iterator[str]:
    """The address of a server of the files in `folder`; `/moved/…` redirects, `/private/…` wants a password."""
    with _served(partial(_Files, directory=str(folder))) as address:
        yield address


class _CutOff(BaseHTTPRequestHandler):
    """Announces a file of two rows, as HTTP servers and S3 do, and sends the first row only."""

    ROW = b'{"id": "q", "input": "q?"}\n'

    def _announce(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(2 * len(self.ROW)))
        self.send_header("ETag", '"0"')
        self.end_headers()

    def do_HEAD(self) -> None:
        self._announce()

    def do_GET(self) -> None:
        self._announce()
        self.wfile.write(self.ROW)
        self.close_connection = True

    def log_message(self, *_: object) -> None: ...


@contextmanager
def cut_off() -> Iterator[str]:
    """The address of a server, of HTTP and of S3, whose every transfer ends in the middle: between two whole rows."""
    with _served(_CutOff) as address:
        yield address


@contextmanager
def _served(handler: Callable[..., BaseHTTPRequestHandler]) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def as_s3(buckets: dict[str, dict[str, bytes]]) -> Iterator[str]:
    """The address of an S3 endpoint that holds these buckets, each of objects by key."""
    import boto3
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        client = boto3.client(
            "s3",
            endpoint_url=f"http://{host}:{port}",
            region_name="us-east-1",
            aws_access_key_id="any",
            aws_secret_access_key="any",
        )
        for bucket, objects in buckets.items():
            client.create_bucket(Bucket=bucket)
            for key, content in objects.items():
                client.put_object(Bucket=bucket, Key=key, Body=content)
        yield f"http://{host}:{port}"
    finally:
        server.stop()
