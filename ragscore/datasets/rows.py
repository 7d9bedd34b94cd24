"""From a row (a mapping with the columns of DESIGN §1) to an `Item`, or a sentence that says what is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, get_args

from ragscore.datasets.faults import RowFault
from ragscore.items import Context, Item, digest
from ragscore.suite_parts.dataset import ItemField
from ragscore.targets.messages import answer_of, messages_of, question_of

#: What a row may have. `context_ids` are the ids of `contexts`, one each; `relevance` grades ids (qrels).
COLUMNS: tuple[str, ...] = get_args(ItemField)
#: Names under which a context's text, id and score stand; the dotted ones are those of Phoenix.
TEXT_KEYS = ("text", "content", "page_content", "document.content", "body")
ID_KEYS = ("id", "doc_id", "document_id", "document.id", "_id")
SCORE_KEYS = ("score", "document.score", "relevance_score")
#: Between references of which any one is right, where the suite says `references: alternatives`.
OR = "\nor\n"


def item_of(row: Mapping[str, Any], *, alternatives: bool = False) -> Item:
    """The item of a row. A missing id becomes a stable hash of the input; unknown columns go to `metadata`.

    An input that is an agent's messages becomes what the user said last; the messages stay in `metadata["messages"]`.

    Args:
        row: The columns by name.
        alternatives: Whether a reference may be a list of texts, any of which is right.

    Raises:
        RowFault: a field is missing, empty or of the wrong kind.
    """
    metadata = row.get("metadata")
    if metadata is not None and not isinstance(metadata, Mapping):
        raise RowFault("metadata", f"is {_kind(metadata)}, not an object", "write {key: value}")
    more: dict[str, Any] = {}
    text = _input(row, more)
    if text is None or not text.strip():
        there = ", ".join(f"`{key}`" for key, value in row.items() if key != "input" and value is not None)
        mend = "every item needs a question in `input`" + (f"; the row has {there}" if there else "")
        raise RowFault("input", "is missing or empty", mend)
    relevance = _relevance(row.get("relevance"))
    reference_ids = _ids(row.get("reference_context_ids"), "reference_context_ids")
    if relevance is not None:
        more["relevance"] = relevance
        reference_ids = reference_ids or [each for each, grade in relevance.items() if grade > 0]
    if (tags := _tags(row.get("tags"))) is not None:
        more["tags"] = tags
    if row.keys() - _KNOWN:
        more.update((key, value) for key, value in row.items() if key not in _KNOWN)
    return Item(
        id=_id(row.get("id")) or digest(text)[:12],
        input=text,
        reference=_reference(row, alternatives),
        reference_context_ids=tuple(reference_ids),
        contexts=_contexts(row.get("contexts"), row.get("context_ids")),
        output=_output(row, more),
        claims=_claims(row.get("claims")),
        answerable=_answerable(row.get("answerable")),
        metadata={**more, **(metadata or {})},
    )


_KNOWN = frozenset(COLUMNS)


def _text(row: Mapping[str, Any], field: str) -> str | None:
    value = row.get(field)
    if value is None or isinstance(value, str):
        return value
    raise RowFault(field, f"is {_kind(value)}, not text", "write it as text in quotes")


def _input(row: Mapping[str, Any], more: dict[str, Any]) -> str | None:
    value = row.get("input")
    if not isinstance(value, (list, Mapping)) or (messages := messages_of(value)) is None:
        return _text(row, "input")
    more["messages"] = messages
    return question_of(messages)


def _output(row: Mapping[str, Any], more: dict[str, Any]) -> str | None:
    value = row.get("output")
    if not isinstance(value, (list, Mapping)) or (messages := messages_of(value)) is None:
        return _text(row, "output")
    more["output_messages"] = messages
    return answer_of(messages)


def _reference(row: Mapping[str, Any], alternatives: bool) -> str | None:
    value = row.get("reference")
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        return _text(row, "reference")
    if len(value) == 1:
        return str(value[0])
    if alternatives:
        return OR.join(value) or None
    mend = "write one text in quotes, or `references: alternatives` in the suite's dataset if any of them is right"
    raise RowFault("reference", "is a list, not text", mend)


def _id(value: Any) -> str | None:
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    if isinstance(value, (str, int)) and not isinstance(value, bool):
        return str(value)
    raise RowFault("id", f"is {_kind(value)}, not text or a whole number", "give a short unique text")


def _ids(value: Any, field: str) -> list[str]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise RowFault(field, f"is {_kind(value)}, not a list of ids", 'write ["id1", "id2"]')
    for number, each in enumerate(value):
        if not isinstance(each, (str, int)) or isinstance(each, bool):
            raise RowFault(f"{field}[{number}]", f"is {_kind(each)}, not an id", 'write ["id1", "id2"]')
    return [str(each) for each in value]


def _contexts(value: Any, context_ids: Any) -> tuple[Context, ...] | None:
    ids = _ids(context_ids, "context_ids")
    if value is None:
        # Without its text an id stands for itself: enough for metrics that compare ids.
        return tuple(Context(each, id=each) for each in ids) if context_ids is not None else None
    if not isinstance(value, list):
        raise RowFault("contexts", f"is {_kind(value)}, not a list", 'write ["text", …] or [{"id": …, "text": …}, …]')
    if ids and len(ids) != len(value):
        raise RowFault("context_ids", f"are {len(ids)} for {len(value)} contexts", "give one id for each context")
    return tuple(
        _context(each, f"contexts[{number}]", ids[number] if ids else None) for number, each in enumerate(value)
    )


def _context(value: Any, field: str, given_id: str | None) -> Context:
    if isinstance(value, str):
        return Context(value, id=given_id)
    if not isinstance(value, Mapping):
        raise RowFault(field, f"is {_kind(value)}", 'write text, or {"id": …, "text": …}')
    text, identity, score = (_first(value, keys) for keys in (TEXT_KEYS, ID_KEYS, SCORE_KEYS))
    metadata = value.get("metadata")
    if not isinstance(text, str):
        raise RowFault(field, "has no `text`", 'write text, or {"id": …, "text": …}')
    if identity is not None and (not isinstance(identity, (str, int)) or isinstance(identity, bool)):
        raise RowFault(f"{field}.id", f"is {_kind(identity)}, not text or a whole number", "give a short text")
    return Context(
        text,
        id=given_id if identity is None else str(identity),
        score=float(score) if isinstance(score, (int, float, Decimal)) and not isinstance(score, bool) else None,
        metadata=metadata if isinstance(metadata, Mapping) else {},
    )


def _first(value: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    return next((value[key] for key in keys if value.get(key) is not None), None)


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


def _tags(value: Any) -> list[str] | None:
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise RowFault("tags", f"is {_kind(value)}, not a list of texts", 'write ["billing", "hard"]')
    return value


def _relevance(value: Any) -> dict[str, int] | None:
    if value is None:
        return None
    mend = 'write {"id1": 2, "id2": 0}'
    if not isinstance(value, Mapping):
        raise RowFault("relevance", f"is {_kind(value)}, not grades by id", mend)
    # Columnar files and frames give every row the ids of all others, without a grade.
    grades = {key: grade for key, grade in value.items() if grade is not None}
    for key, grade in grades.items():
        if not isinstance(grade, int) or isinstance(grade, bool):
            raise RowFault(f"relevance.{key}", f"is {_kind(grade)}, not a whole number", mend)
    return grades


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
