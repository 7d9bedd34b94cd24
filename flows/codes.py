"""Exit codes (DESIGN §7) in the message of a state, so that whoever follows a flow run by its API can read them."""

from __future__ import annotations

import re

_CODE = re.compile(r"\(exit (\d)\)")


def code_of(state_type: str, message: str | None) -> int:
    """The exit code that a final state stands for; 3 for one that we did not set (crashed, cancelled).

    >>> code_of("FAILED", "gate failed (exit 1): context_recall fell by 0.28")
    1
    """
    if found := _CODE.search(message or ""):
        return int(found[1])
    return 0 if state_type.upper() == "COMPLETED" else 3
