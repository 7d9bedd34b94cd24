"""What was learnt about one model at one address: how to ask it for structure, and which parameters it refuses.

Learnt from its errors, once, and kept from run to run (`Learnt`). What its answers depend on, its effective
parameters, is only kept when it was learnt by the probe before the first item: that is what remembered judgements are
kept under, and it must not change within a run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Protocol

from ragscore.errors import ConfigError
from ragscore.items import digest
from ragscore.judges.llm.wire import MODES, BadRequest, Mode, Request, TooLong

#: Parameters that are ours to set, or that would change what a call means.
RESERVED = frozenset(
    {"model", "messages", "stream", "n", "tools", "tool_choice", "functions", "response_format", "timeout", "api_key"}
    | {"api_base", "base_url", "max_retries", "num_retries", "fallbacks", "drop_params", "max_tokens"}
    | {"max_completion_tokens", "mock_response", "caching", "cache", "temperature"}
)
_LIMIT = re.compile(r"(?:context (?:length|window|size)|n_ctx|limit)\D{0,24}(\d{3,9})", re.I)
_AT_MOST = re.compile(r"(?:at most|less than or equal to|<=|maximum(?: value)?(?: of| is)?:?)\s*(\d{2,7})", re.I)
#: A reply with less room than this cannot hold a verdict.
LEAST_ROOM = 64
#: A window below this holds no prompt of ours.
LEAST_WINDOW = 256


class Learnt(Protocol):
    """Keeps small JSON objects from run to run."""

    def get(self, key: str) -> dict[str, Any] | None:
        """What is kept under `key`."""
        ...

    def put(self, key: str, value: dict[str, Any]) -> None:
        """Keep `value` under `key`, in place of what was there."""
        ...


class Manners:
    """How to speak to one model at one address; changes as the model objects.

    Args:
        model: As LiteLLM writes it.
        base_url: The effective address.
        params: Parameters that the suite asks for, temperature among them.
        max_tokens: Room for a reply to begin with.
        learnt: Where it is kept; None: for this process only.
    """

    def __init__(
        self,
        model: str,
        base_url: str | None,
        *,
        params: Mapping[str, Any],
        max_tokens: int,
        learnt: Learnt | None = None,
    ) -> None:
        self._asked = dict(params)
        self._max_tokens = max_tokens
        self._learnt = learnt
        # What is refused depends on what is asked for: another temperature may be fine.
        self._key = digest("manners", 1, model, base_url, self._asked)
        self.mode: Mode = "json_schema"
        self.dropped: frozenset[str] = frozenset()
        self.window: int | None = None
        self.proven = False
        self._room_name: str | None = "max_tokens"
        self._room_most: int | None = None
        self._dropped_when_proven: frozenset[str] = frozenset()
        self.recall()

    @property
    def params(self) -> dict[str, Any]:
        """The effective parameters besides the room for a reply."""
        return {name: value for name, value in sorted(self._asked.items()) if name not in self.dropped}

    def room(self, wanted: int | None = None) -> int:
        """Tokens for one reply: what is wanted (by default the suite's `max_tokens`), as far as the model allows."""
        room = wanted if wanted is not None else self._max_tokens
        if self._room_most is not None:
            room = min(room, self._room_most)
        if self.window is not None:
            room = min(room, max(LEAST_ROOM, self.window // 3))
        return room

    def sent(self, room: int) -> dict[str, Any]:
        """The parameters of a request with that room, under the name that the model takes it by."""
        return self.params | ({"max_tokens": None} if self._room_name is None else {self._room_name: room})

    def prove(self) -> None:
        """The model answers us, spoken to like this."""
        self.proven = True
        self._dropped_when_proven = self.dropped
        self._keep()

    def learn(self, fault: BadRequest, request: Request, *, blind: bool = False) -> bool:
        """Take an objection to heart.

        Args:
            fault: What the model objects to in `request`.
            request: What was sent.
            blind: Ask for structure in a plainer way, too, when it does not say what it objects to.

        Returns:
            Whether asking again makes sense, since something is now done differently from `request`.
        """
        if isinstance(fault, TooLong):
            return False
        name = fault.parameter
        if name == "response_format" or (name is None and blind):
            return self._plainer(request.mode)
        if name in ("max_tokens", "max_completion_tokens"):
            return self._about_room(name, fault.what, request)
        if name is not None and name in self._asked:
            self.dropped |= {name}
            return True
        return False

    def learn_window(self, fault: TooLong, *, prompt_tokens: int) -> bool:
        """The window that a `TooLong` speaks of, else less than the prompt that was refused.

        Returns:
            Whether it is smaller than what was thought, so that splitting makes sense.
        """
        named = [int(number) for number in _LIMIT.findall(fault.what)]
        window = max(LEAST_WINDOW, min(named) if named else prompt_tokens * 3 // 4)
        if self.window is not None and window >= self.window:
            window = max(LEAST_WINDOW, self.window * 3 // 4)
            if window >= self.window:
                return False
        self.window = window
        self._keep()
        return True

    def _plainer(self, refused: Mode) -> bool:
        at = MODES.index(refused)
        if at + 1 == len(MODES):
            return False
        # Requests in flight together object together: one step, not one for each.
        self.mode = MODES[max(MODES.index(self.mode), at + 1)]
        self._keep()
        return True

    def _about_room(self, name: str, what: str, request: Request) -> bool:
        most = _AT_MOST.search(what)
        if most is not None or re.search(r"too (?:large|high|big)", what, re.I):
            limit = int(most[1]) if most is not None else request.max_tokens // 2
            self._room_most = max(LEAST_ROOM, min(limit, request.max_tokens - 1))
            self._keep()
            return request.max_tokens > LEAST_ROOM
        if name == "max_tokens" and self._room_name == "max_tokens":
            self._room_name = "max_completion_tokens"
        elif name == "max_completion_tokens" and self._room_name is not None:
            self._room_name = None
        elif name == self._room_name:
            return False
        self._keep()
        return True

    @property
    def key(self) -> str:
        """What these manners are kept under: one for each model, address and set of parameters asked for."""
        return self._key

    @property
    def learnt(self) -> dict[str, Any]:
        """What was learnt, as it is kept: JSON-able."""
        return {
            "mode": self.mode,
            "dropped": sorted(self._dropped_when_proven),
            "window": self.window,
            "room_name": self._room_name,
            "room_most": self._room_most,
            "proven": self.proven,
        }

    def take_over(self, learnt: Mapping[str, Any]) -> None:
        """Speak to the model as somebody learnt to do who asked it under the same `key`."""
        if learnt.get("mode") in MODES:
            self.mode = learnt["mode"]
        self.dropped = self._dropped_when_proven = frozenset(learnt.get("dropped", ()))
        self.window = learnt.get("window")
        self._room_name = learnt.get("room_name", "max_tokens")
        self._room_most = learnt.get("room_most")
        self.proven = bool(learnt.get("proven", False))

    def recall(self) -> None:
        """Speak to the model as was learnt by now, here or elsewhere: another seat of a jury may have asked it."""
        self.take_over((self._learnt.get(self._key) if self._learnt is not None else None) or {})

    def _keep(self) -> None:
        if self._learnt is not None and self.proven:
            self._learnt.put(self._key, self.learnt)


def checked_params(params: Mapping[str, Any], *, temperature: float | None) -> dict[str, Any]:
    """The suite's `params` and `temperature` as they are asked for.

    Raises:
        ConfigError: one of them is ours to set, or is not JSON.
    """
    if ours := sorted(RESERVED & params.keys()):
        mend = "use the option `judge.{0}`" if ours[0] in ("max_tokens", "temperature", "base_url") else "leave it out"
        raise ConfigError(f"`{ours[0]}` cannot be set in params", where="judge.params", mend=mend.format(ours[0]))
    try:
        json.dumps(params, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"not JSON: {error}", where="judge.params", mend="write numbers, texts and lists") from error
    return dict(params) | ({} if temperature is None else {"temperature": temperature})
