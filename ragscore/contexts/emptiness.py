"""Says when a source of contexts gives nothing at all: mostly its path is wrong, and every score would be a 0."""

from __future__ import annotations

from collections.abc import Sequence

from ragscore.contexts.path import keys_of
from ragscore.items import Record

#: Sources that are meant for scorers to which no context is no fault.
NEED_NONE = ("none", "returned")


def nothing_found(records: Sequence[Record]) -> list[str]:
    """For each source that gave no context for any of these records: how it failed, or what the first response has."""
    said = []
    sources = dict.fromkeys(source for record in records for source in record.context_sets or {})
    for source in sources:
        if source in NEED_NONE:
            continue
        asked = [record for record in records if source in (record.context_sets or {})]
        found = [(record.context_sets or {})[source] for record in asked]
        if any(each.contexts for each in found):
            continue
        error = next((each.error for each in found if each.error is not None), None)
        raw = asked[0].response.raw if asked[0].response is not None else None
        why = error or f"the first response {keys_of(raw)}"
        how_many = "the first item" if len(asked) == 1 else f"any of the first {len(asked)} items"
        said.append(f"no contexts for {how_many} by {source}: {why} — is that the place? See `contexts:` in the suite")
    return said
