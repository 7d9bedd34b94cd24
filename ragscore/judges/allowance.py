"""What a process may send where several share one limit: it asks somebody outside for leave, before its own limiter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Allowance(Protocol):
    """Leave to send requests to one model, given by whoever knows all that send to it."""

    async def take(self, tokens: int) -> None:
        """Wait until one request of about so many tokens, prompt and completion, may be sent.

        Raises:
            EvaluationError: whoever gives leave does not answer.
        """
        ...


#: Makes the allowance of a model at an address (None for the provider's own), which allows `rpm` requests and `tpm`
#: tokens in a minute; None where neither is limited.
Sharing = Callable[[str, str | None, int | None, int | None], Allowance | None]

_sharing: Sharing | None = None


def share(sharing: Sharing | None) -> None:
    """From now on this process is one of several: each limiter that it makes asks the allowance that this makes.

    Args:
        sharing: Makes allowances; None where the process is alone again.
    """
    global _sharing
    _sharing = sharing


def allowance_for(model: str, base_url: str | None, *, rpm: int | None, tpm: int | None) -> Allowance | None:
    """The allowance of a model that is shared with other processes; None where this process is alone."""
    return _sharing(model, base_url, rpm, tpm) if _sharing is not None else None
