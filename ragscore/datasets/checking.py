"""The validating pass: every row is looked at once, all faults are named together, and the hash is found on the way.

DuckDB screens large sources (`screening`): rows that are plainly right never pass through Python. Python looks at the
others, and is what defines right and wrong.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from ragscore.datasets.columns import SETTLED_BY, Reading, settle
from ragscore.datasets.dataset import Dataset, Streamed, fingerprint, hash_of
from ragscore.datasets.exports import shape_of
from ragscore.datasets.faults import FAULTS_SHOWN, DatasetErrors, RowFault
from ragscore.datasets.screening import Screened, screen
from ragscore.datasets.source import Row, Source, Wanted, place
from ragscore.errors import DatasetError
from ragscore.items import Item

#: Datasets of up to this many items are held; larger ones are streamed.
HELD = 10_000


def checked(
    source: Source,
    *,
    name: str,
    wanted: Wanted = None,
    columns: Mapping[str, str] | None = None,
    alternatives: bool = False,
    empty: str = 'write one JSON object a line: {"input": …}',
) -> Dataset:
    """The dataset of a source whose rows are all right.

    Args:
        source: Where the rows are.
        name: How the history calls the dataset.
        wanted: The rows that are meant; all when left out.
        columns: The suite's mapping of fields to columns.
        alternatives: Whether a reference may be a list of texts, any of which is right.
        empty: The mend for a source without rows.

    Raises:
        DatasetError: the source cannot be read, holds no item, its columns are unclear, or rows are faulty: all of
            them at once, the first 20 with row and field.
    """
    head = list(islice(source.rows(wanted), SETTLED_BY))
    sound = _sound(head)
    reading = settle(
        sound,
        where=source.name,
        columns=columns,
        shape=shape_of(sound),
        textual=source.textual,
        alternatives=alternatives,
        whole=lambda: () if wanted is None else _sound(islice(source.rows(), SETTLED_BY)),
    )
    # Where a row of these is broken already, Python looks at all of them and names all that are.
    screened = screen(source, reading, wanted) if len(sound) == len(head) else None
    if screened is not None and not _agree(head, reading, screened):
        screened = None
    looked = _Looked(holds_items=screened is None)
    looked.look_at(source, reading, wanted if screened is None else screened.suspects)
    if screened is None:
        count, hashed, repeated = len(looked.positions), hash_of([bytes(looked.fingerprints)]), looked.repeated()
    else:
        screened.fill(looked.positions, looked.ids, looked.fingerprints)
        count, hashed, repeated = screened.count, screened.hash, screened.repeated()
    looked.faults += _repetitions(source, reading, repeated)
    if looked.faults:
        looked.faults.sort(key=lambda fault: fault[0])
        raise DatasetErrors([said for _, said in looked.faults], more=looked.more, unit=source.unit)
    if not count:
        raise DatasetError("holds no items", where=source.name, mend=empty)
    if screened is None and count <= HELD:
        return Dataset(name, looked.items, hashed)
    return Dataset(name, Streamed(count, lambda: _read(source, reading, wanted, count)), hashed)


@dataclass
class _Looked:
    """What Python found in the rows that it looked at: positions, ids and fingerprints of the sound ones, in order."""

    holds_items: bool
    positions: array[int] = field(default_factory=lambda: array("q"))
    ids: list[str] = field(default_factory=list)
    fingerprints: bytearray = field(default_factory=bytearray)
    items: list[Item] = field(default_factory=list)  # the first `HELD` of them
    faults: list[tuple[int, str]] = field(default_factory=list)
    more: int = 0

    def look_at(self, source: Source, reading: Reading, wanted: Wanted) -> None:
        for row in source.rows(wanted):
            try:
                item = _item(row, reading)
            except RowFault as fault:
                # Repetitions are found later and may stand before the last of these: more than are shown are kept.
                if len(self.faults) < 2 * FAULTS_SHOWN:
                    self.faults.append((row.position, fault.at(place(source, row))))
                else:
                    self.more += 1
                continue
            self.positions.append(row.position)
            self.ids.append(item.id)
            self.fingerprints += fingerprint(item)
            if self.holds_items and len(self.items) < HELD:
                self.items.append(item)

    def repeated(self) -> list[int]:
        """The positions of rows whose id stands elsewhere too."""
        if len(set(self.ids)) == len(self.ids):
            return []
        times = Counter(self.ids)
        return [position for position, each in zip(self.positions, self.ids, strict=True) if times[each] > 1]


def _sound(rows: Iterable[Row]) -> list[Mapping[str, Any]]:
    return [row.values for row in rows if not isinstance(row.values, RowFault)]


def _agree(head: Sequence[Row], reading: Reading, screened: Screened) -> bool:
    """Whether DuckDB gave the rows in their order: nothing else would tell, should a version of it not do so."""
    for row in head[:: max(1, len(head) // 100)]:
        try:
            told = fingerprint(_item(row, reading))
        except RowFault:
            continue
        if not screened.suspected(row.position) and screened.fingerprint(row.position) != told:
            return False
    return True


def _repetitions(source: Source, reading: Reading, positions: Sequence[int]) -> list[tuple[int, str]]:
    """The faults of rows whose id stands in an earlier row already. `positions` hold all rows that may be concerned."""
    faults: list[tuple[int, str]] = []
    if not positions:
        return faults
    mask = bytearray(max(positions) + 1)
    for position in positions:
        mask[position] = 1
    first: dict[str, Row] = {}
    for row in source.rows(mask):
        item = _item(row, reading)
        earlier = first.setdefault(item.id, row)
        if earlier is not row:
            faults.append((row.position, _repeated(source, reading, item, row, earlier).at(place(source, row))))
    return faults


def _repeated(source: Source, reading: Reading, item: Item, row: Row, earlier: Row) -> RowFault:
    at = f"on line {earlier.number}" if source.unit == "line" else f"in {source.unit} {earlier.number}"
    at += f" of {earlier.file}" if earlier.file != row.file else ""
    if isinstance(row.values, Mapping) and str(reading.row(row.values).get("id")) == item.id:
        return RowFault("id", f"{item.id!r} stands {at} already", "give every item its own id")
    return RowFault("input", f"is the same as {at}, without an id", "remove one, or give each its own `id`")


def _read(source: Source, reading: Reading, wanted: Wanted, count: int) -> Iterator[Item]:
    """The items anew; they were all right when they were checked."""
    seen = 0
    for row in source.rows(wanted):
        try:
            item = _item(row, reading)
        except RowFault as fault:
            raise DatasetError(f"{fault.field}: {fault.what}", where=place(source, row), mend=fault.mend) from None
        seen += 1
        yield item
    if seen != count:
        what = f"has {seen} rows now, {count} when it was checked"
        raise DatasetError(what, where=source.name, mend="do not change a dataset while it is read")


def _item(row: Row, reading: Reading) -> Item:
    if isinstance(row.values, RowFault):
        raise row.values
    return reading.item(row.values)
