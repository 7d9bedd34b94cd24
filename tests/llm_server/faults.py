"""The ways in which a model's server misbehaves, and when it does.

A fault is drawn from a hash of (what was asked, how often it has been asked), so that runs repeat under concurrency;
at most two in a row meet one question.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.llm_server.answers import Prompt

#: Nothing of use is answered, and the same request may be answered later.
PASSING = ("429", "500", "503", "hang", "drop")
#: The reply is 200, and is of no use or not of full use.
SPOILT = ("malformed", "truncated", "omitted")
#: The reply is 200 and holds an honest answer for whoever reads it with care.
DRESSED = ("fenced", "think", "duplicated", "phantom", "labels", "prose")
#: The request is rejected as it is; another form of it is answered.
REJECTING = ("rejects_response_format", "rejects_json_schema", "rejects_temperature", "rejects_max_tokens")
#: The reply is wrong in a way that its form does not show.
UNNOTICED = ("wrong_language", "yes_to_all", "fewer_claims")
#: No request is answered.
FATAL = ("401", "no_credit")

NOTICEABLE = (*PASSING, *SPOILT, *DRESSED, *REJECTING)
ALL = (*NOTICEABLE, *UNNOTICED, *FATAL)
#: Faults that leave an honest answer in the reply: a question answered like this needs no further call.
HONEST = (*DRESSED, "plain")


@dataclass(frozen=True, slots=True)
class Rejection:
    """An HTTP error in OpenAI's form."""

    status: int
    message: str
    code: str
    parameter: str | None = None
    kind: str = "invalid_request_error"


def number(*parts: object) -> int:
    """A number that hangs on `parts` alone."""
    return int.from_bytes(hashlib.sha256("\x00".join(map(str, parts)).encode()).digest()[:8])


def draw(faults: Sequence[str], share: float, *, seed: int, content: str, attempt: int) -> str | None:
    """The fault of this attempt at this content, out of `faults`, with probability `share`."""
    if not faults or number("whether", seed, content, attempt) / 2.0**64 >= share:
        return None
    return faults[number("which", seed, content, attempt) % len(faults)]


def applies(fault: str, body: Mapping[str, Any], prompt: Prompt, *, more_room: bool) -> bool:
    """Whether the fault makes a difference to this request.

    `more_room`: the content has been asked before with less room for the reply.
    """
    wanted = (body.get("response_format") or {}).get("type", "text")
    if fault == "rejects_response_format":
        return bool(wanted != "text")
    if fault == "rejects_json_schema":
        return bool(wanted == "json_schema")
    if fault == "rejects_temperature":
        return body.get("temperature") not in (None, 1, 1.0)
    if fault == "rejects_max_tokens":
        return "max_tokens" in body
    if fault == "truncated":
        return not more_room
    if fault in ("omitted", "phantom", "labels", "wrong_language", "yes_to_all"):
        return prompt.task in ("attribution", "relevance")  # more or fewer claims would be claims, not a fault
    if fault == "fewer_claims":
        return prompt.task == "extraction"
    if fault == "duplicated":
        return prompt.task != "probe"
    return True


