"""What a model's reply says: read strictly first, then with what models wrap around their JSON taken off.

Whatever the text, the outcome is a reply or a `ReplyError` that can be shown to the model. Ids that were never given
out are dropped, of several rows for one id the first counts, and a row whose verdict is no clear yes or no is as if it
were missing, so that it is asked for again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from ragscore.items import normalised

_YES_WORDS = """
true yes y 1 supported relevant ja oui si sí sì sim да так tak evet 是 是的 支持 相关 相關 はい 예 네 نعم ใช่ हाँ हां
có ano igen
"""
_NO_WORDS = """
false no n 0 unsupported irrelevant nein nee nej non não nao нет ні nie hayır hayir 否 不是 不支持 不相关 不相關 いいえ
아니오 아니요 لا ไม่ ไม่ใช่ नहीं không ne nem
"""
_YES = frozenset(_YES_WORDS.split())
_NO = frozenset(_NO_WORDS.split()) | {"not supported", "not relevant"}
_THOUGHT_ENDS = re.compile(r"</(?:think|thinking|reasoning)>", re.I)
_OPENING = re.compile(r"[{\[]")
_FENCED = re.compile(r"```[\w-]*\s*\n?(.*?)```", re.S)
#: What a bare list must consist of to be taken for the one that was asked for; "[1]" in a sentence is none.
_ENTRIES: dict[str, tuple[type, ...]] = {"claims": (str, dict), "verdicts": (dict,)}
#: Brackets in a reply that may turn out to begin no JSON, so that a reply full of them costs no time.
_MISSES = 400


class ReplyError(Exception):
    """A reply that cannot be used; the message says why, in words for the model."""


def label(value: object) -> bool:
    """A verdict as models spell it: `true`, "Yes.", "TRUE", 1, "ja", "not supported" …

    Raises:
        ValueError: no clear yes or no, e.g. "partially".
    """
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float) and value in (0, 1):
        return bool(value)
    if isinstance(value, str):
        word = normalised(value).casefold().replace("_", " ").strip(" .,;:!?\"'`*()[]。！،।")
        if word in _YES:
            return True
        if word in _NO:
            return False
    raise ValueError("neither true nor false")


def clean(text: str) -> str:
    """`text` without what no file or database takes: NUL, halves of surrogate pairs."""
    return text.replace("\x00", "").encode("utf-8", "replace").decode("utf-8")


def _text(value: object) -> object:
    if isinstance(value, str):
        return clean(value).strip()
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _listed(value: object) -> object:
    return [] if value is None else value if isinstance(value, list) else [value]


def _joined(value: object) -> object:
    """Several quotes as one, the way models write it themselves."""
    if isinstance(value, list):
        return " … ".join(part for part in value if isinstance(part, str))
    return "" if value is None else value


Text = Annotated[str, BeforeValidator(_text)]
Label = Annotated[bool, BeforeValidator(label)]


class _Reply(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class VerdictRow(_Reply):
    """One verdict of a reply."""

    id: Text


class ClaimRow(VerdictRow):
    """The verdict on one claim: the ids of the contexts that support it, and the words that do."""

    supported: Label
    contexts: Annotated[list[Text], BeforeValidator(_listed)] = []
    quote: Annotated[Text, BeforeValidator(_joined)] = ""


class ContextRow(VerdictRow):
    """The verdict on one context."""

    relevant: Label
    why: Annotated[Text, BeforeValidator(lambda value: value if isinstance(value, str) else "")] = ""


class ClaimsReply(_Reply):
    """The claims of a reference."""

    claims: list[Text]


class AttributionReply(_Reply):
    """Verdicts on claims."""

    verdicts: list[ClaimRow]


class RatingReply(_Reply):
    """Verdicts on contexts."""

    verdicts: list[ContextRow]


class _ClaimObject(_Reply):
    text: Text = Field(validation_alias=AliasChoices("claim", "text", "fact"))


def strict_schema(model: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema of `model` in the subset that strict providers take.

    No references, titles, defaults or constraints; every property required, none besides. What is constrained is
    checked by us.
    """
    whole = model.model_json_schema(by_alias=False)
    definitions = whole.get("$defs", {})

    def plain(part: Mapping[str, Any]) -> dict[str, Any]:
        if "$ref" in part:
            return plain(definitions[part["$ref"].rpartition("/")[2]])
        if part.get("type") == "object":
            properties = {name: plain(inner) for name, inner in part["properties"].items()}
            return {
                "type": "object",
                "properties": properties,
                "required": list(properties),
                "additionalProperties": False,
            }
        if part.get("type") == "array":
            return {"type": "array", "items": plain(part["items"])}
        return {"type": part["type"], "enum": part["enum"]} if "enum" in part else {"type": part["type"]}

    return plain(whole)


