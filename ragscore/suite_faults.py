"""What is wrong with a suite, in the user's words and at the user's place, from what pydantic says."""

from __future__ import annotations

import copy
import difflib
from collections.abc import Mapping, Sequence
from types import UnionType
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from ragscore import plugins
from ragscore.errors import ConfigError, SuiteError
from ragscore.suite import GatePart, ScorerGatePart, SlicesPart, Suite
from ragscore.suite_yaml import At, Places, described, place_of


class SuiteErrors(SuiteError):
    """Several faults at once, in the order of the file; one line each."""

    def __init__(self, faults: Sequence[ConfigError]) -> None:
        super().__init__("; ".join(str(fault) for fault in faults))
        self.faults = list(faults)

    def __str__(self) -> str:
        return "\n".join(str(fault) for fault in self.faults)

    def __reduce__(self) -> tuple[object, ...]:
        return (SuiteErrors, (self.faults,))


class SuiteFault(SuiteError):
    """One fault of a suite and the keys that lead to it, from the top of the document down."""

    def __init__(self, what: str, *, where: str | None = None, mend: str | None = None, at: At = ()) -> None:
        super().__init__(what, where=where, mend=mend)
        self.at = at


def without(document: Mapping[str, Any], faults: Sequence[ConfigError]) -> dict[str, Any]:
    """The document without what is at fault, so that the rest of it can be checked all the same."""
    rest: dict[str, Any] = copy.deepcopy(dict(document))
    # From the end of a list to its beginning, so that the places of the others stay.
    for at in sorted(
        {fault.at for fault in faults if isinstance(fault, SuiteFault) and fault.at}, key=str, reverse=True
    ):
        holder: Any = rest
        for part in at[:-1]:
            within = isinstance(holder, Mapping) or (isinstance(holder, list) and isinstance(part, int))
            try:
                holder = holder[part] if within else None
            except (KeyError, IndexError):
                holder = None
        if isinstance(holder, dict):
            holder.pop(at[-1], None)
        elif isinstance(holder, list) and isinstance(at[-1], int) and at[-1] < len(holder):
            holder.pop(at[-1])
    return rest


def together(faults: Sequence[ConfigError]) -> ConfigError:
    """One error for all faults."""
    return faults[0] if len(faults) == 1 else SuiteErrors(faults)


def faults_of(error: ValidationError, document: Mapping[str, Any], *, file: str, places: Places) -> list[SuiteError]:
    """The faults that pydantic found, in the order of the file."""
    written = [(written_path(detail["loc"], document), detail) for detail in error.errors(include_url=False)]
    written.sort(key=lambda each: place_of(each[0], places) or ("", 0))
    return [_fault(at, detail, file, places) for at, detail in written]


def _fault(at: At, detail: Any, file: str, places: Places) -> SuiteError:
    kind, given, limits = detail["type"], detail["input"], detail.get("ctx", {})
    message = str(detail["msg"]).removeprefix("Value error, ")
    mend = None
    is_threshold = at[:1] == ("gate",) and at[-1] not in _fields_at(at[:-1])  # under what should be a scorer's name
    if kind == "extra_forbidden" or (kind.startswith("model_") and is_threshold and given is not None):
        message = f"unknown key `{at[-1]}`"
        mend = _nearest(str(at[-1]), _fields_at(at[:-1]), "known here")
    elif kind == "missing":
        message, mend = f"`{at[-1]}` is missing", f"add `{at[-1]}:`"
        at = at[:-1]
    elif kind == "literal_error":
        choices = [part.strip(" '") for part in limits["expected"].replace(" or ", ", ").split(",")]
        if at[:1] == ("scorers",) and detail["loc"][-1] == "kind":
            choices += plugins.offered("scorers")
        message, mend = f"{given!r} is not known here", _nearest(str(given), choices, "one of")
    elif kind == "string_pattern_mismatch":
        message, mend = f"{given!r} is not of the form module:callable", "write e.g. my_app.search:retrieve"
    elif kind in ("string_too_short", "too_short") or (given is None and kind.endswith("_type")):
        message, mend = "is empty", "write a value"
    elif kind in ("model_type", "model_attributes_type", "dict_type"):
        keys = ", ".join(_fields_at(at)) if kind != "dict_type" else "key: value"
        message, mend = f"is {_named(given)}, not a mapping", f"write keys below it: {keys}"
    elif kind == "list_type":
        message, mend = f"is {_named(given)}, not a list", "begin each entry with `- `"
    elif kind == "string_type":
        message, mend = f"is {_named(given)}, not text", "put it in quotes"
    elif kind.startswith(("int_", "float_")):
        number = "whole number" if kind.startswith("int_") else "number"
        message, mend = f"{_shown(given)} is not a {number}", f"write a {number}"
    elif kind == "finite_number":
        message, mend = f"{_shown(given)} is not a finite number", "write a number"
    elif limits.keys() & {"gt", "ge", "lt", "le"}:
        limit = message.removeprefix("Input should be ")
        message, mend = f"{_shown(given)} is out of range", f"write a number {limit}"
    elif kind.startswith("bool_"):
        message, mend = f"{_shown(given)} is not true or false", "write true"
    return SuiteFault(message, where=described(file, at, places), mend=mend, at=at)


def _nearest(given: str, choices: list[str], otherwise: str) -> str:
    within = [choice for choice in choices if given and given in choice]
    if 1 < len(within) <= 4:  # `recall` may be meant for any of these
        return f"did you mean {', '.join(f'`{each}`' for each in within[:-1])} or `{within[-1]}`?"
    near = difflib.get_close_matches(given, choices, n=1)
    return f"did you mean `{near[0]}`?" if near else f"{otherwise}: {', '.join(choices)}"


def _named(value: Any) -> str:
    names = {dict: "a mapping", list: "a list", str: "text", bool: "true or false", int: "a number", float: "a number"}
    return names.get(type(value), f"a {type(value).__name__}")


def _shown(value: Any) -> str:
    return repr(value) if isinstance(value, (str, int, float)) else _named(value)


def written_path(loc: tuple[str | int, ...], document: Mapping[str, Any]) -> At:
    """The place as the user wrote it: parts written as bare text have no keys, scorers may stand under their kind."""
    at: At = ()
    value: Any = document
    for part in loc:
        if str(part).startswith("function-"):  # pydantic's own, for a part that may be bare
            continue
        if len(at) == 2 and at[0] == "scorers" and isinstance(value, Mapping) and "kind" not in value:
            if part == "kind":
                break
            (kind, value), *_ = value.items()
            at = (*at, kind)
        if isinstance(value, Mapping):
            value = value.get(str(part))
        elif isinstance(value, list) and isinstance(part, int):
            value = value[part]
        else:
            break
        at = (*at, part)
    return at


def _fields_at(at: At) -> list[str]:
    """The keys that the model knows at that place."""
    model: type[BaseModel] | None = Suite
    for part in at:
        if model is None:
            return []
        if isinstance(part, str) and part in model.model_fields:
            model = _model_of(model.model_fields[part].annotation)
        elif model in (GatePart, SlicesPart):  # the name of a scorer
            model = ScorerGatePart
    return sorted(each.alias or name for name, each in model.model_fields.items()) if model is not None else []


def _model_of(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if get_origin(annotation) in (list, Union, UnionType) or get_args(annotation):
        for argument in get_args(annotation):
            if (found := _model_of(argument)) is not None:
                return found
    return None
