"""Parts of a run by what the metadata of its items says, such as `lang=de`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ragscore.history import ItemScore
from ragscore.report.comparison import Comparison
from ragscore.scorers import mean

#: A key with more values than this tells items apart rather than kinds of items.
MOST_VALUES = 12


@dataclass(frozen=True, slots=True)
class SliceRow:
    """One part: per scorer the mean within 0 and 1 (None without a score) and how many scores it stands on.

    For two runs `before` holds the earlier means, over the same pairs.
    """

    key: str
    value: str
    means: Mapping[str, Fraction | None]
    counts: Mapping[str, int]
    before: Mapping[str, Fraction | None]


def slices_of(scores: Sequence[ItemScore], metadata: Mapping[str, Mapping[str, Any]]) -> list[SliceRow]:
    """The parts of a run; means are over the scores that count, as everywhere."""
    rows = []
    for key, value, ids in _parts(metadata):
        own: dict[str, list[Fraction]] = {}
        for score in scores:
            if score.item_id in ids and score.counted and score.exact is not None:
                own.setdefault(score.scorer, []).append(score.exact)
        rows.append(
            SliceRow(
                key,
                value,
                {name: mean(each) for name, each in own.items()},
                {name: len(each) for name, each in own.items()},
                {},
            )
        )
    return rows


def slices_compared(comparison: Comparison) -> list[SliceRow]:
    """The parts of two runs, over the items that both scored."""
    metadata = {pair.after.item_id: pair.metadata for each in comparison.scorers for pair in each.pairs}
    rows = []
    for key, value, ids in _parts(metadata):
        before: dict[str, Fraction | None] = {}
        after: dict[str, Fraction | None] = {}
        counts: dict[str, int] = {}
        for each in comparison.scorers:
            own = [pair for pair in each.pairs if pair.after.item_id in ids]
            before[each.scorer] = mean([pair.before.exact for pair in own if pair.before.exact is not None])
            after[each.scorer] = mean([pair.after.exact for pair in own if pair.after.exact is not None])
            counts[each.scorer] = len(own)
        rows.append(SliceRow(key, value, after, counts, before))
    return rows


def _parts(metadata: Mapping[str, Mapping[str, Any]]) -> Iterable[tuple[str, str, set[str]]]:
    """Key, value and item ids of every part, keys with one value or very many left out."""
    by_key: dict[str, dict[str, set[str]]] = {}
    for item_id, own in metadata.items():
        for key, value in own.items():
            if isinstance(value, str | int | bool) and len(str(value)) <= 60:
                by_key.setdefault(str(key), {}).setdefault(str(value), set()).add(item_id)
    for key, values in sorted(by_key.items()):
        if 2 <= len(values) <= MOST_VALUES and any(len(ids) > 1 for ids in values.values()):
            for value, ids in sorted(values.items()):
                yield key, value, ids
