"""How everything on the terminal is laid out: words, tables, headings; narrow, pipeable, colour never alone."""

from __future__ import annotations

import re
import sys

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.style import Style
from rich.table import Table
from rich.text import Text

#: How wide output is where nobody looks at it through a terminal.
PIPED_WIDTH = 120
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class Words(Text):
    """Text from anywhere: no markup, and control characters are shown, as ␛, instead of sent to the terminal."""

    def __init__(self, text: str = "", style: str | Style = "") -> None:
        super().__init__(visible(text), style=style)

    def append(self, text: Text | str, style: str | Style | None = None) -> Words:
        super().append(visible(text) if isinstance(text, str) else text, style)
        return self


def visible(text: str) -> str:
    """`text` with every control character but tab and newline replaced by its picture."""
    return CONTROL.sub(lambda found: chr(0x2400 + ord(found[0])) if ord(found[0]) < 32 else "\ufffd", text)


class _Output(Console):
    def on_broken_pipe(self) -> None:
        """Rich would exit with 1, which means that a gate failed; the command line knows better."""
        raise BrokenPipeError


def console() -> Console:
    """A console on standard output: as wide as the terminal, plain when piped.

    Raises:
        BrokenPipeError: when printing to a pipe whose reader has gone.
    """
    return _Output(highlight=False, width=None if sys.stdout.isatty() else PIPED_WIDTH)


def heading(out: Console, title: str, subtitle: str) -> None:
    """A blank line, then a title with what it is about."""
    out.print()
    out.print(Words(title, style="bold").append(f"  {subtitle}", style="not bold dim"), soft_wrap=True)


def table_of(*columns: str) -> Table:
    """A table without lines, with these heads."""
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(Words(column), no_wrap=column in ("run",), overflow="fold")
    return table


def add_row(table: Table, *cells: str) -> None:
    """A row of plain words."""
    table.add_row(*map(Words, cells))  # plain strings would be taken for markup


def print_table(out: Console, table: Table) -> None:
    """Print a table, indented."""
    print_bare(out, Padding(table, (0, 0, 0, 2), expand=False))


def print_bare(out: Console, shown: RenderableType) -> None:
    """Print without the spaces that fill lines up on the right: they are in the way of whoever pipes or copies."""
    for line in out.render_lines(shown, pad=False):
        text = Text.assemble(*((part.text, part.style or "") for part in line))
        text.rstrip()
        out.print(text, soft_wrap=True)


def indented(out: Console, text: str, indent: int, *, style: str = "", hang: int = 0) -> None:
    """Text folded to the width, continued lines `hang` further in, without padding on the right."""
    width = max(20, out.width - indent - hang)
    lines = Words(text).wrap(out, width)
    for number, line in enumerate(lines):
        line.rstrip()
        out.print(Words(" " * (indent + (hang if number else 0))).append(line.plain, style=style), soft_wrap=True)


def labelled(out: Console, label: str, text: str) -> None:
    """Print a label with a text beside it."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", width=9)
    grid.add_column(overflow="fold")
    grid.add_row(label, Words(text))
    print_bare(out, grid)