SCHEMAS: dict[str, dict[str, Any]] = {
    "extract_claims": strict_schema(ClaimsReply),
    "attribute_claims": strict_schema(AttributionReply),
    "rate_contexts": strict_schema(RatingReply),
}


Row = TypeVar("Row", bound=VerdictRow)


@dataclass(frozen=True, slots=True)
class Rows(Generic[Row]):
    """The usable rows of a reply by id, in the order asked, and the ids that have none."""

    by_id: Mapping[str, Row]
    missing: tuple[str, ...]


def parse_claims(text: str) -> tuple[str, ...]:
    """The claims of a reply, each one line, without empty and repeated ones.

    Raises:
        ReplyError: the reply holds no list of claims.
    """
    entries = _listing(text, "claims")
    claims: dict[str, str] = {}
    for entry in entries:
        if isinstance(entry, Mapping):
            try:
                entry = _ClaimObject.model_validate(entry).text
            except ValidationError:
                entry = None
        if not isinstance(entry, str):
            raise ReplyError('"claims" must be a list of strings')
        claim = " ".join(clean(entry).split())
        if claim:
            claims.setdefault(normalised(claim).casefold(), claim)
    return tuple(claims.values())


def parse_claim_verdicts(text: str, ids: Sequence[str]) -> Rows[ClaimRow]:
    """The verdicts on claims in a reply.

    Args:
        text: The reply.
        ids: The ids that were given out.

    Raises:
        ReplyError: the reply holds no list of verdicts, or none that can be used.
    """
    return parse_rows(text, ids, ClaimRow)


def parse_context_verdicts(text: str, ids: Sequence[str]) -> Rows[ContextRow]:
    """The verdicts on contexts in a reply; otherwise as `parse_claim_verdicts`."""
    return parse_rows(text, ids, ContextRow)


def parse_rows(text: str, ids: Sequence[str], model: type[Row]) -> Rows[Row]:
    """The rows of a reply, of the form `model`; otherwise as `parse_claim_verdicts`."""
    known = {id.casefold(): id for id in ids}
    found: dict[str, Row] = {}
    wrong = ""
    for entry in _listing(text, "verdicts"):
        try:
            row = model.model_validate(entry)
        except ValidationError as error:
            wrong = wrong or _said(error)
            continue
        id = known.get(re.sub(r"^(?:claim|context)[\s:]+", "", row.id.strip(" []()<>\"'`#:").casefold()))
        if id is not None:
            found.setdefault(id, row)
    if ids and not found and wrong:
        raise ReplyError(wrong)
    return Rows({id: found[id] for id in ids if id in found}, tuple(id for id in ids if id not in found))


def _said(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return f"{'.'.join(map(str, first['loc'])) or 'a row'}: {first['msg'].removeprefix('Value error, ')}"


def _listing(text: str, key: str) -> list[Any]:
    """The list under `key` in the JSON of a reply, which may also stand there by itself."""
    problem = "it holds no JSON object"
    for value in json_values(text, key):
        if isinstance(value, list):
            listed = value if value and all(isinstance(entry, _ENTRIES[key]) for entry in value) else None
        elif key == "verdicts" and key not in value and "id" in value:
            listed = [value]  # asked for one verdict, given its row
        else:
            listed = value.get(key)
        if isinstance(listed, list):
            return listed
        problem = f'it has no list "{key}"'
    raise ReplyError(problem)


def json_values(text: str, key: str) -> Iterator[Any]:
    """JSON values that the reply may mean, the likeliest first."""
    straight = _loaded(text)
    if straight is not None:
        yield straight
        return
    # A lone `</think>` ends a thought whose beginning the server cut off.
    thoughts = [match.end() for match in _THOUGHT_ENDS.finditer(text)]
    if thoughts:
        yield from _wrapped(text[thoughts[-1] :], key)
    yield from _wrapped(text, key)


def _wrapped(text: str, key: str) -> Iterator[Any]:
    for candidate in (text, *reversed(_FENCED.findall(text))):
        value = _loaded(candidate)
        if value is not None:
            yield value
    yield from reversed(_balanced(text, key))


def _loaded(text: str) -> Any:
    """The JSON value that `text` is, or None; bare numbers and words count as none."""
    try:
        value = json.loads(text.strip().removeprefix("\ufeff"))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict | list) else None


def _balanced(text: str, key: str) -> list[Any]:
    """Outermost JSON objects and arrays that stand somewhere in `text`, in order.

    After a bracket that begins no JSON, what follows may be a part of something broken: a row of a list that was cut
    off is not the list. Then only objects that have `key` count.
    """
    decoder, found, at, misses = json.JSONDecoder(), list[Any](), 0, 0
    for match in _OPENING.finditer(text):
        if match.start() < at:
            continue
        try:
            value, at = decoder.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            misses += 1
            if misses > _MISSES:
                break
        else:
            if misses == 0 or (isinstance(value, dict) and key in value):
                found.append(value)
    return found
