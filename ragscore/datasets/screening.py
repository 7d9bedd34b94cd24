"""Screens all rows of a large source in one pass of DuckDB: which are plainly right, their ids and fingerprints.

What this calls right must be right by `rows.item_of`; whatever is unusual is a *suspect*, and Python looks at it. It
composes the very JSON text of `dataset.fingerprint`, so that the hash is the same whoever finds it.

DuckDB's JSON is laxer than Python's in four ways: NaN, numbers beyond all numbers, a comma before a closing bracket, a
key that stands twice within a nested object. NaN is looked for in all columns that the first rows have. What escapes
can only concern metadata; it is an error when the row is read to be asked.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragscore.datasets import duck
from ragscore.datasets.columns import Reading
from ragscore.datasets.dataset import TELLING, hash_of
from ragscore.datasets.source import Source, Wanted

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

#: Where more than this share of the rows are suspects, screening has gained nothing and Python looks at all.
MOSTLY = 0.5
#: Fingerprints that are hashed at once.
CHUNK = 1 << 16
#: What a text begins with that may be blank, after its quote: white space, an escape, its end; or that may be a list.
#: A SQL text, not a list for IN: DuckDB makes a join of that, which loses the order of the rows.
BLANK = (
    *range(0x1C, 0x21),
    *b'\\"[',
    0x85,
    0xA0,
    0x1680,
    *range(0x2000, 0x200B),
    0x2028,
    0x2029,
    0x202F,
    0x205F,
    0x3000,
)
BLANKS = " || ".join(f"chr({code})" for code in BLANK)


@dataclass
class Screened:
    """What DuckDB found, one entry per row of the source.

    Attributes:
        keys: 64 bits of each row's id, to find ids that stand twice.
        low: The first half of `dataset.fingerprint` of each row.
        high: The second half.
        meant: Whether the row is wanted.
        suspects: Whether Python has to look at it; only rows that are wanted, up to the last of them.
    """

    keys: NDArray[numpy.uint64]
    low: NDArray[numpy.uint64]
    high: NDArray[numpy.uint64]
    meant: NDArray[numpy.bool_]
    suspects: NDArray[numpy.bool_]

    def fill(self, positions: array[int], ids: Sequence[str], fingerprints: bytearray) -> None:
        """Put in what Python found in the suspects that are sound; those that are not are left out from here on."""
        import numpy as np

        at = np.frombuffer(positions, dtype=np.int64) if len(positions) else np.empty(0, dtype=np.int64)
        self.meant[: len(self.suspects)] &= ~self.suspects
        self.meant[at] = True
        if len(positions):
            with duck.connected() as connection:
                query = "SELECT hash(unnest(?::VARCHAR[])) AS key"
                written = [json.dumps(each, ensure_ascii=False) for each in ids]
                self.keys[at] = connection.execute(query, [written]).fetchnumpy()["key"]
            self.low[at], self.high[at] = np.frombuffer(bytes(fingerprints), dtype="<u8").reshape(-1, 2).T

    def suspected(self, position: int) -> bool:
        """Whether Python has to look at that row."""
        return position < len(self.suspects) and bool(self.suspects[position])

    def fingerprint(self, position: int) -> bytes:
        """`dataset.fingerprint` of that row."""
        return int(self.low[position]).to_bytes(8, "little") + int(self.high[position]).to_bytes(8, "little")

    @property
    def count(self) -> int:
        """How many rows are items."""
        return int(self.meant.sum())

    @property
    def hash(self) -> str:
        """The hash of the dataset."""
        import numpy as np

        halves = (self.low, self.high) if self.meant.all() else (self.low[self.meant], self.high[self.meant])
        starts = range(0, len(halves[0]), CHUNK)
        return hash_of(
            np.stack([half[start : start + CHUNK] for half in halves], axis=1).astype("<u8", copy=False).tobytes()
            for start in starts
        )

    def repeated(self) -> list[int]:
        """The positions of rows whose id may stand elsewhere too."""
        import numpy as np

        positions = np.flatnonzero(self.meant)
        keys = self.keys[positions]
        ordered = np.sort(keys)
        twice = ordered[1:][ordered[1:] == ordered[:-1]]
        return [int(each) for each in positions[np.isin(keys, twice)]] if len(twice) else []


def screen(source: Source, reading: Reading, wanted: Wanted) -> Screened | None:
    """Screen a source, or None where it is small, its columns need Python, or DuckDB cannot read all of it."""
    columns = reading.plain
    if columns is None:
        return None
    import duckdb

    names = list(dict.fromkeys([*columns.values(), *reading.late, *reading.others]))
    with duck.connected() as connection:
        query = source.columns_as_json(connection, names)
        if query is None:
            return None
        import numpy as np

        try:
            found = connection.execute(_query(query, columns, reading)).fetchnumpy()
        except duckdb.Error:
            return None  # Python says where and why
    suspects = np.asarray(found["suspect"], dtype=bool)
    if suspects.mean() > MOSTLY:
        return None
    meant = np.ones(len(suspects), dtype=bool)
    if wanted is not None:
        given = np.asarray(wanted).astype(bool)[: len(suspects)]
        meant[: len(given)] = given
        meant[len(given) :] = False
    return Screened(
        keys=np.asarray(found["key"], dtype=np.uint64),
        low=np.asarray(found["low"], dtype=np.uint64),
        high=np.asarray(found["high"], dtype=np.uint64),
        meant=meant,
        suspects=_cut(suspects & meant),
    )


def _cut(mask: NDArray[numpy.bool_]) -> NDArray[numpy.bool_]:
    """The mask up to the last row that is meant: nobody reads beyond it."""
    import numpy as np

    at = np.flatnonzero(mask)
    return mask[: at[-1] + 1] if len(at) else mask[:0]


def _query(rows: str, columns: Mapping[str, str], reading: Reading) -> str:
    """One row of the answer per row of `rows`. A field that the first rows lack is NULL, or the row is a suspect."""
    there = {name: column for name, column in columns.items() if column not in reading.unseen}
    taken = [f"CAST({duck.name(column)} AS VARCHAR) AS {name}_" for name, column in there.items()]

    def told(name: str, otherwise: str) -> str:
        return f"coalesce({name}_, '{otherwise}')" if name in there else f"'{otherwise}'"

    # An integer is as good an id as a text; without id it is the hash of the input, as `rows.item_of` has it.
    hashed = "concat('\"', left(sha256(concat('[', input_, ']')), 12), '\"')"
    identity = (
        f"CASE WHEN starts_with(id_, '\"') THEN id_ WHEN id_ IS NULL THEN {hashed} ELSE concat('\"', id_, '\"') END"
    )
    parts = [
        "key_",
        "input_",
        told("reference", "null"),
        told("reference_context_ids", "[]"),
        told("contexts", "null"),
        told("output", "null"),
        told("claims", "null"),
        told("answerable", "true"),
    ]
    suspect = " OR ".join(f"coalesce({each}, TRUE)" for each in _suspicions(there, reading))
    # An escape \\u is one of a control character, which Python writes in another case.
    return f"""
        SELECT suspect OR coalesce(contains(told, '\\u'), TRUE) AS suspect, key,
               (print & 18446744073709551615::UHUGEINT)::UBIGINT AS low, (print >> 64)::UBIGINT AS high
        FROM (SELECT suspect, key, told, md5_number(told)::UHUGEINT AS print
              FROM (SELECT suspect, hash(key_) AS key, concat('[', {", ',', ".join(parts)}, ']') AS told
                    FROM (SELECT *, {identity if "id" in there else hashed} AS key_, {suspect} AS suspect
                          FROM (SELECT {", ".join(taken)}, * FROM ({rows})))))"""


def _plain_text(name: str) -> str:
    """Whether a JSON text begins with a digit or letter of ASCII: quickly said to be a text that is not blank."""
    return f"({name} >= '\"0' AND {name} < '\"[' OR {name} >= '\"a' AND {name} < '\"{{')"


def _suspicions(there: Mapping[str, str], reading: Reading) -> list[str]:
    """SQL conditions, any of which makes a row a suspect; NULL counts as true."""
    found = [
        f"CASE WHEN {_plain_text('input_')} THEN FALSE"
        f" ELSE NOT starts_with(input_, '\"') OR contains({BLANKS}, substr(input_, 2, 1)) END"
    ]
    if "id" in there:
        found.append(
            f"CASE WHEN {_plain_text('id_')} OR id_ IS NULL THEN FALSE WHEN starts_with(id_, '\"')"
            f" THEN contains({BLANKS}, substr(id_, 2, 1)) ELSE NOT regexp_full_match(id_, '0|-?[1-9][0-9]{{0,17}}') END"
        )
    if "answerable" in there:
        found.append("answerable_ IS NOT NULL AND answerable_ <> 'true' AND answerable_ <> 'false'")
    for name in {"reference", "output"} & there.keys():
        odd = f"NOT starts_with({name}_, '\"') OR contains(' \\[', substr({name}_, 2, 1))"
        found.append(f"CASE WHEN {_plain_text(name + '_')} OR {name}_ IS NULL THEN FALSE ELSE {odd} END")
    for name in {"contexts", "claims"} & there.keys():
        found.append(
            f"{name}_ IS NOT NULL AND (json_structure({name}_) <> '[\"VARCHAR\"]' AND {name}_ <> '[]'"
            f" OR contains({name}_, 'null'))"
        )
    for name in {"reference_context_ids", "tags"} & there.keys():
        # Short texts, rarely with a comma within: a quarter of the time of the above.
        found.append(
            f"{name}_ IS NOT NULL AND {name}_ <> '[]' AND (NOT starts_with({name}_, '[\"')"
            f" OR NOT ends_with({name}_, '\"]') OR contains(replace({name}_, '\",\"', ''), ','))"
        )
    if "claims" in there:
        found.append("claims_ IS NOT NULL AND (claims_ = '[]' OR regexp_matches(claims_, '\"[\\pZ\\\\\"]'))")
    if "metadata" in there:
        said = " OR ".join(f"contains(metadata_, {duck.text(each)})" for each in (*TELLING, "NaN", "Infinity"))
        found.append(f"metadata_ IS NOT NULL AND (NOT starts_with(metadata_, '{{') OR {said})")
    for name in reading.others:
        column = f"CAST({duck.name(name)} AS VARCHAR)"
        odd = "TRUE" if name in TELLING else f"contains({column}, 'NaN') OR contains({column}, 'Infinity')"
        found.append(f"{column} IS NOT NULL AND ({odd})")
    rare = [*reading.unseen, *reading.late, *(there[name] for name in ("context_ids", "relevance") if name in there)]
    if rare:
        found.append(f"coalesce({', '.join(map(duck.name, rare))}) IS NOT NULL")
    return found
