"""One request to a model and what came of it: the seam between the judge and the client that reaches the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

Mode = Literal["json_schema", "json_object", "text"]
#: From the strictest to the plainest way to ask for structure.
MODES: tuple[Mode, ...] = ("json_schema", "json_object", "text")


@dataclass(frozen=True, slots=True)
class Request:
    """What is sent: two or more chat messages, the schema of the reply, and how to ask for it."""

    task: str
    messages: tuple[Mapping[str, str], ...]
    schema_name: str
    schema: Mapping[str, Any]
    mode: Mode = "json_schema"
    max_tokens: int = 2048


@dataclass(frozen=True, slots=True)
class Completion:
    """What came back. Tokens and cost are None when the server did not say and they cannot be known."""

    text: str
    finish_reason: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    cost_usd: float | None = None
    latency_ms: float | None = None


class CallFault(Exception):
    """A request that was not answered. `outcome` is the word for it in the table `judge_calls`."""

    outcome = "server_error"

    def __init__(self, what: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.retry_after_s = retry_after_s


class PassingFault(CallFault):
    """5xx, dropped connection, time-out: the same request may succeed later."""


class TimedOut(PassingFault):
    """No answer within the attempt's time."""

    outcome = "timeout"


class Throttled(PassingFault):
    """429: too many requests or tokens; `retry_after_s` is what the provider asked for."""

    outcome = "throttled"


class RefusedFault(CallFault):
    """401, 403, 404, unknown model, no credit: no request of this run will succeed."""

    outcome = "refused"


class BadRequest(CallFault):
    """400: this request is not accepted as it is. `parameter` names the parameter at fault where that is known."""

    outcome = "bad_request"

    def __init__(self, what: str, *, parameter: str | None = None) -> None:
        super().__init__(what)
        self.parameter = parameter


class TooLong(BadRequest):
    """The prompt does not fit the model's window."""

    outcome = "too_long"


class Client(Protocol):
    """Reaches one model with one attempt per call: no retries, no limits, no memory."""

    @property
    def model(self) -> str: ...
    @property
    def base_url(self) -> str | None: ...

    async def complete(self, request: Request, *, params: Mapping[str, Any], timeout_s: float) -> Completion:
        """Send one request once.

        Args:
            request: What to send.
            params: Effective model parameters (temperature and such).
            timeout_s: Seconds until `TimedOut`.

        Raises:
            CallFault: it was not answered; one of the kinds above.
        """
        ...

    def count_tokens(self, text: str) -> int:
        """Tokens of `text` for this model, or a safe estimate."""
        ...

    def window(self) -> int | None:
        """Tokens that the model takes in all, or None when unknown."""
        ...

    def has_price(self) -> bool:
        """Whether costs will be known."""
        ...
