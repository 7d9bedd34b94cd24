"""A target behind HTTP: one request per question, described in the suite by templates."""

from __future__ import annotations

import asyncio
import email.utils
import importlib.util
import json
import random
import re
import ssl
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import jmespath

from ragscore.addresses import without_secrets
from ragscore.errors import ConfigError
from ragscore.expressions import Template
from ragscore.items import Item, Response
from ragscore.secrets import Secrets
from ragscore.suite import HttpPart
from ragscore.targets.calling import conversation
from ragscore.targets.messages import answer_of, messages_of
from ragscore.targets.pacing import Pace
from ragscore.targets.protocol import TargetFailure, Where
from ragscore.targets.shapes import response_of

#: Statuses of a fault that may pass. 500 is not among them: servers give it for questions that they cannot digest.
PASSING = frozenset({408, 425, 429, 502, 503, 504})
#: How a page of HTML begins; an answer in HTML is a part of one.
PAGE = re.compile(r"\s*<(!doctype\s+html|html\b)", re.IGNORECASE)
#: However long a server asks us to wait, we wait no longer than this many seconds.
LONGEST_WAIT_S = 120.0


class HttpTarget:
    """Sends a request per item and reads text, contexts or both from the reply.

    Args:
        part: The request and how to send it.
        base_dir: What the path of `ca` is relative to.
        where: Gives the place of a field in the suite, for messages.
        timeout_s: Seconds that one attempt may take, from the connection to the last byte.
        concurrency: Connections at most.
        need_contexts: Whether a shape that cannot be read matters; see `shapes.response_of`.
        pace: When attempts may begin.
        secrets: What must not be seen in messages.
        kept_secrets: What must not even be kept where the server echoes it: the values of headers.

    Raises:
        ConfigError: the file of certificates cannot be used, or the address or a header is none.
    """

    def __init__(
        self,
        part: HttpPart,
        *,
        base_dir: Path,
        where: Where,
        timeout_s: float = 60.0,
        concurrency: int = 8,
        need_contexts: bool = True,
        pace: Pace | None = None,
        secrets: Secrets | None = None,
        kept_secrets: Secrets | None = None,
    ) -> None:
        self._part = part
        self._timeout_s = timeout_s
        self._need_contexts = need_contexts
        self._pace = pace or Pace()
        self._kept_secrets = kept_secrets or Secrets()
        self._secrets = (secrets or Secrets()) | self._kept_secrets
        self._method = part.method or ("GET" if part.json_ is None and part.form is None else "POST")
        self._request = Template({"headers": part.headers, "query": part.query, "json": part.json_, "form": part.form})
        self._address = Template(part.url, address=True)
        self._output = None if part.response is None or part.response.output is None else part.response.output
        self._limits = httpx.Limits(max_connections=concurrency, max_keepalive_connections=concurrency)
        self._tls = _tls(part, base_dir, where)
        self._client: httpx.AsyncClient | None = None
        _check(part, self._secrets, where)
        self._proxy = _proxy(part.proxy, self._secrets, where)

    async def invoke(self, item: Item) -> Response:
        """Answer one item, with retries for faults that may pass."""
        try:
            request = self._build(item)
        except (ValueError, TypeError, httpx.InvalidURL) as error:
            raise TargetFailure(self._said(f"the request cannot be made: {error}")) from None
        attempt = 0
        while True:
            await self._pace.turn()
            try:
                return await self._attempt(request)
            except _Passing as fault:
                if attempt == self._part.retries:
                    raise TargetFailure(self._said(str(fault)), passing=True) from None
                wait = fault.wait_s
                if wait is None:
                    wait = self._part.retry_delay_s * 2**attempt * random.uniform(1, 1.5)
                attempt += 1
                await asyncio.sleep(min(wait, LONGEST_WAIT_S))

    async def aclose(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    def _build(self, item: Item) -> httpx.Request:
        values = {"input": item.input, "id": item.id, "metadata": item.metadata, "messages": conversation(item)}
        filled = self._request.filled(values)
        body: dict[str, Any] = {}
        if self._part.json_ is not None:
            # Written here, so that text keeps its letters and NaN is refused.
            body["content"] = json.dumps(filled["json"], ensure_ascii=False, allow_nan=False).encode()
        elif self._part.form is not None:
            body["data"] = _flat(filled["form"])
        headers = {"accept": "application/json", **({"content-type": "application/json"} if "content" in body else {})}
        headers |= {name.lower(): str(value).strip() for name, value in filled["headers"].items()}
        # `params={}` would drop what the address already has after its question mark.
        query = httpx.QueryParams(_flat(filled["query"]))
        url = httpx.URL(self._address.filled(values))
        return self._opened().build_request(
            self._method, url.copy_merge_params(query) if query else url, headers=headers, **body
        )

    def _opened(self) -> httpx.AsyncClient:
        if self._client is None:
            self._client = httpx.AsyncClient(
                verify=self._tls,
                proxy=self._proxy,
                limits=self._limits,
                timeout=httpx.Timeout(self._timeout_s, connect=min(self._part.connect_timeout_s, self._timeout_s)),
                # A key in a header would go along to wherever the server points.
                follow_redirects=False,
            )
        return self._client

    async def _attempt(self, request: httpx.Request) -> Response:
        clock = asyncio.get_running_loop().time
        began = clock()
        address = without_secrets(str(request.url))
        try:
            async with asyncio.timeout(self._timeout_s):
                reply = await self._opened().send(request)
        except httpx.ConnectTimeout:
            raise _Passing(f"no connection to {address} within {self._part.connect_timeout_s:g} s") from None
        except (TimeoutError, httpx.TimeoutException):
            raise _Passing(f"no answer from {address} within {self._timeout_s:g} s") from None
        except httpx.TransportError as error:
            said = f"{address}: {type(error).__name__}: {error}".removesuffix(": ")
            if isinstance(error, (httpx.UnsupportedProtocol, httpx.LocalProtocolError)) or "CERTIFICATE" in said:
                raise TargetFailure(self._said(said)) from None
            raise _Passing(said) from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:  # a reply that cannot be decoded
            raise TargetFailure(self._said(f"{address}: {type(error).__name__}: {error}")) from None
        latency_ms = round((clock() - began) * 1000, 3)
        self._check_status(reply, address)
        response = self._read(reply)
        return Response(output=response.output, contexts=response.contexts, raw=response.raw, latency_ms=latency_ms)

    def _check_status(self, reply: httpx.Response, address: str) -> None:
        expected = self._part.status
        if reply.status_code in expected if expected is not None else reply.is_success:
            return
        said = f"{address} answered {reply.status_code} {reply.reason_phrase}".rstrip()
        if reply.has_redirect_location:
            said += f", see {without_secrets(reply.headers['location'])}; write the address it points to"
        elif excerpt := " ".join(reply.text.split())[:200]:
            said += f": {excerpt}"
        if reply.status_code in PASSING:
            raise _Passing(said, wait_s=_retry_after(reply.headers.get("retry-after")))
        raise TargetFailure(self._said(said))

    def _read(self, reply: httpx.Response) -> Response:
        text = self._kept_secrets.hidden(reply.text.removeprefix("\ufeff"))
        kind = reply.headers.get("content-type", "").lower()
        if "text/event-stream" in kind:
            raise TargetFailure("answered with a stream of events; ask it for a whole answer (often `stream: false`)")
        if "html" in kind and PAGE.match(text):
            # Of a proxy, a login or a framework; judged as an answer it would be a bad one.
            raise TargetFailure(self._said(f"answered with a web page: {' '.join(text.split())[:200]}"))
        is_json = "json" in kind
        value: Any = text
        if is_json or text.lstrip()[:1] in ("{", "["):
            try:
                value = json.loads(text)
            except (ValueError, RecursionError) as error:
                if is_json:
                    raise TargetFailure(self._said(f"answered with what is no JSON: {error}: {text[:200]}")) from None
        need_contexts = self._need_contexts and self._output is None
        response = response_of(value, need_contexts=need_contexts)
        if self._output is None:
            return response
        return Response(output=_output(self._output, value), contexts=response.contexts, raw=response.raw)

    def _said(self, text: str) -> str:
        return self._secrets.hidden(text)


class _Passing(Exception):
    def __init__(self, said: str, *, wait_s: float | None = None) -> None:
        super().__init__(said)
        self.wait_s = wait_s


def _output(path: str, value: Any) -> str:
    try:
        found = jmespath.search(path, value)
    except jmespath.exceptions.JMESPathError as error:
        raise TargetFailure(f"{path!r} fails: {error}") from None
    if isinstance(found, str):
        return found
    messages = messages_of(found)
    if messages is not None and (said := answer_of(messages)) is not None:
        return said
    keys = f"; the response has the keys {', '.join(value)}" if isinstance(value, Mapping) else ""
    what = "nothing" if found is None else f"a {type(found).__name__}, not text"
    raise TargetFailure(f"there is {what} at {path!r}{keys}")


def _flat(values: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters as text; a list gives its name several times, and what is null is left out."""

    def text(value: Any) -> str:
        return str(value).lower() if isinstance(value, bool) else str(value)

    return {
        key: [text(each) for each in value] if isinstance(value, list) else text(value)
        for key, value in values.items()
        if value is not None
    }


def _retry_after(value: str | None) -> float | None:
    """Seconds, from a number or a date."""
    if value is None:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        at = email.utils.parsedate_to_datetime(value)
    except ValueError:
        return None
    return max(0.0, (at.replace(tzinfo=at.tzinfo or UTC) - datetime.now(UTC)).total_seconds())


def _tls(part: HttpPart, base_dir: Path, where: Where) -> ssl.SSLContext | bool:
    if not part.verify or part.ca is None:
        return part.verify
    path = base_dir / Path(part.ca).expanduser()
    try:
        return ssl.create_default_context(cafile=str(path))
    except FileNotFoundError:
        raise ConfigError(f"no file {part.ca}", where=where("ca"), mend="paths are relative to the suite") from None
    except (ssl.SSLError, OSError) as error:
        raise ConfigError(
            f"{part.ca} holds no certificates: {error}", where=where("ca"), mend="name a file in PEM format"
        ) from None


def _check(part: HttpPart, secrets: Secrets, where: Where) -> None:
    """What would fail for every item alike is found before the first one."""
    for name, value in part.headers.items():
        if "\n" in value or "\r" in value or not value.isprintable() or not (name.isascii() and value.isascii()):
            raise ConfigError(
                "holds a line break or a letter that a header cannot hold",
                where=where("headers", name),
                mend="look at the variable that it comes from",
            )
    if "{" not in part.url:
        try:
            host = httpx.URL(part.url).host
        except httpx.InvalidURL as error:
            raise ConfigError(
                secrets.hidden(f"is no address: {error}"), where=where("url"), mend="write http://host:port/path"
            ) from None
        if not host:
            raise ConfigError("names no host", where=where("url"), mend="write http://host:port/path")


def _proxy(url: str | None, secrets: Secrets, where: Where) -> httpx.Proxy | None:
    if url is None:
        return None
    try:
        proxy = httpx.Proxy(url)
    except (httpx.InvalidURL, ValueError) as error:
        # The sentence quotes the address, which may hold a password that was written out.
        said = "is no address of a proxy" if "@" in url else f"is no address of a proxy: {error}"
        raise ConfigError(secrets.hidden(said), where=where("proxy"), mend="write http://host:port") from None
    if proxy.url.scheme.startswith("socks") and importlib.util.find_spec("socksio") is None:
        raise ConfigError("a SOCKS proxy needs the package socksio", where=where("proxy"), mend="install httpx[socks]")
    return proxy
