"""How the misbehaving server is told to behave, and what it counts."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from tests.llm_server import faults


@dataclass(frozen=True, slots=True)
class Config:
    """How the server behaves."""

    latency_ms: float = 0.0  # from the last byte of the request to the first of the reply
    share: float = 0.0  # of requests that get one of `faults`
    faults: tuple[str, ...] = faults.NOTICEABLE
    always: tuple[str, ...] = ()  # faults of every request
    seed: int = 0
    in_a_row: int = 2  # drawn faults that meet one content in a row at most
    retry_after_s: float | None = 0.1  # with 429 and 503; None for no header
    window: int | None = None  # tokens, prompt and reply together; more is a context-length error
    api_key: str | None = None  # the only one accepted
    only_model: str | None = None  # the only one there is
    keep: int = 50  # last requests that /_stats shows

    def changed(self, values: Mapping[str, Any]) -> Config:
        """A copy with `values` (JSON) in place; an unknown name is a ValueError."""
        unknown = set(values) - {part.name for part in fields(self)}
        named = [*values.get("faults", ()), *values.get("always", ())]
        if unknown or (unknown := set(named) - set(faults.ALL)):
            raise ValueError(f"unknown: {', '.join(sorted(unknown))}")
        return Config(**{**asdict(self), **{k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}})


@dataclass(slots=True)
class Stats:
    """What was asked and answered."""

    requests: int = 0
    answered: int = 0
    in_flight: int = 0
    max_in_flight: int = 0
    prompt_chars: int = 0
    abandoned: int = 0
    per_task: Counter[str] = field(default_factory=Counter)
    per_fault: Counter[str] = field(default_factory=Counter)
    attempts: Counter[str] = field(default_factory=Counter)
    honest: Counter[str] = field(default_factory=Counter)
    in_a_row: Counter[str] = field(default_factory=Counter)
    least_room: dict[str, float] = field(default_factory=dict)
    systems: set[str] = field(default_factory=set)
    last: deque[dict[str, Any]] = field(default_factory=deque)

    def described(self) -> dict[str, Any]:
        """The answer of /_stats.

        `requests`: chat completions asked for. `answered`: 200 with a usable body that was sent to a client that
        was still there, whole or with rows missing. `honest`: per content, how often it was answered in full (a
        figure above 1 was paid twice). `attempts`: per content, how often it was asked; what was said about an earlier
        reply is not part of the content. `abandoned`: the client left before the reply. `per_fault` counts what
        was done; `last` are the last requests (path, headers, body, fault, and the `reply` of those that got one).
        """
        return {
            "requests": self.requests,
            "answered": self.answered,
            "abandoned": self.abandoned,
            "in_flight": self.in_flight,
            "max_in_flight": self.max_in_flight,
            "prompt_chars": self.prompt_chars,
            "distinct": len(self.attempts),
            "per_task": dict(self.per_task),
            "per_fault": dict(self.per_fault),
            "attempts": dict(self.attempts),
            "honest": dict(self.honest),
            "last": list(self.last),
        }
