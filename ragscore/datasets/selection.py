"""Which rows of a source are meant: `where`, then `sample`, then `limit`."""

from __future__ import annotations

import heapq
import random

from ragscore.datasets import duck
from ragscore.datasets.source import Source, Wanted
from ragscore.errors import DatasetError


def select(
    source: Source,
    *,
    where: str | None = None,
    sample: int | None = None,
    seed: int = 0,
    limit: int | None = None,
    at: str = "dataset",
) -> Wanted:
    """The rows that are meant, by position; None means all.

    Args:
        source: Where the rows are.
        where: A SQL condition over the columns of the source.
        sample: So many of them, chosen by `seed`; in the order of the source. Rows that are added at the end change the
            choice as little as can be.
        seed: Another seed makes another choice.
        limit: So many of them, from the beginning.
        at: The place of the suite's dataset, for messages.

    Raises:
        DatasetError: the condition is wrong, or nothing fulfils it.
    """
    if where is None and sample is None:
        # No more than this many are read: nothing has to be counted.
        return None if limit is None else bytearray(b"\x01" * limit)
    positions = range(_count(source)) if where is None else _fulfilling(source, where, at)
    if not len(positions):
        what = "nothing fulfils `where`" if where is not None else "there are no rows"
        raise DatasetError(what, where=f"{at}.where" if where is not None else source.name, mend="check it with `sql:`")
    if sample is not None and sample < len(positions):
        lots = random.Random(seed)  # its numbers are the same in every version of Python
        drawn = ((lots.random(), position) for position in positions)
        positions = sorted(position for _, position in heapq.nsmallest(sample, drawn))
    chosen = positions if limit is None else positions[:limit]
    mask = bytearray(max(chosen) + 1)
    for position in chosen:
        mask[position] = 1
    return mask


def _count(source: Source) -> int:
    return sum(1 for _ in source.rows())


def _fulfilling(source: Source, where: str, at: str) -> list[int]:
    place = f"{at}.where"
    with duck.connected() as connection:
        relation = source.relation(connection)
        columns = '"ragscore position"'
        query = (
            f"SELECT {columns} FROM (SELECT row_number() OVER () - 1 AS {columns}, * FROM ({relation}))"
            f" WHERE ({where}\n) ORDER BY {columns}"
        )
        with duck.explained(place, mend="write a SQL condition over the columns of the rows", what="is not right"):
            return [int(row[0]) for row in connection.execute(query).fetchall()]
