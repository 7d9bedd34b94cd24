"""Addresses as they may be shown and kept: without what may be a secret."""

from __future__ import annotations

import re

#: Schemes whose paths may hold `?` and `#`, and that know no query.
_PLAIN = frozenset({"s3", "s3a", "s3n"})
_HOST = re.compile(r"(?:[^:\[\]]*|\[[^\]]*\])(?::\d*)?")


def without_secrets(address: str) -> str:
    """An address without user, password, query and fragment.

    Where a password holds characters that end it too early (`/`, `?`, `#`), so that the address means another host,
    everything up to the last `@` is left out.
    """
    scheme, mark, rest = address.partition("://")
    if not mark:
        scheme, rest = "", address
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    if "@" in authority:
        rest = rest[authority.rindex("@") + 1 :]
    elif "@" in rest and not _HOST.fullmatch(authority):
        rest = rest.rpartition("@")[2]
    if scheme.lower() not in _PLAIN:
        rest = re.split(r"[?#]", rest, maxsplit=1)[0]
    return f"{scheme}{mark}{rest}"
