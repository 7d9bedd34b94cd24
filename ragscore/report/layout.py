"""How everything on the terminal is laid out: words, tables, headings; narrow, pipeable, colour never alone."""

from __future__ import annotations

import os
import re
import sys

from rich.console import Console, RenderableType
from rich.measure import Measurement
from rich.padding import Padding
from rich.style import Style
from rich.table import Table
from rich.text import Text

from ragscore.report.drawable import drawable

#: How wide output is where nobody looks at it through a terminal.
PIPED_WIDTH = 120
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class Words(Text):
    """Text from anywhere: no markup, and control characters are shown, as ␛, instead of sent to the terminal.

    Our marks (✓ → …) become ASCII where the terminal knows no more.
    """

    def __init__(self, text: str = "", style: str | Style = "") -> None:
        super().__init__(drawable(visible(text)), style=style)

    def append(self, text: Text | str, style: str | Style | None = None) -> Words:
        super().append(drawable(visible(text)) if isinstance(text, str) else text, style)
        return self


def visible(text: str) -> str:
    """`text` with every control character but tab and newline replaced by its picture."""
    return CONTROL.sub(lambda found: chr(0x2400 + ord(found[0])) if ord(found[0]) < 32 else "\ufffd", text)


class _Output(Console):
    def on_broken_pipe(self) -> None:
        """Rich would exit with 1, which means that a gate failed; the command line knows better."""
        raise BrokenPipeError


def console() -> Console:
    """A console on standard output: as wide as the terminal or as COLUMNS says, plain when piped.

    Raises:
        BrokenPipeError: when printing to a pipe whose reader has gone.
    """
    return _Output(highlight=False, width=None if sys.stdout.isatty() or _columns_are_given() else PIPED_WIDTH)


def _columns_are_given() -> bool:
    return os.environ.get("COLUMNS", "").isdigit()


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


def print_table(out: Console, table: Table, *, stack: bool = False) -> None:
    """Print a table, indented.

    Args:
        out: Where to.
        table: Of `table_of`.
        stack: Where it is too wide, put the words of each row below its figures instead of squeezing the columns.
    """
    if stack and Measurement.get(out, out.options.update(max_width=10_000), table).maximum + 2 > out.width:
        _print_stacked(out, table)
    else:
        print_bare(out, Padding(table, (0, 0, 0, 2), expand=False))


def _print_stacked(out: Console, table: Table) -> None:
    first, *others = table.columns
    figures = [first, *(column for column in others if column.justify == "right")]
    words = [column for column in others if column.justify != "right"]
    small = table_of(*(str(column.header) for column in figures))
    for column, of in zip(small.columns, figures, strict=True):
        column.justify, column.no_wrap = of.justify, of.no_wrap
    rows = list(zip(*(list(column.cells) for column in figures), strict=True))
    for row in rows:
        small.add_row(*row)
    grid = out.render_lines(Padding(small, (0, 0, 0, 2), expand=False), pad=False)
    if len(grid) != len(rows) + 1:  # names that are folded: there is no telling which line belongs to which row
        print_bare(out, Padding(table, (0, 0, 0, 2), expand=False))
        return
    for number, line in enumerate(grid):
        text = Text.assemble(*((part.text, part.style or "") for part in line))
        text.rstrip()
        out.print(text, soft_wrap=True)
        if number:
            told = [f"{column.header} {cell}" for column in words if str(cell := list(column.cells)[number - 1])]
            indented(out, " · ".join(told), 4, style="dim", hang=2)


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


def hanging(out: Console, words: Text, hang: int) -> None:
    """Words folded to the width, with their styles; continued lines `hang` further in."""
    for number, line in enumerate(words.wrap(out, max(20, out.width - hang))):
        line.rstrip()
        out.print(Words(" " * hang if number else "").append(line), soft_wrap=True)


def labelled(out: Console, label: str, text: str) -> None:
    """Print a label with a text beside it."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", width=9)
    grid.add_column(overflow="fold")
    grid.add_row(label, Words(text))
    print_bare(out, grid)
