"""Whether the Prefect API still answers while a run goes on that somebody waits for at a terminal.

Prefect itself only finds out at the end, and then repeats each request for a minute. The run does not need the API: it
goes on, everything is in the history, and what the API was not told `ragscore resume` tells it.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
from collections.abc import AsyncIterator, Callable
from contextvars import ContextVar
from types import TracebackType

import httpx
from prefect.events.worker import EventsWorker
from prefect.exceptions import Abort
from prefect.settings import Settings

from ragscore.addresses import without_secrets

#: Seconds between two questions whether it is there. It is lost when two of them in a row get no answer.
BETWEEN_S = 1.0
#: Seconds that an answer may take: a busy server is not a lost one.
ANSWERS_WITHIN_S = 15.0
#: What a request to a lost API raises; the last one is Prefect's, when retries are cut off in the middle.
FAULTS = (httpx.HTTPError, AssertionError)


class Contact:
    """Asks the API every second whether it is there, for as long as the `async with` lasts.

    While it is not, the settings say that no request is repeated and no log line sent.

    Args:
        api: The address of the API.
        settings: Those in force for the run; changed in place, since Prefect's own threads hold them too.
        tell: Is told once that the API is lost, and once that it is back.
    """

    def __init__(self, api: str, settings: Settings, tell: Callable[[str], None]) -> None:
        self.is_lost = False
        self._api = api.rstrip("/")
        self._settings = settings
        self._retries = settings.client.max_retries
        self._sends_logs = settings.logging.to_api.enabled
        self._tell = tell
        self._watch: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Contact:
        self._token = _contact.set(self)
        self._client = httpx.AsyncClient(timeout=ANSWERS_WITHIN_S)
        self._watch = asyncio.create_task(self._watched())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._watch is not None:
            self._watch.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._watch
        await self._client.aclose()
        _contact.reset(self._token)

    async def look(self) -> bool:
        """Whether the API is lost, asked now unless that is known already."""
        if not self.is_lost and not await self._answers():
            await asyncio.sleep(BETWEEN_S)
            if not await self._answers():
                self._turned(lost=True)
        return self.is_lost

    async def _watched(self) -> None:
        while True:
            await asyncio.sleep(BETWEEN_S)
            if not self.is_lost:
                await self.look()
            elif await self._answers():
                self._turned(lost=False)

    async def _answers(self) -> bool:
        try:
            # A refusal is an answer (429 of a busy proxy); 502 to 504 come from a proxy whose server is gone.
            return (await self._client.get(f"{self._api}/health")).status_code < 500
        except httpx.HTTPError:
            return False

    def _turned(self, *, lost: bool) -> None:
        if lost is self.is_lost:
            return
        self.is_lost = lost
        self._settings.client.max_retries = 0 if lost else self._retries
        self._settings.logging.to_api.enabled = self._sends_logs and not lost
        gone = "does not answer any more; the run goes on without it, and all is kept in the history"
        self._tell(f"the Prefect API {gone if lost else 'answers again'}: {without_secrets(self._api)}")


_contact: ContextVar[Contact | None] = ContextVar("contact", default=None)


def is_lost() -> bool:
    """Whether the API of this run does not answer; False where nobody watches it."""
    contact = _contact.get()
    return contact is not None and contact.is_lost


class Left(Abort):
    """A flow was left without telling the API how it ended; what it would have been told is the cause, if an error."""


@contextlib.asynccontextmanager
async def or_left() -> AsyncIterator[None]:
    """Around the body of a flow: leave it, instead of telling an API that does not answer how it ended.

    Raises:
        Left: the API is lost.
    """
    contact = _contact.get()
    try:
        yield
    except BaseException as error:
        if contact is not None and contact.is_lost:
            raise Left("the API does not answer") from error
        raise
    if contact is not None and await contact.look():
        raise Left("the API does not answer")


def forget_events() -> None:
    """Drop the events that wait to be sent: the end of the process would wait for a dead API with each of them."""
    waiting: queue.Queue[object] | None = getattr(EventsWorker.instance(), "_queue", None)
    with contextlib.suppress(queue.Empty):
        while waiting is not None:
            waiting.get_nowait()
