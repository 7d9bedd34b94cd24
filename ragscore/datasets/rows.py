"""From a row (a mapping with the columns of DESIGN §1) to an `Item`, or a sentence that says what is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ragscore.items import Context, Item, digest

COLUMNS = frozenset(
    {
        "id",
        "input",
        "reference",
        "reference_context_ids",
        "contexts",
        "output",
        "claims",
        "answerable",
        "metadata",
    }
)


class RowFault(ValueError):
    """What is wrong with one row: `field`, what, and the mend."""

    def __init__(self, field: str, what: str, mend: str) -> None:
        super().__init__(what)
        self.field = field
        self.what = what
        self.mend = mend


def item_of(row: Mapping[str, Any]) -> Item:
    """The item of a row. A missing id becomes a stable hash of the input; unknown columns go to `metadata`.

    Raises:
        RowFault: a field is missing, empty or of the wrong kind.
    """
    text = _text(row, "input")
    if text is None or not text.strip():
        there = ", ".join(f"`{key}`" for key in row if key != "input")
        mend = "every item needs a question in `input`" + (f"; the row has {there}" if there else "")
        raise RowFault("input", "is missing or empty", mend)
    metadata = row.get("metadata")
    if metadata is not None and not isinstance(metadata, Mapping):
        raise RowFault("metadata", f"is {_kind(metadata)}, not an object", "write {key: value}")
    extra = {key: value for key, value in row.items() if key not in COLUMNS}
    return Item(
        id=_id(row.get("id")) or digest(text)[:12],
        input=text,
        reference=_text(row, "reference"),
        reference_context_ids=tuple(_ids(row.get("reference_context_ids"))),
        contexts=_contexts(row.get("contexts")),
        output=_text(row, "output"),
        claims=_claims(row.get("claims")),
        answerable=_answerable(row.get("answerable")),
        metadata={**extra, **(metadata or {})},
    )


def _text(row: Mapping[str, Any], field: str) -> str | None:
    value = row.get(field)
    if value is None or isinstance(value, str):
        return value
    raise RowFault(field, f"is {_kind(value)}, not text", "write it as text in quotes")


def _id(value: Any) -> str | None:
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    if isinstance(value, (str, int)) and not isinstance(value, bool):
        return str(value)
    raise RowFault("id", f"is {_kind(value)}, not text or a whole number", "give a short unique text")


def _ids(value: Any) -> list[str]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise RowFault("reference_context_ids", f"is {_kind(value)}, not a list of ids", 'write ["id1", "id2"]')
    for number, each in enumerate(value):
        if not isinstance(each, (str, int)) or isinstance(each, bool):
            raise RowFault(f"reference_context_ids[{number}]", f"is {_kind(each)}, not an id", 'write ["id1", "id2"]')
    return [str(each) for each in value]


def _contexts(value: Any) -> tuple[Context, ...] | None:
    if value is None:
        return None
    if not isinstance(value, list):
        raise RowFault("contexts", f"is {_kind(value)}, not a list", 'write ["text", …] or [{"id": …, "text": …}, …]')
    return tuple(_context(each, f"contexts[{number}]") for number, each in enumerate(value))


def _context(value: Any, field: str) -> Context:
    if isinstance(value, str):
        return Context(value)
    if not isinstance(value, Mapping):
        raise RowFault(field, f"is {_kind(value)}", 'write text, or {"id": …, "text": …}')
    text, identity, score = value.get("text"), value.get("id"), value.get("score")
    metadata = value.get("metadata")
    if not isinstance(text, str):
        raise RowFault(field, "has no `text`", 'write text, or {"id": …, "text": …}')
    if identity is not None and (not isinstance(identity, (str, int)) or isinstance(identity, bool)):
        raise RowFault(f"{field}.id", f"is {_kind(identity)}, not text or a whole number", "give a short text")
    return Context(
        text,
        id=None if identity is None else str(identity),
        score=float(score) if isinstance(score, (int, float)) and not isinstance(score, bool) else None,
        metadata=metadata if isinstance(metadata, Mapping) else {},
    )


def _claims(value: Any) -> tuple[str, ...] | None:
    if value is None:
        return None
    mend = 'write ["fact one", "fact two"]'
    if not isinstance(value, list):
        raise RowFault("claims", f"is {_kind(value)}, not a list of sentences", mend)
    if not value:
        raise RowFault("claims", "is an empty list", f"{mend}, or leave it out and the judge finds them")
    for number, each in enumerate(value):
        if not isinstance(each, str):
            raise RowFault(f"claims[{number}]", f"is {_kind(each)}, not a sentence", mend)
        if not each.strip():
            raise RowFault(f"claims[{number}]", "is blank", mend)
    return tuple(value)


def _answerable(value: Any) -> bool:
    if value is None:
        return True
    if isinstance(value, bool):
        return value
    raise RowFault("answerable", f"is {_kind(value)}, not true or false", "write true or false")


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    names = {dict: "an object", list: "a list", str: "text", bool: "true or false", int: "a number", float: "a number"}
    return names.get(type(value), f"a {type(value).__name__}")
