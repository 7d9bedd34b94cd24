"""A target that is a program: it reads one JSON line per question and writes one JSON line per answer.

The program is begun once and kept running, in as many processes as calls are in flight. A process that answers late,
ends or writes something else than a reply is replaced: what it may still write would be taken for the next answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import sys
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ragscore.errors import ConfigError
from ragscore.items import Item, Response
from ragscore.secrets import Secrets
from ragscore.suite import CommandPart
from ragscore.targets.calling import conversation
from ragscore.targets.pacing import Pace
from ragscore.targets.protocol import TargetFailure, Where
from ragscore.targets.shapes import response_of

#: A reply may be this long.
LONGEST_LINE = 64 * 1024 * 1024
#: So many of the last lines of stderr are kept for messages.
KEPT_LINES = 5
#: Seconds that a process has to end by itself once nothing more is asked.
GRACE_S = 3.0


class CommandTarget:
    """Asks processes of one program, each one question at a time.

    A request is `{"id", "input", "metadata", "messages"}` on one line. A reply is one line of JSON in any shape that
    `shapes.response_of` reads, or `{"error": "…"}`; where it has an `id`, that must be the request's.

    Args:
        part: The program.
        base_dir: Where it is begun.
        where: Gives the place of a field in the suite, for messages.
        timeout_s: Seconds that one answer may take; the first of a process `part.start_s` more.
        need_contexts: Whether a shape that cannot be read matters.
        pace: When calls may begin.
        secrets: What must not be seen in messages.

    Raises:
        ConfigError: there is no such program.
    """

    def __init__(
        self,
        part: CommandPart,
        *,
        base_dir: Path,
        where: Where,
        timeout_s: float = 60.0,
        need_contexts: bool = True,
        pace: Pace | None = None,
        secrets: Secrets | None = None,
    ) -> None:
        self._part = part
        self._base_dir = base_dir
        self._timeout_s = timeout_s
        self._need_contexts = need_contexts
        self._pace = pace or Pace()
        self._secrets = secrets or Secrets()
        self._program = _program(part.run[0], base_dir, where, self._secrets)
        self._idle: list[_Process] = []

    async def invoke(self, item: Item) -> Response:
        """Answer one item; the process that failed at it is ended."""
        line = json.dumps(
            {"id": item.id, "input": item.input, "metadata": item.metadata, "messages": conversation(item)},
            ensure_ascii=False,
            default=str,
        )
        await self._pace.turn()
        process = self._ready() or await self._begun()
        clock = asyncio.get_running_loop().time
        limit = self._timeout_s + (0 if process.answers else self._part.start_s)
        began = clock()
        try:
            try:
                async with asyncio.timeout(limit):
                    reply = _decoded(await process.ask(line), item)
            except TimeoutError:
                raise TargetFailure(f"no answer within {limit:g} s{process.said()}", passing=True) from None
            latency_ms = round((clock() - began) * 1000, 3)
            process.answers += 1
            if isinstance(reply, Mapping) and isinstance(reply.get("error"), str) and not reply.get("contexts"):
                failure: TargetFailure | None = TargetFailure(reply["error"])
            else:
                failure, response = None, response_of(reply, need_contexts=self._need_contexts)
        except TargetFailure as fault:
            await process.kill()
            raise TargetFailure(self._secrets.hidden(str(fault)), passing=fault.passing) from None
        except BaseException:
            await process.kill()
            raise
        self._idle.append(process)
        if failure is not None:
            raise TargetFailure(self._secrets.hidden(str(failure)))
        return Response(output=response.output, contexts=response.contexts, raw=response.raw, latency_ms=latency_ms)

    async def aclose(self) -> None:
        """End the processes: by the end of their input, else by force."""
        idle, self._idle = self._idle, []
        await asyncio.gather(*(process.end() for process in idle))

    def _ready(self) -> _Process | None:
        while self._idle:
            process = self._idle.pop()
            if process.is_quiet:
                return process
            process.kill_now()  # it ended, or has written what nobody asked for
        return None

    async def _begun(self) -> _Process:
        # Unbuffered, since a Python program that does not flush would seem to hang; UTF-8, since JSON is.
        environment = {"PYTHONUNBUFFERED": "1", "PYTHONIOENCODING": "utf-8", **os.environ, **self._part.env}
        try:
            process = await asyncio.create_subprocess_exec(
                self._program,
                *self._part.run[1:],
                cwd=self._base_dir,
                env=environment,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                limit=LONGEST_LINE,
                # A group of its own: Ctrl-C stops ragscore first, which finishes what is in flight.
                start_new_session=True,
            )
        except OSError as error:
            raise TargetFailure(self._secrets.hidden(f"cannot be started: {error}"), passing=True) from None
        return _Process(process)


class _Process:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.answers = 0
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._stderr: deque[str] = deque(maxlen=KEPT_LINES)
        self._readers = [asyncio.create_task(self._read_stdout()), asyncio.create_task(self._read_stderr())]

    @property
    def is_quiet(self) -> bool:
        """Whether it runs, and has written nothing that was not asked for."""
        return self._process.returncode is None and self._lines.empty()

    async def ask(self, line: str) -> bytes:
        """The next line after `line` was sent.

        Raises:
            TargetFailure: it ended instead, or the line is too long.
        """
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # its end is seen below
            self._process.stdin.write(line.encode() + b"\n")
            await self._process.stdin.drain()
        reply = await self._lines.get()
        if reply is not None:
            return reply
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GRACE_S):
                await asyncio.gather(self._process.wait(), self._readers[1])
        code = self._process.returncode
        how = "closed its output" if code is None else f"ended with code {code}"
        # One that never answered will hardly answer others: the target as a whole is down, not this one question.
        raise TargetFailure(f"{how} before it answered{self.said()}", passing=self.answers == 0)

    def said(self) -> str:
        """The last lines of its stderr, for messages."""
        return f"; it said: {' | '.join(self._stderr)[-500:]}" if self._stderr else ""

    async def end(self) -> None:
        """Let it end by itself, else kill it."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GRACE_S):
                await self._process.wait()
        await self.kill()

    async def kill(self) -> None:
        """Kill it and what it began, and wait until it is gone."""
        self.kill_now()
        await self._process.wait()
        await asyncio.gather(*self._readers, return_exceptions=True)

    def kill_now(self) -> None:
        """Kill it without waiting."""
        for reader in self._readers:
            reader.cancel()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if sys.platform == "win32":
                self._process.kill()
            else:
                os.killpg(self._process.pid, signal.SIGKILL)
        if self._process.stdin is not None:
            self._process.stdin.close()

    async def _read_stdout(self) -> None:
        assert self._process.stdout is not None
        with contextlib.suppress(ValueError):  # a line that is longer than any reply may be
            while line := await self._process.stdout.readline():
                if line.strip():
                    self._lines.put_nowait(line)
        self._lines.put_nowait(None)

    async def _read_stderr(self) -> None:
        assert self._process.stderr is not None
        begun = b""  # a line that has not ended yet
        while chunk := await self._process.stderr.read(65_536):
            *lines, begun = (begun + chunk).split(b"\n")
            begun = begun[-65_536:]  # a program may never end its line
            self._note(lines)
        self._note([begun])

    def _note(self, lines: list[bytes]) -> None:
        self._stderr.extend(text for line in lines if (text := line.decode("utf-8", "replace").strip()))


def _decoded(line: bytes, item: Item) -> Any:
    try:
        reply = json.loads(line)
    except (ValueError, RecursionError):
        shown = line[:120].decode("utf-8", "replace").strip()
        raise TargetFailure(
            f"wrote a line that is no JSON: {shown!r}; write replies alone to stdout, and all else to stderr"
        ) from None
    if isinstance(reply, Mapping) and "id" in reply and str(reply["id"]) != item.id:
        raise TargetFailure(f"answered {str(reply['id'])!r} when {item.id!r} was asked")
    return reply


def _program(name: str, base_dir: Path, where: Where, secrets: Secrets) -> str:
    """Where the program is: in the suite's folder when it is a path, else on the PATH; `python` is this very one."""
    if name in ("python", "python3") and shutil.which(name) is None:
        return sys.executable
    found = shutil.which(str(base_dir / name)) if os.sep in name or "/" in name else shutil.which(name)
    if found is None:
        raise ConfigError(
            secrets.hidden(f"there is no program {name!r}"),
            where=where("run"),
            mend="name one on the PATH, or a path relative to the suite that may be executed",
        )
    return found
