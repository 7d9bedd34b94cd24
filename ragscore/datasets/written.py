"""Lists, objects and truth values that stand as text in a table (CSV, TSV), as the tools of the field write them."""

from __future__ import annotations

import ast
import io
import json
import re
import tokenize
from collections.abc import Iterable
from typing import Any

from ragscore.datasets.faults import RowFault

TRUE, FALSE = frozenset({"true", "yes", "1"}), frozenset({"false", "no", "0"})
LISTS = frozenset({"contexts", "context_ids", "reference_context_ids", "claims", "tags"})
NOT_TEXTS = LISTS | {"metadata", "relevance", "answerable", "id"}
#: What stands between two texts of a numpy array.
SIDE_BY_SIDE = re.compile(r"""['"]\s*['"]""")
#: DeepEval joins contexts with this.
JOINT = "|"


def folded(column: str) -> str:
    """The name of a column without what people write differently: case, spaces, underscores, hyphens."""
    return re.sub(r"[\s_-]+", "", column).casefold()


def joined_columns(columns: Iterable[str]) -> frozenset[str]:
    """The columns whose texts are contexts joined as DeepEval does; `context` only in a table of DeepEval's.

    Elsewhere a `context` is one text, which may well hold a table of Markdown.
    """
    is_deepeval = {"actual_output", "expected_output"} <= set(columns)
    return frozenset({"retrieval_context", "context"} if is_deepeval else {"retrieval_context"})


def from_text(field: str, column: str, value: Any, joined: frozenset[str] = frozenset()) -> Any:
    """The value of `field` that a cell stands for; a text stays exactly what it is where text is due.

    Where something else is due, an empty one is missing. Lists are JSON (`["a", "b"]`) or Python (`['a', 'b']`, as
    pandas writes them); tags and ids may also stand with commas or semicolons between; `joined` columns with `|`.

    Raises:
        RowFault: the text is nothing of the kind.
    """
    if not isinstance(value, str):
        return as_json(value) if field == "metadata" else value
    if field in NOT_TEXTS and not value.strip():
        return None
    if field in LISTS:
        return _list(field, column, value, joined)
    if field in ("metadata", "relevance"):
        return _object(field, value)
    if field == "answerable":
        if (word := value.strip().lower()) in TRUE | FALSE:
            return word in TRUE
        raise RowFault(field, f"is {value!r}, not true or false", "write true or false")
    if field == "reference" and folded(column) == "groundtruths":
        return _list(field, column, value, joined)
    if field in ("input", "output") and re.match(r"\s*\[\s*\{", value):
        return _messages(value)
    return value


def as_json(value: Any) -> Any:
    """A value for `metadata`: what JSON does not know (dates, decimals) becomes text."""
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, list):
        return [as_json(each) for each in value]
    if isinstance(value, dict):
        return {key: as_json(each) for key, each in value.items()}
    return value.hex() if isinstance(value, (bytes, bytearray)) else str(value)


def _list(field: str, column: str, value: str, joined: frozenset[str]) -> Any:
    if value.lstrip().startswith("["):
        found = literal(value)
        if isinstance(found, list):
            return found
        mend = 'write ["one", "two"]' + ("; an array of numpy has no commas" if SIDE_BY_SIDE.search(value) else "")
        raise RowFault(field, "is not a list, though it begins like one", mend)
    if field in ("tags", "reference_context_ids", "context_ids"):
        return [each.strip() for each in re.split(r"[,;]", value) if each.strip()]
    if column in joined:
        return value.split(JOINT)
    return value  # `rows` says what is wrong with it


def _object(field: str, value: str) -> Any:
    found = literal(value)
    if isinstance(found, dict):
        return found
    raise RowFault(field, "is not an object", 'write {"key": "value"}')


def _messages(value: str) -> Any:
    found = literal(value)
    return found if isinstance(found, list) and all(isinstance(each, dict) for each in found) else value


def literal(value: str) -> Any:
    """What a text says in JSON, else in Python's own notation; None when in neither."""
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        pass
    try:
        return None if _has_texts_side_by_side(value) else ast.literal_eval(value.strip())
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None


def _has_texts_side_by_side(value: str) -> bool:
    """Whether two texts stand without a comma between, as in an array of numpy: Python would make one of them."""
    if not SIDE_BY_SIDE.search(value):
        return False
    before = None
    try:
        for token in tokenize.generate_tokens(io.StringIO(value.strip()).readline):
            if token.type == before == tokenize.STRING:
                return True
            before = before if token.type == tokenize.NL else token.type
    except tokenize.TokenError:  # a bracket is left open, which `literal_eval` says too
        pass
    return False
