"""Keeps what came from `${VAR}` out of messages: each value is shown as the variable that it came from."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

_VARIABLE = re.compile(r"\$\$\{|\$\{([A-Za-z_]\w*)(?::-((?:\$\{[^{}]*\}|\$(?!\{)|[^$}])*))?\}")
#: Headers whose values are secrets even where they are written out.
_SECRET_HEADER = re.compile(r"auth|key|token|secret|cookie|passw|credential", re.IGNORECASE)
#: A shorter value is no secret, and hiding it would garble every message.
SHORTEST = 4


class Secrets:
    """Values that must not be seen, with what is shown instead (`${NAME}`, or *** where it was written out)."""

    def __init__(self, values: Mapping[str, str] | None = None) -> None:
        shown: dict[str, str] = {}
        for value, stands_for in (values or {}).items():
            if len(value) >= SHORTEST:
                shown |= dict.fromkeys((value, json.dumps(value)[1:-1], quote(value, safe="")), stands_for)
        self._shown = shown
        longest_first = sorted(shown, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if shown else None

    def hidden(self, text: str) -> str:
        """`text` with every secret replaced."""
        return text if self._pattern is None else self._pattern.sub(lambda found: self._shown[found[0]], text)

    @classmethod
    def of(cls, written: Any, filled: Any) -> Secrets:
        """The values that variables gave to a part of a suite.

        Args:
            written: The part as it stands in the file.
            filled: The same with variables filled in.
        """
        return cls(dict(_values(written, filled)))

    @classmethod
    def of_headers(cls, written: Any, filled: Mapping[str, str]) -> Secrets:
        """The values of variables in headers, and of headers that are secret by their name."""
        plain = {value: "***" for name, value in filled.items() if _SECRET_HEADER.search(name)}
        # `Bearer abc`: the word before is no secret, what follows is one by itself too.
        plain |= {value.split(" ", 1)[1]: "***" for value in plain if " " in value}
        return cls({**plain, **dict(_values(written, filled))})

    def __or__(self, other: Secrets) -> Secrets:
        return Secrets({**self._shown, **other._shown})


def _values(written: Any, filled: Any) -> Iterable[tuple[str, str]]:
    if isinstance(written, Mapping) and isinstance(filled, Mapping):
        for key, value in written.items():
            yield from _values(value, filled.get(key))
    elif isinstance(written, list) and isinstance(filled, list):
        for one, other in zip(written, filled, strict=False):
            yield from _values(one, other)
    elif isinstance(written, str) and isinstance(filled, str):
        yield from _of_text(written, filled)


def _of_text(written: str, filled: str) -> Iterable[tuple[str, str]]:
    names: list[re.Match[str]] = []
    pattern, end = "", 0
    for match in _VARIABLE.finditer(written):
        pattern += re.escape(written[end : match.start()])
        end = match.end()
        if match[1] is None:  # $${ is a literal ${
            pattern += re.escape("${")
        else:
            pattern += "(.*?)"
            names.append(match)
    found = re.fullmatch(pattern + re.escape(written[end:]), filled, re.DOTALL) if names else None
    for match, value in zip(names, found.groups() if found is not None else (), strict=False):
        if value != match[2]:  # a default is written in the file
            yield value, f"${{{match[1]}}}"