def rejection(fault: str, body: Mapping[str, Any]) -> Rejection | None:
    """The HTTP error of a fault that is one."""
    wanted = (body.get("response_format") or {}).get("type")
    return {
        "429": Rejection(429, "Rate limit reached for requests.", "rate_limit_exceeded", kind="requests"),
        "no_credit": Rejection(
            429,
            "You exceeded your current quota, please check your plan.",
            "insufficient_quota",
            kind="insufficient_quota",
        ),
        "500": Rejection(
            500, "The server had an error while processing your request.", "server_error", kind="server_error"
        ),
        "503": Rejection(503, "The engine is currently overloaded.", "overloaded", kind="server_error"),
        "401": Rejection(401, "Incorrect API key provided.", "invalid_api_key"),
        "rejects_response_format": Rejection(
            400,
            f"Invalid parameter: 'response_format' of type '{wanted}' is not supported with this model.",
            "unsupported_parameter",
            "response_format",
        ),
        "rejects_json_schema": Rejection(
            400,
            "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model.",
            "unsupported_parameter",
            "response_format",
        ),
        "rejects_temperature": Rejection(
            400,
            f"Unsupported value: 'temperature' does not support {body.get('temperature')} with this model. "
            "Only the default (1) value is supported.",
            "unsupported_value",
            "temperature",
        ),
        "rejects_max_tokens": Rejection(
            400,
            "Unsupported parameter: 'max_tokens' is not supported with this model. "
            "Use 'max_completion_tokens' instead.",
            "unsupported_parameter",
            "max_tokens",
        ),
    }.get(fault)


def spoilt(fault: str | None, reply: Mapping[str, Any], prompt: Prompt) -> str:
    """The text of the reply with this fault in it."""
    which = number("variant", fault, prompt.content)
    rows = _ROWS.get(fault or "")
    if rows is not None:
        reply = {name: rows(list(values), which) for name, values in reply.items()}
    text = json.dumps(reply, ensure_ascii=False)
    if fault == "malformed":
        return text[:-1] + "," if which % 2 else text.replace('": ', '" = ', 1)
    if fault == "truncated":
        return text[: max(1, len(text) * 3 // 5)]
    if fault == "fenced":
        return f"```json\n{text}\n```" if which % 2 else f"```\n{text}\n```"
    if fault == "think":
        thoughts = 'The ids are {"id": "c1"} and so on. Let me weigh them one by one.\n'
        return f"{'<think>' if which % 2 else ''}{thoughts}</think>\n\n{text}"
    if fault == "prose":
        return f"Sure! Here is my assessment:\n\n{text}\n\nLet me know if you need anything else."
    return text


def _omitted(rows: list[Any], which: int) -> list[Any]:
    return rows[1::2] if which % 2 else rows[:-1]


def _duplicated(rows: list[Any], which: int) -> list[Any]:
    again = [_turned(row) if which % 2 and isinstance(row, dict) else row for row in rows[:2]]
    return [*rows, *again]


def _phantom(rows: list[Any], which: int) -> list[Any]:
    if not rows:
        return rows
    extra = [{**rows[0], "id": id} for id in ("c99", "p99", "1", "")]
    return [*extra, *rows] if which % 2 else [*rows, *extra]


def _labels(rows: list[Any], which: int) -> list[Any]:
    yes, no = (("Yes.", "No."), ("TRUE", "FALSE"), ("ja", "nein"))[which % 3]
    return [{key: (yes if v else no) if isinstance(v, bool) else v for key, v in row.items()} for row in rows]


def _wrong_language(rows: list[Any], which: int) -> list[Any]:
    said = {"quote": "Das steht so in der Quelle.", "why": "Die Quelle sagt es."}
    return [{key: said.get(key, v) if v else v for key, v in row.items()} for row in rows]


def _yes_to_all(rows: list[Any], which: int) -> list[Any]:
    yes = {"supported": True, "relevant": True, "quote": "As the sources clearly say.", "why": "Yes, certainly."}
    return [{key: yes.get(key, v) for key, v in row.items()} for row in rows]


def _fewer_claims(claims: list[Any], which: int) -> list[Any]:
    return claims[:1]


def _turned(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row with the opposite verdict: only the first one of an id may count."""
    return {key: not v if isinstance(v, bool) else v for key, v in row.items()}


_ROWS: dict[str, Callable[[list[Any], int], list[Any]]] = {
    "omitted": _omitted,
    "duplicated": _duplicated,
    "phantom": _phantom,
    "labels": _labels,
    "wrong_language": _wrong_language,
    "yes_to_all": _yes_to_all,
    "fewer_claims": _fewer_claims,
}
