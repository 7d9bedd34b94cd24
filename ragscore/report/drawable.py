"""What the terminal can draw: where it knows ASCII only, our marks are written in ASCII."""

from __future__ import annotations

import os
import re

#: Our marks and the punctuation of our sentences, in ASCII. Letters of other scripts are left to the stream's encoding.
_IN_ASCII = str.maketrans(
    {
        "✓": "+",
        "✗": "x",
        "→": "->",
        "…": "...",
        "·": "|",
        "–": "-",
        "—": "--",
        "−": "-",
        "“": '"',
        "”": '"',
        "‘": "'",
        "’": "'",
        "×": "x",
        "≤": "<=",
        "≥": ">=",
        "\ufffd": "?",
        **{chr(0x2400 + code): f"^{chr(64 + code)}" for code in range(32)},
    }
)
_NO_UNICODE = re.compile(r"(C|POSIX)$|[^.]*\.(?!utf-?8)", re.IGNORECASE)


def ascii_only() -> bool:
    """Whether the terminal, the locale or Python was told to know no more than ASCII.

    The environment is asked, and not Python's idea of the encoding, which is UTF-8 in the locale `C`, too (PEP 538
    and 540). Where nothing is said, as in many containers, UTF-8 is right.
    """
    env = os.environ
    if told := env.get("PYTHONIOENCODING", "").partition(":")[0]:
        return "utf" not in told.lower()
    if env.get("PYTHONUTF8") == "1":
        return False
    if env.get("TERM") == "dumb":
        return True
    ctype = env.get("LC_CTYPE", "")
    if ctype.upper() in ("C.UTF-8", "C.UTF8", "UTF-8") and env.get("LANG") in ("C", "POSIX"):
        ctype = ""  # Python put it there
    return _NO_UNICODE.match(env.get("LC_ALL") or ctype or env.get("LANG") or "") is not None


def drawable(text: str) -> str:
    """`text` with our marks in ASCII where the terminal knows no more."""
    return text.translate(_IN_ASCII) if not text.isascii() and ascii_only() else text
