"""Text as words in any script: what of a text is compared, and by which key.

A word is known by its first letters, an identifier (`__getattr__`) by all of them, a number by its value and unit,
text in scripts without spaces by pairs of characters. English stop-words carry no weight, unless quotes make names of
them: "`with`" and "`not`" are names in a text about Python.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from ragscore.judges.offline.function_words import STOP_WORDS
from ragscore.judges.offline.quantities import (
    CURRENCIES,
    MONTHS,
    NUMBER_WORDS,
    SCALES,
    UNITS,
    readings,
    scaled,
    spelled_dates,
)
from ragscore.judges.offline.scripts import LETTER, PAIRED, folded, stem

Kind = Literal["word", "stop", "name", "number", "pair"]


class Token(NamedTuple):
    """One comparable piece of a text.

    `keys`: any of them in the other text is a match. `extra`: further keys under which this token can be found, but
    for which it does not ask. `unit` is the canonical unit of a number. `surface` is how it stands in the folded text,
    from `start` to `end`.
    """

    kind: Kind
    keys: tuple[str, ...]
    surface: str
    start: int
    end: int
    extra: tuple[str, ...] = ()
    unit: str | None = None


_INITIALS = r"(?P<initials>(?<![A-Za-z0-9.])(?:[A-Za-z]\.){2,})"
_NUMBER = r"(?P<number>\d{1,3}(?: \d{3})+(?![\d.,])|\d+(?:[.,']\d+)*)"
_CODE = r"(?P<code>(?<![A-Za-z0-9_])[A-Za-z0-9_]*_[A-Za-z0-9_]*)"
_OPERATOR = r"(?P<operator>(?<=[`\"'])[-+*/%@&|^~<>=!:.,]{1,3}(?=[`\"']))"
_SIGN = r"(?P<sign>%|°[CFcf]?|[$€£¥])"
_PIECES_ASCII = re.compile(
    rf"{_INITIALS}|{_NUMBER}|{_CODE}|(?P<word>[A-Za-z][A-Za-z0-9]*(?:'[A-Za-z]+)*)|{_OPERATOR}|{_SIGN}"
)
_PIECES = re.compile(
    rf"{_INITIALS}|{_NUMBER}|{_CODE}|(?P<paired>[{PAIRED}]+)|(?P<word>{LETTER}+(?:'{LETTER}+)*)|{_OPERATOR}|{_SIGN}"
)
_DIGITS = re.compile(r"\d+")
# One to three words in quotes of any kind: code, or a name.
_IN_QUOTES = re.compile(r"(?<!\w)([\"'`])([^\s\"'`]{1,40}(?: [^\s\"'`]{1,40}){0,2})\1(?!\w)")
_SUFFIXES = frozenset({"st", "nd", "rd", "th", "s", "er", "e"})
_RANGE_WORDS = frozenset({"to", "and", "or"})
_MONEY_SCALES = {"m": 6, "b": 9}
_CONTRACTED = frozenset({"s", "re", "ve", "ll", "d", "m"})


def tokens(text: str) -> list[Token]:
    """The comparable pieces of `text` in order, stop-words included. Linear in its length."""
    text = spelled_dates(" ".join(folded(text).split()))
    found: list[Token] = []
    quoted = [(match.start(2), match.end(2)) for match in _IN_QUOTES.finditer(text)]
    quoted.reverse()
    for match in (_PIECES_ASCII if text.isascii() else _PIECES).finditer(text):
        kind, surface, start, end = match.lastgroup, match[0], match.start(), match.end()
        if kind == "word":
            if not (found and found[-1].kind == "number" and _belongs(found, text, surface, start, end)):
                while quoted and quoted[-1][1] <= start:
                    quoted.pop()
                found.append(_word(surface, start, end, quoted=bool(quoted) and quoted[-1][0] <= start))
        elif kind == "number":
            found.extend(_number(text, surface, start, end))
        elif kind == "paired":
            found.extend(_pairs(surface, start))
        elif kind == "code":
            found.extend(_code(surface, start, end))
        elif kind == "initials":
            word = surface.replace(".", "")
            lower = word.casefold()
            found.append(_plain(word, surface, start, end, stop=lower in STOP_WORDS and not word.isupper()))
        elif kind == "operator":
            found.append(Token("name", (surface,), surface, start, end))
        elif found and found[-1].kind == "number" and found[-1].end >= start - 1 and found[-1].unit is None:
            found[-1] = found[-1]._replace(unit=UNITS.get(surface.casefold()))
    _join_months(found)
    _share_units(found)
    _join_phrases(found)
    return found


def _word(surface: str, start: int, end: int, *, quoted: bool) -> Token:
    word = surface
    if "'" in surface:
        head, _, tail = surface.rpartition("'")
        if tail.casefold() == "t" and head[-1:].casefold() == "n":
            return Token("stop", (surface.casefold(),), surface, start, end)
        if tail.casefold() in _CONTRACTED:
            word = head.replace("'", "")
        elif len(head) == 1 or head.casefold() == "qu":
            word = tail  # l'homme, d'Arc, O'Brien
        else:
            word = surface.replace("'", "")
    stop = word.casefold() in STOP_WORDS
    if stop and quoted:
        return Token("name", (stem(word),), surface, start, end)
    # Capitals make a name of a stop-word: US, IT, WHO.
    return _plain(word, surface, start, end, stop=stop and not (len(word) > 1 and word.isupper()))


def _plain(word: str, surface: str, start: int, end: int, *, stop: bool) -> Token:
    lower = word.casefold()
    kind: Kind = "stop" if stop else "word"
    if lower in NUMBER_WORDS:
        # A numeral finds the word, and the word the numeral; but a word is never required as a numeral is: "one" and
        # "second" are seldom numbers.
        return Token(kind, (stem(word), "#" + NUMBER_WORDS[lower]), surface, start, end)
    if lower in MONTHS and surface[0].isupper():
        return Token(kind, (stem(word),), surface, start, end, (f"#month{MONTHS[lower]}",))
    return Token(kind, (stem(word),), surface, start, end)


def _belongs(found: list[Token], text: str, surface: str, start: int, end: int) -> bool:
    """Whether the word at `start` is a part of the number before it (its ordinal ending, scale or unit): then it is
    joined to it. A word that is fused with digits in another way (3D, 4G) makes a name of them."""
    number, lower = found[-1], surface.casefold()
    gap = start - number.end
    if gap > 1 or (gap == 1 and text[start - 1] not in " -"):
        return False
    # $5m and 5M are millions, 5 m is metres; 4G is neither a number nor grams.
    money = gap == 0 and lower in _MONEY_SCALES and (number.unit in CURRENCIES or surface.isupper())
    power = _MONEY_SCALES[lower] if money else None
    power = power or SCALES.get(lower)
    if power is not None and not number.keys[0].startswith("#month"):
        keys = tuple("#" + scaled(key[1:], power) for key in number.keys)
        found[-1] = number._replace(keys=keys, extra=(), surface=text[number.start : end], end=end)
        return True
    if lower in UNITS and not (gap == 0 and surface == "G"):
        found[-1] = number._replace(unit=number.unit or UNITS[lower])
        found.append(Token("stop", (stem(surface),), surface, start, end))
        return True
    if gap == 0 and lower in _SUFFIXES:
        found[-1] = number._replace(surface=text[number.start : end], end=end)
        return True
    if gap == 0:
        whole = text[number.start : end]
        found[-1] = Token("name", (whole.casefold(),), whole, number.start, end, (*number.keys, stem(surface)))
        return True
    return False


def _number(text: str, surface: str, start: int, end: int) -> list[Token]:
    before, further = text[max(start - 1, 0) : start], text[max(start - 2, 0) : max(start - 1, 0)]
    unit = before if before and before in CURRENCIES else None
    apart = further in {"", " ", "(", "=", ":", "<", ">", "\n"}
    if before == "." and apart and surface.isdigit():  # .05
        values, parts = readings("0." + surface)
    else:
        values, parts = readings(surface)
    if values:
        sign = "-" if before == "-" and apart else ""
        keys = tuple(f"#{sign}{value}" for value in values)
        return [Token("number", keys, sign + surface, start, end, tuple("#" + part for part in parts), unit)]
    return [
        Token("number", ("#" + part,), digits[0], start + digits.start(), start + digits.end(), (), unit)
        for part, digits in zip(parts, _DIGITS.finditer(surface), strict=True)
    ]


def _pairs(run: str, start: int) -> list[Token]:
    if len(run) == 1:
        return [Token("pair", (run,), run, start, start + 1)]
    # The single characters can be found as well, by a text that has one of them alone.
    found = [
        Token("pair", (run[i : i + 2],), run[i : i + 2], start + i, start + i + 2, (run[i],))
        for i in range(len(run) - 1)
    ]
    found[-1] = found[-1]._replace(extra=tuple(run[-2:]))
    return found


def _code(surface: str, start: int, end: int) -> list[Token]:
    bare = surface.strip("_")
    if not bare:
        return []
    if surface == f"_{bare}_":  # emphasis in Markdown, not a name
        return [_plain(bare, bare, start + 1, end - 1, stop=bare.casefold() in STOP_WORDS)]
    return [Token("name", (surface.casefold(),), surface, start, end, () if "_" in bare else (stem(bare),))]


def _join_months(found: list[Token]) -> None:
    """Make each month beside a day or a year a number, as exact as they are: 5 May is not 5 June."""
    for at, token in enumerate(found):
        if token.extra and token.extra[0].startswith("#month"):
            before = found[at - 1] if at else None
            after = found[at + 1] if at + 1 < len(found) else None
            if (before and before.kind == "number" and token.start - before.end <= 4 and not before.unit) or (
                after and after.kind == "number" and after.start - token.end <= 3 and not after.unit
            ):
                found[at] = token._replace(kind="number", keys=token.extra, extra=token.keys)


def _share_units(found: list[Token]) -> None:
    """Give the first number of a range the unit of the second: 20 to 30 %."""
    for at in range(len(found) - 2, -1, -1):
        token = found[at]
        if token.kind == "number" and token.unit is None:
            after = found[at + 1]
            if after.kind == "stop" and after.surface.casefold() in _RANGE_WORDS and at + 2 < len(found):
                after = found[at + 2]
            if after.kind == "number" and after.unit and after.start - token.end <= 5:
                found[at] = token._replace(unit=after.unit)


def _join_phrases(found: list[Token]) -> None:
    """Let stop-words be found with their neighbours, and quoted ones ask for that: "yield from" is not any "from"."""
    keys = [token.keys[0] for token in found]
    for at, token in enumerate(found):
        if token.kind == "stop" or (token.kind == "name" and token.surface.casefold() in STOP_WORDS):
            left = f"{keys[at - 1]} {keys[at]}" if at and token.start - found[at - 1].end == 1 else None
            right = (
                f"{keys[at]} {keys[at + 1]}" if at + 1 < len(found) and found[at + 1].start - token.end == 1 else None
            )
            phrases = tuple(phrase for phrase in (left, right) if phrase)
            if token.kind == "stop":
                found[at] = token._replace(extra=phrases)
            elif phrases:
                found[at] = token._replace(keys=phrases[:1], extra=(*token.keys, *phrases[1:]))
