"""Where sentences end, in the scripts of the world: spans of a text, and the claims of a reference.

A full stop does not end a sentence after an abbreviation, after an initial, within a number or after a list number.
Lines that are wrapped at some width are one text; an empty line, a heading and a list item end it.
"""

from __future__ import annotations

import re
from itertools import pairwise

#: A stretch without any full stop (a table, code, Thai) is cut into pieces of at most this many characters, so that
#: "one sentence" never means a whole page.
LONGEST = 500

_TITLES = """
mr mrs ms dr prof rev hon st gen col lt capt sgt gov sen rep pres vs approx ca cf eg ie viz resp incl excl dept univ
assn bros mt bzw vgl bsp tel evtl ggf inkl zzgl mme mlle sra srta ud uds
"""
#: Abbreviations that end no sentence.
_ABBREVIATIONS = frozenset(_TITLES.split())
_ENDINGS = "inc ltd co corp jr sr al est usw"
#: Abbreviations that end a sentence only where a word follows that begins sentences rather than names.
_MAY_END = frozenset(_ENDINGS.split())
_NUMBERED_FORMS = """
no nos fig figs eq sec ch vol pp art nr str abs bd pág núm jan feb mar apr jun jul aug sept sep oct nov dec
"""
#: Abbreviations, and words, that end no sentence where a numeral follows.
_BEFORE_NUMBERS = frozenset(_NUMBERED_FORMS.split())
_GERMAN_MONTH = re.compile(r"(?:Jan|Feb|Mär|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez|Jahrhundert)")
_CLOSERS = r"[\"'”’»)\]*_」』）】]*"
# Possessive, so that a run of dots costs linear time.
_END = re.compile(rf"(?<![.!?…])[.!?…]++{_CLOSERS}+(?=\s|$)|[。！？｡．।॥؟۔។៕።၊။]++{_CLOSERS}+|\n")
_ITEM = re.compile(r"[ \t]*(?:[-*•·‣▪–—+]|\(?\d{1,3}[.)]|\(?[a-z][.)]|#{1,6})[ \t]+")
_RULE = re.compile(r"[ \t]*(?:[-=*_~#]{3,}|\|.*)[ \t]*(?:\n|$)")
_WORD_BEFORE = re.compile(r"[\w.]+$")
_SEMICOLON = re.compile(r";(?=\s|$)|[；؛]")
_MARKER = re.compile(r"^\s*(?:(?:[-*•·‣▪–—+]|\(?\d{1,3}[.)]|\(?[a-z]\)|#{1,6})\s+)+")
# After a space or a full stop; "a[1]" is code.
_CITATION = re.compile(r"(?:(?<=[.,;:!?\"')\]])|(?<!\s)\s++)(?:\[\d{1,3}(?:\s*[,;–-]\s*\d{1,3})*\])+(?=[\s.,;:!?]|$)")
_ENTITY = re.compile(r"&#?\w{1,8}$")
_OPENERS = re.compile(
    r"(?:The|A|An|In|On|It|He|She|They|We|This|That|These|There|For|At|As|If|But|And|When|After|However)\b"
)


def spans(text: str, *, longest: int | None = LONGEST) -> list[tuple[int, int]]:
    """The sentences of `text` as (start, end), in order, without white space at their ends. Linear in its length.

    Args:
        text: Any text.
        longest: Where to cut a stretch without an end, in characters; None leaves it whole.
    """
    cuts = [0]
    for match in _END.finditer(text):
        if text[match.start()] == "\n":
            if _breaks(text, match.start(), cuts[-1]):
                cuts.append(match.end())
        elif _ends(text, match, cuts[-1]):
            cuts.append(match.end())
    cuts.append(len(text))
    found = []
    for start, end in pairwise(cuts):
        while start < end and text[start].isspace():
            start += 1
        while end > start and text[end - 1].isspace():
            end -= 1
        if start < end:
            found.extend(_pieces(text, start, end, longest) if longest and end - start > longest else [(start, end)])
    return found


def claims(reference: str) -> tuple[str, ...]:
    """The claims of a reference: its sentences, cut at semicolons, list marks and citation marks off, no repeats.

    What holds no letter or digit is not a claim. Order is that of the text; white space is folded.
    """
    found: dict[str, str] = {}
    for start, end in spans(reference, longest=None):
        for piece in _statements(reference[start:end]):
            claim = " ".join(unmarked(piece).split())
            if any(char.isalnum() for char in claim):
                found.setdefault(claim.casefold().rstrip(".;,:!。；"), claim)
    return tuple(found.values())


