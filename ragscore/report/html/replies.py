"""The requests to the judge with its replies, as the page holds them: a reply whole or not at all.

Replies are many and long. Those of the first items of the page go in, until the room for them is taken; of the others
the page names the command that shows them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from ragscore.history import History, RunRow, select
from ragscore.report.hints import command
from ragscore.report.html.texts import Texts

#: Bytes (UTF-8) of replies in a page of up to 1,000 items; one of more may hold more in proportion.
ROOM = 400_000

#: Item, scorer and attempt of a score.
Cell = tuple[str, str, int]

_CELL = ("item_id", "scorer", "attempt")
_SHOWN = ("task", "model", "mode", "outcome", "prompt_tokens", "completion_tokens", "cost_usd", "latency_ms")


class Replies:
    """The calls of a run's scores, JSON-able.

    Args:
        history: Where the run is.
        run: The run's row.
        cells: The scores of the page, in its order.
        texts: Takes up the replies.
        items: How many items the page holds.
    """

    def __init__(self, history: History, run: RunRow, cells: Sequence[Cell], texts: Texts, *, items: int) -> None:
        self._history = history
        self._run = run
        self._calls: dict[Cell, list[dict[str, Any]]] = {cell: [] for cell in cells}
        self._left: dict[Cell, None] = {}
        sizes: dict[tuple[Cell, int], int] = {}
        numbered: dict[tuple[Cell, int], dict[str, Any]] = {}
        for item_id, scorer, attempt, number, size, *shown in self._rows(("number", "strlen(reply)", *_SHOWN)):
            cell = (item_id, scorer, attempt)
            if cell not in self._calls:
                continue
            call = {**dict(zip(_SHOWN, shown, strict=True)), "reply": None}
            self._calls[cell].append(call)
            numbered[cell, number] = call
            if size is not None:
                sizes[cell, number] = size
        chosen = self._chosen(sizes, int(ROOM * max(1.0, items / 1_000)))
        # Not those of the whole run, which may be more than memory holds.
        for *own, number, reply in self._rows(("number", "reply"), items={cell[0] for cell, _ in chosen}):
            key = ((own[0], own[1], own[2]), number)
            if key in chosen:
                numbered[key]["reply"] = texts.whole(reply)
        for key in sizes.keys() - chosen:
            numbered[key]["left"] = True
            self._left[key[0]] = None

    def of(self, cell: Cell) -> list[dict[str, Any]]:
        """The calls of one score; `reply` is the number of its text, None where there is none.

        `left` stands where there is a reply for which there was no room.
        """
        return self._calls[cell]

    def elsewhere(self, cells: Iterable[Cell]) -> str | None:
        """The command that shows the replies of one item; None where none of `cells` had one left out."""
        for cell in cells:
            if cell in self._left:
                words = ("show", self._run.run_id, "--item", cell[0], "--replies")
                return command(*words, history=self._history.path)
        return None

    def _chosen(self, sizes: dict[tuple[Cell, int], int], room: int) -> set[tuple[Cell, int]]:
        """The first in the order of the page; after one that does not fit none goes in, so that items are whole."""
        places = {cell: place for place, cell in enumerate(self._calls)}
        chosen = set()
        for key in sorted(sizes, key=lambda key: (places[key[0]], key[1])):
            room -= sizes[key]
            if room < 0:
                break
            chosen.add(key)
        return chosen

    def _rows(self, columns: Sequence[str], *, items: Iterable[str] | None = None) -> list[tuple[Any, ...]]:
        """Of each call its cell and `columns`; of all items, or of `items`."""
        within = """AND item_id IN (SELECT unnest(from_json(?, '["VARCHAR"]')))"""
        return select(
            self._history.path,
            f"SELECT {', '.join((*_CELL, *columns))} FROM judge_calls WHERE run_id = ?"
            f" {'' if items is None else within} ORDER BY number",
            [self._run.run_id, *([] if items is None else [json.dumps(sorted(items))])],
            lock_timeout_s=self._history.lock_timeout_s,
        ).rows
