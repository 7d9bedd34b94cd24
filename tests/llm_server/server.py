"""A model's server that misbehaves on request: OpenAI's chat completions over HTTP, in a process of its own.

    python server.py --port 0 --latency-ms 100 --share 0.2 --faults 429,500,malformed

prints its port and serves until it is killed, or until its standard input closes with `--until-stdin-closes`.

    POST /v1/chat/completions    honest by words (`answers`), spoilt as asked for (`faults`)
    GET  /v1/models
    GET  /_stats                 what was asked and answered; see `state.Stats.described`
    POST /_control               fields of `state.Config` to change, as JSON; {"reset": true} also forgets all counts
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

if not __package__:  # run as a script: the package that holds it is not on the path
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from tests.llm_server import answers, faults
from tests.llm_server.state import Config, Stats


@dataclass(frozen=True, slots=True)
class Asked:
    """An HTTP request."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


class ModelServer:
    """Answers requests as its configuration says."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.stats = Stats()

    async def connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serves the requests of one connection, one after another."""
        with suppress(ConnectionError, asyncio.IncompleteReadError, ValueError):
            while (asked := await _read(reader)) is not None:
                if asked.path.endswith("/chat/completions") and asked.method == "POST":
                    if not await self._chat(asked, reader, writer):
                        break
                else:
                    await _reply(writer, *self._about(asked))
        writer.transport.abort()

    def _about(self, asked: Asked) -> tuple[int, Any]:
        path = asked.path.rstrip("/")
        if path.endswith("/models"):
            name = self.config.only_model or "lexical"
            return 200, {"object": "list", "data": [{"id": name, "object": "model", "owned_by": "tests"}]}
        if path == "/_stats":
            return 200, self.stats.described()
        if path == "/_control" and asked.method == "POST":
            wanted = json.loads(asked.body)
            if wanted.pop("reset", False):
                in_flight = self.stats.in_flight
                self.stats = Stats(in_flight=in_flight, max_in_flight=in_flight)
            try:
                self.config = self.config.changed(wanted)
            except ValueError as unknown:
                return 400, {"error": {"message": str(unknown)}}
            return 200, asdict(self.config)
        return 404, _error(faults.Rejection(404, f"Unknown request URL: {asked.path}.", "unknown_url"))

    async def _chat(self, asked: Asked, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One chat completion; False when the connection cannot be used any more."""
        at = asyncio.get_running_loop().time() + self.config.latency_ms / 1000
        stats = self.stats
        stats.requests += 1
        stats.in_flight += 1
        stats.max_in_flight = max(stats.max_in_flight, stats.in_flight)
        try:
            return await self._answer(asked, reader, writer, at, stats)
        finally:
            stats.in_flight -= 1
            if self.stats is not stats:  # reset meanwhile
                self.stats.in_flight -= 1

    async def _answer(
        self, asked: Asked, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, at: float, stats: Stats
    ) -> bool:
        config = self.config
        try:
            body = json.loads(asked.body)
            prompt = answers.read(body["messages"])
        except (ValueError, KeyError, TypeError, AttributeError):
            await _reply(writer, 400, _error(faults.Rejection(400, "We could not parse your request.", "bad_body")))
            return True
        chars = sum(len(str(message.get("content"))) for message in body["messages"])
        stats.prompt_chars += chars
        stats.per_task[prompt.task] += 1
        fault = self._fault(body, prompt)
        while len(stats.last) >= max(1, config.keep):
            stats.last.popleft()
        seen = {"path": asked.path, "headers": dict(asked.headers), "body": body, "fault": fault}
        stats.last.append(seen)
        rejected = self._refused(asked, body, chars) or (faults.rejection(fault, body) if fault else None)
        if fault == "hang":
            stats.per_fault[fault] += 1
            await reader.read(1)  # until the client gives up
            return False
        reply, content_ok = (None, False) if rejected else self._completion(body, prompt, fault, chars)
        await asyncio.sleep(at - asyncio.get_running_loop().time())
        if fault is not None:
            stats.per_fault[fault] += 1
        if reader.at_eof() or writer.transport.is_closing():
            stats.abandoned += 1
            return False
        if fault == "drop":
            if faults.number("drop", prompt.content) % 2:  # some bytes first
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 5000\r\n\r\n{")
                await writer.drain()
            return False
        if rejected is not None:
            retry_after = config.retry_after_s if fault in ("429", "503") else None
            await _reply(writer, rejected.status, _error(rejected), retry_after=retry_after)
            return True
        if reply is not None:
            seen["reply"] = reply["choices"][0]["message"]["content"]
        await _reply(writer, 200, reply)
        if content_ok:
            stats.answered += 1
            if fault is None or fault in faults.HONEST:
                stats.honest[_key(prompt)] += 1
        return True

    def _fault(self, body: Mapping[str, Any], prompt: answers.Prompt) -> str | None:
        """The fault of this request: one of `always` that applies to it, else one drawn by content and attempt."""
        config, stats, key = self.config, self.stats, _key(prompt)
        attempt = stats.attempts[key]
        stats.attempts[key] += 1
        room = _room(body)
        more_room = room > stats.least_room.setdefault(key, room)
        for fault in config.always:
            if faults.applies(fault, body, prompt, more_room=more_room):
                return fault
        if stats.in_a_row[key] >= config.in_a_row:
            stats.in_a_row[key] = 0
            return None
        fitting = [f for f in config.faults if faults.applies(f, body, prompt, more_room=more_room)]
        drawn = faults.draw(fitting, config.share, seed=config.seed, content=prompt.content, attempt=attempt)
        stats.in_a_row[key] = stats.in_a_row[key] + 1 if drawn is not None else 0
        return drawn

    def _refused(self, asked: Asked, body: Mapping[str, Any], chars: int) -> faults.Rejection | None:
        config = self.config
        if config.api_key is not None and asked.headers.get("authorization") != f"Bearer {config.api_key}":
            return faults.rejection("401", body)
        model = body.get("model")
        if config.only_model is not None and model != config.only_model:
            what = f"The model `{model}` does not exist or you do not have access to it."
            return faults.Rejection(404, what, "model_not_found")
        room = _room(body)
        wanted = _tokens(chars) + (0 if math.isinf(room) else int(room))
        if config.window is not None and wanted > config.window:
            return faults.Rejection(
                400,
                f"This model's maximum context length is {config.window} tokens. "
                f"However, you requested {wanted} tokens "
                f"({_tokens(chars)} in the messages, {wanted - _tokens(chars)} in the completion). "
                "Please reduce the length of the messages or completion.",
                "context_length_exceeded",
                "messages",
            )
        return None

    def _completion(
        self, body: Mapping[str, Any], prompt: answers.Prompt, fault: str | None, chars: int
    ) -> tuple[dict[str, Any], bool]:
        """The body of the reply, and whether it is of use."""
        schema = ((body.get("response_format") or {}).get("json_schema") or {}).get("schema")
        text = faults.spoilt(fault, answers.honest(prompt, schema), prompt)
        cut = fault == "truncated"
        if _tokens(len(text)) > _room(body):
            text, cut = text[: int(_room(body)) * 4], True
        systems = "".join(str(m.get("content")) for m in body["messages"] if m.get("role") == "system")
        cached = _tokens(len(systems)) if systems in self.stats.systems else 0
        self.stats.systems.add(systems)
        prompt_tokens, completion_tokens = _tokens(chars), _tokens(len(text))
        reply = {
            "id": f"chatcmpl-{self.stats.requests}",
            "object": "chat.completion",
            "created": 1_700_000_000,
            "model": body.get("model", "lexical"),
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": text},
                    "finish_reason": "length" if cut else "stop",
                }
            ],
            "usage": {
                "prompt_tokens": prompt_tokens,
                "completion_tokens": completion_tokens,
                "total_tokens": prompt_tokens + completion_tokens,
                "prompt_tokens_details": {"cached_tokens": cached},
            },
        }
        return reply, not cut and fault != "malformed"


def _key(prompt: answers.Prompt) -> str:
    return f"{prompt.task}-{faults.number(prompt.content):016x}"


def _tokens(chars: int) -> int:
    return math.ceil(chars / 4)


def _room(body: Mapping[str, Any]) -> float:
    room = body.get("max_completion_tokens") or body.get("max_tokens")
    return math.inf if room is None else float(room)


def _error(rejection: faults.Rejection) -> dict[str, Any]:
    return {
        "error": {
            "message": rejection.message,
            "type": rejection.kind,
            "param": rejection.parameter,
            "code": rejection.code,
        }
    }


async def _read(reader: asyncio.StreamReader) -> Asked | None:
    """The next request; None when the client has no more."""
    line = (await reader.readline()).decode("latin-1")
    if not line.strip():
        return None
    method, target, _ = line.split(" ", 2)
    headers: dict[str, str] = {}
    while (header := (await reader.readline()).decode("latin-1").rstrip("\r\n")) != "":
        name, _, value = header.partition(":")
        headers[name.strip().lower()] = value.strip()
    if headers.get("transfer-encoding", "").lower() == "chunked":
        body = b""
        while (size := int((await reader.readline()).split(b";")[0], 16)) > 0:
            body += (await reader.readexactly(size + 2))[:-2]
        await reader.readline()
    else:
        body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Asked(method, target.partition("?")[0], headers, body)


async def _reply(writer: asyncio.StreamWriter, status: int, body: Any, *, retry_after: float | None = None) -> None:
    payload = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
    head = f"HTTP/1.1 {status} -\r\ncontent-type: application/json\r\ncontent-length: {len(payload)}\r\n"
    if retry_after is not None:
        head += f"retry-after: {retry_after:g}\r\n"
    writer.write(head.encode() + b"\r\n" + payload)
    await writer.drain()


async def serve(config: Config, port: int, *, until_stdin_closes: bool = False) -> None:
    """Serves on 127.0.0.1 until told to stop; prints the port first."""
    model = ModelServer(config)
    server = await asyncio.start_server(model.connection, "127.0.0.1", port, limit=2**20, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)  # noqa: T201
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    if until_stdin_closes:
        loop.run_in_executor(None, lambda: (sys.stdin.buffer.read(), loop.call_soon_threadsafe(stopped.set)))
    with suppress(NotImplementedError):  # Windows
        loop.add_signal_handler(signal.SIGTERM, stopped.set)
        loop.add_signal_handler(signal.SIGINT, stopped.set)
    await stopped.wait()
    os._exit(0)  # connections may hang on purpose: nothing is waited for


def main() -> None:
    """The command line; every field of `Config` is an option."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--until-stdin-closes", action="store_true")
    parser.add_argument("--config", type=json.loads, default={}, help="a JSON object of Config fields")
    for part in fields(Config):
        kind = part.type if isinstance(part.type, str) else ""
        parse = _names if "tuple" in kind else float if "float" in kind else int if "int" in kind else str
        parser.add_argument(f"--{part.name.replace('_', '-')}", type=parse, default=None)
    given = vars(parser.parse_args())
    port, until, config = given.pop("port"), given.pop("until_stdin_closes"), given.pop("config")
    config |= {name: value for name, value in given.items() if value is not None}
    try:
        chosen = Config().changed(config)
    except ValueError as unknown:
        parser.error(str(unknown))
    asyncio.run(serve(chosen, port, until_stdin_closes=until))


def _names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


if __name__ == "__main__":
    main()