def unmarked(text: str) -> str:
    """`text` without a list mark before it and without citation marks such as [1] or [2, 3]."""
    return _CITATION.sub("", _MARKER.sub("", text))


def _ends(text: str, match: re.Match[str], since: int) -> bool:
    """Whether the full stop, question mark or the like at `match` ends a sentence that began at `since`."""
    mark = match[0]
    if mark[0] not in ".!?…":
        return True
    after = text[match.end() : match.end() + 40].lstrip()
    following = after[:1]
    if mark[0] != ".":
        # "Why?" he asked: closed quotes and a small letter go on.
        return not (len(mark) > 1 and mark[-1] in "\"'”’»)" and following.islower())
    if mark.startswith(".."):
        return not following.islower()
    word = _WORD_BEFORE.search(text, max(since, match.start() - 20), match.start())
    if word is None:
        return True
    before = word[0]
    first = _begins_line(text, match.start() - len(before), since)
    if before.isdigit():
        if first and len(before) <= 3:
            return False  # the number of a list item
        return not (len(before) <= 2 and (following.islower() or _GERMAN_MONTH.match(after)))
    if len(before) == 1 and before.isalpha():
        if first:
            return False
        # An initial, unless what follows begins like a sentence: "vitamin C. The …".
        return before == "I" or before.islower() or not following.isalpha() or _opens(after)
    lower = before.casefold()
    if lower in _BEFORE_NUMBERS:
        return not following.isdigit()
    if lower in _ABBREVIATIONS:
        return not following
    if lower in _MAY_END or ("." in before and len(before) <= 6 and before.replace(".", "").isalpha()):
        return not following or _opens(after)
    return not (lower == "etc" and following.islower())


def _begins_line(text: str, at: int, since: int) -> bool:
    """Whether only spaces and brackets stand between `at` and the beginning of its line."""
    while at > since and text[at - 1] in " \t(":
        at -= 1
    return at <= since or text[at - 1] == "\n"


def _opens(after: str) -> bool:
    """Whether `after` begins with a word that begins sentences rather than names ("U.S. Army" goes on)."""
    return _OPENERS.match(after) is not None


def _breaks(text: str, at: int, since: int) -> bool:
    """Whether the line break at `at` ends a sentence: not where a line was only wrapped."""
    line_start = max(text.rfind("\n", since, at) + 1, since)
    line = text[line_start:at].strip()
    if not line:
        return False
    rest_end = text.find("\n", at + 1)
    following = text[at + 1 : rest_end if rest_end >= 0 else len(text)]
    if not following.strip() or _ITEM.match(following) or _RULE.match(following + "\n") or line.startswith(("#", "|")):
        return True
    if line[-1] == ":":
        return True
    # A wrapped line is long; a heading or an item of a bare list is short and goes on with a capital or a digit.
    first = following.lstrip()[0]
    return (len(line) < 45 and not first.islower() and line[-1] not in ",-(") or len(line) > 140


def _pieces(text: str, start: int, end: int, longest: int) -> list[tuple[int, int]]:
    found = []
    while end - start > longest:
        cut = max(
            text.rfind(" ", start + longest // 2, start + longest),
            text.rfind("\n", start + longest // 2, start + longest),
        )
        cut = cut if cut > start else start + longest
        stop = cut
        while stop > start and text[stop - 1].isspace():
            stop -= 1
        if stop > start:
            found.append((start, stop))
        start = cut
        while start < end and text[start].isspace():
            start += 1
    if start < end:
        found.append((start, end))
    return found


def _statements(sentence: str) -> list[str]:
    """The parts of a sentence between semicolons that stand outside brackets."""
    parts, start, depth, seen = [], 0, 0, 0
    for match in _SEMICOLON.finditer(sentence):
        depth += sum((char in "([{（") - (char in ")]}）") for char in sentence[seen : match.start()])
        seen = match.start()
        if depth <= 0 and not _ENTITY.search(sentence, max(start, seen - 10), seen):
            parts.append(sentence[start:seen])
            start = match.end()
    parts.append(sentence[start:])
    return parts
