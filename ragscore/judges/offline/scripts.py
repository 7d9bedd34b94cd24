"""Writing systems: which characters make words, and one spelling for what is written in several ways.

`\\w` leaves combining marks out, which cuts Hindi words to pieces, and takes a whole Chinese or Thai sentence as one
word. Here letters go with their marks, and scripts that put no spaces between words (or, like Hangul, grow endings on
them) are set apart, to be read as pairs of characters.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

#: How many letters of a word are compared, and the English endings that are taken off first where enough is left.
STEM = 6
ENDINGS = ("ing", "ed", "ly", "e")

#: Combining marks, as a character class. Blocks of Indic scripts are taken whole but for their full stops.
MARKS = (
    r"\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    r"\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed\u0711\u0730-\u074a\u07a6-\u07b0\u0816-\u082d\u0859-\u085b\u08d3-\u08ff"
    r"\u0900-\u0963\u0971-\u0de5\u0df2\u0df3\u0f18\u0f19\u0f35\u0f37\u0f39\u0f3e\u0f3f\u0f71-\u0f84\u0f8d-\u0fbc"
    r"\u135d-\u135f\u1714\u1734\u180b-\u180d\u1a00-\u1aff\u1b00-\u1b44\u1dc0-\u1dff\u20d0-\u20f0\ua8e0-\ua8f1"
    r"\ufe20-\ufe2f"
)
#: Han, kana, Hangul, Thai, Lao, Myanmar and Khmer, as a character class.
PAIRED = (
    r"\u3005\u3007\u3040-\u30fa\u30fc-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    r"\U00020000-\U0003ffff\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ecf\u0edc-\u0edf\u1000-\u103f\u1050-\u108f"
    r"\u1780-\u17d3\u17dd"
)
#: One letter of a script with spaces, or a mark on it, or a digit: the pieces of a word.
LETTER = rf"(?:(?![{PAIRED}])(?:[^\W_]|[{MARKS}]))"

_FOREIGN_DIGIT = re.compile(r"(?![0-9])\d")
_SUPERSCRIPT = re.compile(r"(?<=\d)([⁰¹²³⁴-⁹]+)")
# Accents, Hebrew points and Arabic vowel signs are often left out; the Arabic stretching sign says nothing.
_OPTIONAL = re.compile(r"[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u064b-\u065f\u0670\u0640]")
_ONE_SPELLING = str.maketrans(
    dict.fromkeys("’‘ʼ", "'")
    | dict.fromkeys("“”„«»″", '"')
    | dict.fromkeys("−‐‑–—", "-")
    | {"٫": ".", "٬": ","}
    | dict.fromkeys("\u00ad\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u2060\ufeff")
)


def folded(text: str) -> str:
    """`text` as it is compared: NFKC, one spelling of quotes, dashes and digits, nothing invisible; case is kept."""
    if text.isascii():
        return text
    text = _SUPERSCRIPT.sub(lambda m: "^" + m[1], text)  # else NFKC makes 102 of 10²
    text = unicodedata.normalize("NFKC", text).translate(_ONE_SPELLING)
    return _FOREIGN_DIGIT.sub(lambda m: str(unicodedata.decimal(m[0])), text)


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """The key of a word: casefolded, optional marks off, English endings off, its first `STEM` letters."""
    word = word.casefold()
    if not word.isascii():
        word = unicodedata.normalize("NFC", _OPTIONAL.sub("", unicodedata.normalize("NFD", word))) or word
    if len(word) > 3 and word[-1] == "s" and word[-2] not in "sui":
        word = word[:-1]
    for ending in ENDINGS:
        if len(word) >= len(ending) + 4 and word.endswith(ending):
            word = word[: -len(ending)]
            break
    return word[:STEM]
