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
        raise RowFault("input", "is missing or empty", "every item needs a question in `input`")
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
    if value is None or value == "":
        return None
    if isinstance(value, (str, int)) and not isinstance(value, bool):
        return str(value)
    raise RowFault("id", f"is {_kind(value)}, not text or a whole number", "give a short unique text")


def _ids(value: Any) -> list[str]:
    if value is None:
        return []
    if isinstance(value, list) and all(isinstance(each, (str, int)) and not isinstance(each, bool) for each in value):
        return [str(each) for each in value]
    raise RowFault("reference_context_ids", f"is {_kind(value)}, not a list of ids", 'write ["id1", "id2"]')


def _contexts(value: Any) -> tuple[Context, ...] | None:
    if value is None:
        return None
    if not isinstance(value, list):
        raise RowFault("contexts", f"is {_kind(value)}, not a list", 'write ["text", …] or [{"id": …, "text": …}, …]')
    contexts = []
    for number, each in enumerate(value):
        if isinstance(each, str):
            contexts.append(Context(each))
        elif isinstance(each, Mapping) and isinstance(each.get("text"), str):
            identity = each.get("id")
            contexts.append(Context(each["text"], id=None if identity is None else str(identity)))
        else:
            raise RowFault(f"contexts[{number}]", f"is {_kind(each)}", 'write text, or {"id": …, "text": …}')
    return tuple(contexts)


def _claims(value: Any) -> tuple[str, ...] | None:
    if value is None:
        return None
    if isinstance(value, list) and value and all(isinstance(each, str) and each.strip() for each in value):
        return tuple(value)
    raise RowFault("claims", f"is {_kind(value)}, not a list of sentences", 'write ["fact one", "fact two"]')


def _answerable(value: Any) -> bool:
    if value is None:
        return True
    if isinstance(value, bool):
        return value
    raise RowFault("answerable", f"is {_kind(value)}, not true or false", "write true or false")


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "true or false", int: "a number", float: "a number"}
    return names.get(type(value), f"a {type(value).__name__}")
