"""A real corpus that is on every machine: Python's language reference as the standard library ships it.

`pydoc_data.topics` (what `help("yield")` prints) holds about 80 topics of plain text. Here it is cut into chunks with
ids that stay the same from one Python to the next, so that labelled questions can name them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from itertools import count

#: A chunk has `LEAST` to `MOST` characters, its heading aside, where the borders between units allow. A shorter one
#: is the end of a section; a longer one holds a unit that cannot be cut without breaking a code block or a table.
LEAST, MOST = 550, 900

#: A code block or table longer than this is cut all the same, between its lines or rows.
CEILING = 1400

#: A closing piece shorter than this is not worth a chunk of its own: it joins the one before.
CRUMB = 200

_UNDERLINE = re.compile(r"^([*=\-~^\"])\1{2,}$")
_FOOTNOTES = re.compile(r"^-\[ (.+) \]-$")
_BULLET = re.compile(r"^(?:\*|-|\d+\.|\[\d+\])\s+")
_TABLE_RULE = re.compile(r"\n *\+[-=+]+\+(?=\n|$)")
_AFTERTHOUGHT = re.compile(r"(?:Changed in|New in|Added in|Deprecated since) ")  # says nothing without what it is about
_SENTENCE_END = re.compile(r"(?<=[.!?:])[\"')”’]*\s+(?=[A-Z\"“(*])")


@dataclass(frozen=True, slots=True)
class Chunk:
    """One piece of the corpus, as a retriever returns it.

    `id` is `<topic>#<heading>` for the first chunk of a section and `<topic>#<heading>/<opening words>` for the
    later ones. `text` starts with the heading, on a line of its own.
    """

    id: str
    topic: str
    heading: str
    text: str


@cache
def chunks() -> tuple[Chunk, ...]:
    """The corpus of the running Python, in a stable order. Ids are unique, and so are texts."""
    from pydoc_data.topics import topics

    return chunked(topics)


def resolve(label: str, corpus: tuple[Chunk, ...] | None = None) -> str | None:
    """The id of the chunk of `corpus` (default `chunks()`) that `label`, an id from another Python, speaks of.

    A release may add a paragraph, so that the border before another one moves or goes. Then the label names the
    chunk that holds the paragraph with those opening words, of the same section if possible. None: nothing has it.
    """
    corpus = chunks() if corpus is None else corpus
    if any(chunk.id == label for chunk in corpus):
        return label
    section, _, opening = label.partition("/")
    if not opening:
        return None
    same_section_first = sorted(corpus, key=lambda chunk: (chunk.id.partition("/")[0] != section, chunk.id))
    for chunk in same_section_first:
        lines = chunk.text.splitlines()  # with the heading, which an opening line was in some releases
        if any(_slug("\n".join(lines[place:]), words=5) == opening for place in range(len(lines))):
            return chunk.id
    return None


def chunked(topics: Mapping[str, str]) -> tuple[Chunk, ...]:
    """Cut `topics` (name → text as in `pydoc_data.topics`) into chunks.

    Topics repeat each other: `compound` contains `if`, `for`, `try` and others whole, `specialnames` contains
    `customization` and `attribute-access`, `if` is `else`. A section belongs to the shortest topic that has it (the
    most telling name for an id), and what a longer topic says again, section or paragraph, is left out there.
    """
    found: list[Chunk] = []
    taken: set[str] = set()  # ids
    said: set[str] = set()  # normalised sections and paragraphs that are already in the corpus
    for topic in sorted(topics, key=lambda name: (len(topics[name]), name)):
        for heading, body in _sections(topics[topic]):
            if _folded(body) in said:
                continue
            units = [unit for unit in _units(body) if _folded(unit) not in said]
            for place, part in enumerate(_packed(units)):
                if all(_AFTERTHOUGHT.match(unit) for unit in part):
                    continue
                name = f"{topic}#{_slug(heading)}"
                if place:
                    name += f"/{_slug(part[0], words=5)}"
                # Sections of one topic may share a heading, and methods their opening words.
                if name in taken:
                    name += f"-{_slug(part[0], words=12)}"
                name = next(each for each in _numbered(name) if each not in taken)
                taken.add(name)
                found.append(Chunk(name, topic, heading, "\n".join([heading, *part])))
            said.add(_folded(body))
            said.update(map(_folded, units))
    return tuple(sorted(found, key=lambda chunk: chunk.id))


def _folded(text: str) -> str:
    return " ".join(text.split()).lower()


def _slug(text: str, words: int = 8) -> str:
    text = text.replace('*"', ' star"')  # `except*` is another clause than `except`
    return "-".join(re.findall(r"[^\W_]+", text.lower())[:words])


def _numbered(name: str) -> Iterator[str]:
    yield name
    yield from (f"{name}-{number}" for number in count(2))


def _sections(text: str) -> Iterator[tuple[str, str]]:
    """(heading, body) of each section with a body, from the top; headings are underlined, or `-[ Footnotes ]-`."""
    heading, body = "", list[str]()
    for line in text.splitlines():
        footnotes = _FOOTNOTES.match(line)
        underlined = _UNDERLINE.match(line) and body and body[-1].strip() and not body[-1].startswith(" ")
        if not (footnotes or underlined):
            body.append(line)
            continue
        title = footnotes.group(1) if footnotes else body.pop()
        if any(map(str.strip, body)):
            yield heading, "\n".join(body)
        heading, body = title.strip(), []
    if any(map(str.strip, body)):
        yield heading, "\n".join(body)


def _units(body: str) -> list[str]:
    """What must not be cut: a paragraph with the code, grammar or definition that belongs to it, lines unwrapped."""
    units: list[str] = []
    inner = 0  # the indent at which the text of the last paragraph, list item or definition goes on
    glue = False  # the last piece introduces the next one
    blocks = [block.rstrip() for block in re.split(r"\n\s*\n", body.strip("\n")) if block.strip()]
    for block, following in zip(blocks, [*blocks[1:], ""], strict=True):
        indent = _indent(block)
        literal = indent >= inner + 3 or block.lstrip().startswith((">>>", "+--", "|"))
        piece = block if literal else _unwrapped(block)
        defines = not literal and _indent(following) == indent + 3 and _is_signature(piece)
        if not literal:
            marker = _BULLET.match(block.strip())
            inner = indent + (len(marker.group()) if marker else 3 if defines else 0)
        goes_on = not defines and (piece[:1].islower() or _AFTERTHOUGHT.match(piece))
        if units and (literal or glue or goes_on):
            units[-1] += "\n" + piece
        else:
            units.append(piece)
        glue = defines or (not literal and piece.endswith(":"))
    return [part for unit in units for part in _split(unit)]


def _indent(block: str) -> int:
    return len(block) - len(block.lstrip(" "))


def _is_signature(piece: str) -> bool:
    if piece.endswith((".", ":", ",", ";")) or ". " in piece:
        return False
    return "(" in piece or "[" in piece or len(piece.split()) <= 3


def _unwrapped(block: str) -> str:
    """A paragraph on one line; a term keeps its own line above its definition, and a list its items."""
    lines = block.strip().splitlines()
    is_term = len(lines) > 1 and _indent(lines[1]) > _indent(block) and not _BULLET.match(lines[0])
    out = [lines[0].strip()]
    for place, line in enumerate(map(str.strip, lines[1:]), 1):
        if _BULLET.match(line) or (place == 1 and is_term):
            out.append(line)
        else:
            out[-1] += ("" if out[-1].endswith("-") and out[-1][-2:-1].isalpha() else " ") + line
    return "\n".join(out)


def _split(unit: str) -> list[str]:
    """`unit` itself, or, where it is too long for a chunk, runs of its sentences or (tables, listings) of its lines."""
    if len(unit) <= MOST or ("\n" in unit and len(unit) <= CEILING):
        return [unit]
    joint = "\n" if "\n" in unit else " "
    parts = [""]
    # A row of a table may take several lines: a border is where the row's rule stands.
    pieces = _TABLE_RULE.split(unit) if _TABLE_RULE.search(unit) else unit.split("\n")
    for piece in pieces if joint == "\n" else _SENTENCE_END.split(unit):
        if parts[-1] and len(parts[-1]) + len(piece) > MOST:
            parts.append("")
        parts[-1] = f"{parts[-1]}{joint}{piece}".strip("\n").removeprefix(" ")
    return parts


def _packed(units: list[str]) -> list[list[str]]:
    """`units` in chunks of `LEAST` to `MOST` characters.

    Filling each chunk to the brim would let one edited paragraph move every border after it, and with the borders
    the ids. So, as in content-defined chunking, the border goes before the paragraph with the lowest hash of its
    opening words among those that the bounds allow: after an edit the borders soon fall in the same places again.
    """
    packed: list[list[str]] = []
    rest = units
    while rest:
        borders, size = [], 0
        for place, unit in enumerate(rest):
            if place and size >= LEAST:
                borders.append(place)
            size += len(unit) + 1
            if size > MOST:
                # The chunk is full: one border is needed, at the latest before the unit that is too much.
                borders = borders or [max(place, 1)]
                break
        else:
            borders = [len(rest)]
        cut = min(borders, key=lambda place: (_rank(rest[place]), place)) if borders[0] < len(rest) else len(rest)
        packed.append(rest[:cut])
        rest = rest[cut:]
    if len(packed) > 1 and sum(map(len, packed[-1])) < CRUMB:
        packed[-2:] = [packed[-2] + packed[-1]]
    return packed


def _rank(unit: str) -> bytes:
    return blake2b(_slug(unit, words=5).encode(), digest_size=8).digest()
