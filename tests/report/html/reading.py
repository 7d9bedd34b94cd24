"""A report read back: its tables, its marked cells, and the data of its items."""

from __future__ import annotations

import base64
import json
import re
import zlib
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

_VOID = frozenset({"meta", "link", "input", "br", "path", "circle", "rect", "line", "polygon", "polyline"})


@dataclass
class Table:
    """A table: its attributes, and the texts of its cells by row."""

    attributes: dict[str, str]
    rows: list[list[str]] = field(default_factory=list)


class Page(HTMLParser):
    """A report: `tables`, `cells` by scorer and name (`data-cell`), `facts`, `text` of all and of parts, `items`.

    `facts` are the pairs of label and value (`dt` and `dd`) by section, scorer ("" outside of any) and label.
    """

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tables: list[Table] = []
        self.cells: dict[tuple[str, str], str] = {}
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.words: list[str] = []
        self.facts: dict[tuple[str, str, str], str] = {}
        self._said: dict[tuple[str, str], list[str]] = {}
        self._label = ""
        self._open: list[tuple[str, dict[str, str]]] = []
        self._within: list[Table] = []
        self.feed(html)
        packed = re.search(r'id="data">([^<]*)<', html)
        assert packed is not None
        self.data: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(packed[1])))
        self.items = {item["id"]: item for item in self.data["items"]}

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def text_of(self, section: str, scorer: str = "") -> str:
        """All words of a section about a scorer, or about none."""
        return " ".join(" ".join(self._said.get((section, scorer), ())).split())

    def said(self, number: int | None) -> str | None:
        """The long text of that number."""
        return None if number is None else str(self.data["texts"][number])

    def table(self, **attributes: str) -> Table:
        (found,) = [
            each
            for each in self.tables
            if all(each.attributes.get(name.replace("_", "-")) == value for name, value in attributes.items())
        ]
        return found

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        own = {name: value or "" for name, value in attrs}
        self.tags.append((tag, own))
        if tag == "table":
            self.tables.append(Table(own))
            self._within.append(self.tables[-1])
        elif tag == "tr" and self._within:
            self._within[-1].rows.append([])
        elif tag in ("td", "th") and self._within:
            self._within[-1].rows[-1].append("")
        if tag not in _VOID:
            self._open.append((tag, own))

    def handle_endtag(self, tag: str) -> None:
        if tag == "table":
            self._within.pop()
        if tag not in _VOID and any(tag == each for each, _ in self._open):
            while self._open.pop()[0] != tag:
                pass

    def handle_data(self, data: str) -> None:
        tags = [tag for tag, _ in self._open]
        if "script" in tags or "style" in tags:
            return
        self.words.append(data)
        section = next((own.get("id", "") for tag, own in reversed(self._open) if tag == "section"), "")
        named = [own[name] for _, own in self._open for name in ("data-scorer", "data-compared") if name in own]
        about = named[-1] if named else ""
        self._said.setdefault((section, about), []).append(data)
        if "dt" in tags:
            self._label = " ".join(data.split())
            self.facts[section, about, self._label] = ""
        elif "dd" in tags:
            key = (section, about, self._label)
            self.facts[key] = " ".join(f"{self.facts[key]} {data}".split())
        if self._within and {"td", "th"} & set(tags):
            row = self._within[-1].rows[-1]
            row[-1] = " ".join(f"{row[-1]} {data}".split())
        cell = next((own["data-cell"] for _, own in reversed(self._open) if "data-cell" in own), None)
        scorer = next((own["data-scorer"] for _, own in reversed(self._open) if "data-scorer" in own), None)
        if cell is not None and scorer is not None and data.strip():
            self.cells[scorer, cell] = data.strip()
