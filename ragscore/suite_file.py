"""Reads a suite from YAML, and says on which line a fault stands.

The document is kept as written (`SuiteFile.document`), with `${VAR}` unresolved, so that the history never holds a
secret; `SuiteFile.suite` is the checked suite with variables filled in.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin

import yaml
from pydantic import BaseModel, ValidationError
from yaml.reader import ReaderError

from ragscore.errors import SuiteError
from ragscore.suite import Suite

#: Scalars that are names, taken as written: `version: 1.10` is not the number 1.1, `name: no` not a boolean.
NAMES = frozenset({("name",), ("target", "retriever"), ("target", "version"), ("dataset",), ("dataset", "path")})
#: `$${` for a literal `${`, `${NAME}`, or `${NAME:-default}`, whose default may hold one more variable; else a slip.
VARIABLE = re.compile(
    r"\$\$\{|\$\{(?P<name>[A-Za-z_]\w*)(?::-(?P<default>(?:\$\{[^{}]*\}|\$(?!\{)|[^$}])*))?\}|(?P<slip>\$\{[^}]*\}?)"
)

Path_ = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class SuiteFile:
    """A suite as read: where it stands, as it was written, and as it is meant."""

    suite: Suite
    document: Mapping[str, Any]
    path: Path | None
    base_dir: Path
    lines: Mapping[Path_, int] = field(default_factory=dict)

    def where(self, *at: str | int) -> str:
        """File, line and field of a place in the suite, for messages."""
        return _where(str(self.path) if self.path is not None else "suite", at, self.lines)

    def changed(self, **changes: Any) -> SuiteFile:
        """The suite with top-level keys of its document replaced (`judge__fresh=True` for a key of a part).

        Raises:
            SuiteError: it is no suite then.
        """
        document = dict(self.document)
        for name, value in changes.items():
            part, _, key = name.partition("__")
            if key:
                whole = document.get(part, {})
                bare = {"judge": "model"}.get(part, "path")
                document[part] = {**({bare: whole} if isinstance(whole, str) else whole), key: value}
            else:
                document[part] = value
        return check_suite(document, path=self.path, base_dir=self.base_dir, lines=self.lines)


def read_suite(path: Path, *, environment: Mapping[str, str] | None = None) -> SuiteFile:
    """Read and check a suite file.

    Raises:
        SuiteError: the file is missing, is not YAML, or is not a suite; the message names file, line and field.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise SuiteError("no such file", where=str(path), mend=_near_file(path)) from None
    except IsADirectoryError:
        raise SuiteError("is a directory, not a suite file", where=str(path), mend="name the YAML file in it") from None
    except UnicodeDecodeError:
        raise SuiteError("is not UTF-8 text", where=str(path), mend="save the file as UTF-8") from None
    except OSError as error:
        what = f"cannot be read: {error.strerror}"
        raise SuiteError(what, where=str(path), mend="check the path and its rights") from None
    document, lines = _parse(text, str(path))
    return check_suite(document, path=path, lines=lines, environment=environment)


def check_suite(
    document: Mapping[str, Any],
    *,
    path: Path | None = None,
    base_dir: Path | None = None,
    lines: Mapping[Path_, int] | None = None,
    environment: Mapping[str, str] | None = None,
) -> SuiteFile:
    """Check a suite given as a document (a mapping, as YAML gives it).

    Raises:
        SuiteError: it is not a suite; all faults in one message, one per line of `SuiteError.what`.
    """
    file = str(path) if path is not None else "suite"
    known_lines = lines or {}
    faults: list[SuiteError] = []
    filled = _filled(document, os.environ if environment is None else environment, (), known_lines, file, faults)
    if faults:
        raise _together(faults)
    try:
        suite = Suite.model_validate(filled)
    except ValidationError as error:
        details = error.errors(include_url=False)
        written = [(_written_path(detail["loc"], document), detail) for detail in details]
        written.sort(key=lambda fault: _line(fault[0], known_lines) or 0)
        raise _together([_fault(at, detail, file, known_lines) for at, detail in written]) from None
    base = base_dir or (path.parent if path is not None else Path())
    return SuiteFile(suite=suite, document=document, path=path, base_dir=base.resolve(), lines=known_lines)


def _parse(text: str, file: str) -> tuple[dict[str, Any], dict[Path_, int]]:
    try:
        loader = yaml.SafeLoader(text)
    except ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise SuiteError(
            f"is not YAML: the character U+{error.character:04X} is not allowed",
            where=f"{file}:{line}",
            mend="remove it",
        ) from None
    try:
        node = loader.get_single_node()
        if not isinstance(node, yaml.MappingNode):
            raise SuiteError("is empty or not a mapping", where=file, mend="a suite starts with `name:`")
        _check_keys(node, file, [])
        lines: dict[Path_, int] = {}
        value = _value(loader, node, (), lines, file)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{file}:{mark.line + 1}" if mark is not None else file
        mend = "indent with spaces, not tabs" if "'\\t'" in str(error.problem) else "check indentation and quotes"
        raise SuiteError(f"is not YAML: {error.problem}", where=where, mend=mend) from None
    except RecursionError:
        raise SuiteError("is nested too deeply", where=file, mend="check brackets") from None
    finally:
        loader.dispose()
    return value, lines


def _check_keys(node: yaml.Node, file: str, above: list[yaml.Node]) -> None:
    """Refuse what YAML lets pass: a key that stands twice, a key that is no text, an alias within its own anchor.

    Looks at the tree as written, before merge keys (`<<`) bring in keys that may well be overridden.
    """
    where = f"{file}:{node.start_mark.line + 1}"
    if any(node is each for each in above):
        raise SuiteError("an alias stands within what it names", where=where, mend="write the value out")
    children = node.value if isinstance(node, yaml.CollectionNode) else []
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, _ in node.value:
            where = f"{file}:{key.start_mark.line + 1}"
            if not isinstance(key, yaml.ScalarNode):
                raise SuiteError("a key is not text", where=where, mend="write `key: value`")
            if key.value in seen:
                raise SuiteError(f"`{key.value}` stands twice", where=where, mend="remove one of the two")
            seen.add(key.value)
        children = [value for _, value in node.value]
    for child in children:
        _check_keys(child, file, [*above, node])


def _value(loader: yaml.SafeLoader, node: yaml.Node, at: Path_, lines: dict[Path_, int], file: str) -> Any:
    lines[at] = node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        loader.flatten_mapping(node)
        mapping: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = str(key_node.value)
            mapping[key] = _value(loader, value_node, (*at, key), lines, file)
            lines[(*at, key)] = key_node.start_mark.line + 1
        return mapping
    if isinstance(node, yaml.SequenceNode):
        return [_value(loader, child, (*at, number), lines, file) for number, child in enumerate(node.value)]
    if at in NAMES and isinstance(node, yaml.ScalarNode) and node.tag != "tag:yaml.org,2002:null":
        return str(node.value)
    try:
        return loader.construct_object(node, deep=True)
    except (ValueError, KeyError):  # 2024-13-45, !!int abc, !!bool abc
        field = ".".join(map(str, at))
        raise SuiteError(
            f"{node.value!r} cannot be read as {node.tag.rpartition(':')[2]}",
            where=f"{file}:{lines[at]}: {field}",
            mend="put it in quotes",
        ) from None


def _filled(
    value: Any,
    environment: Mapping[str, str],
    at: Path_,
    lines: Mapping[Path_, int],
    file: str,
    faults: list[SuiteError],
) -> Any:
    """`value` with `${VAR}` and `${VAR:-default}` filled in; `$${` stands for a literal `${`. Adds to `faults`."""
    if isinstance(value, Mapping):
        return {key: _filled(each, environment, (*at, key), lines, file, faults) for key, each in value.items()}
    if isinstance(value, list):
        return [_filled(each, environment, (*at, number), lines, file, faults) for number, each in enumerate(value)]
    if not isinstance(value, str):
        return value

    def fill(match: re.Match[str]) -> str:
        name, slip = match["name"], match["slip"]
        if slip is not None:
            mend = "write ${NAME} or ${NAME:-default}, and $${ for a literal ${"
            faults.append(SuiteError(f"{slip} is not a variable", where=_where(file, at, lines), mend=mend))
            return slip
        if name is None:
            return "${"
        found = environment.get(name)
        if found:  # like a shell's :-, an empty variable takes the default
            return found
        if match["default"] is not None:
            return VARIABLE.sub(fill, match["default"])
        if found is not None:
            return found
        what, mend = f"the environment variable {name} is not set", f"set it, or write ${{{name}:-default}}"
        faults.append(SuiteError(what, where=_where(file, at, lines), mend=mend))
        return ""

    return VARIABLE.sub(fill, value)


def _where(file: str, at: Path_, lines: Mapping[Path_, int]) -> str:
    line = _line(at, lines)
    field = ".".join(str(part) for part in at)
    return ": ".join(part for part in (f"{file}:{line}" if line else file, field) if part)


def _line(at: Path_, lines: Mapping[Path_, int]) -> int | None:
    return next((lines[at[:end]] for end in range(len(at), -1, -1) if at[:end] in lines), None)


def _together(faults: list[SuiteError]) -> SuiteError:
    return faults[0] if len(faults) == 1 else SuiteErrors(faults)


class SuiteErrors(SuiteError):
    """Several faults at once, in the order of the file; one line each."""

    def __init__(self, faults: list[SuiteError]) -> None:
        super().__init__("; ".join(str(fault) for fault in faults))
        self.faults = faults

    def __str__(self) -> str:
        return "\n".join(str(fault) for fault in self.faults)

    def __reduce__(self) -> tuple[object, ...]:
        return (SuiteErrors, (self.faults,))


def _fault(at: Path_, detail: Any, file: str, lines: Mapping[Path_, int]) -> SuiteError:
    kind, given, limits = detail["type"], detail["input"], detail.get("ctx", {})
    message = str(detail["msg"]).removeprefix("Value error, ")
    mend = None
    if kind == "extra_forbidden":
        message = f"unknown key `{at[-1]}`"
        mend = _nearest(str(at[-1]), _fields_at(at[:-1]), "known here")
    elif kind == "missing":
        message, mend = f"`{at[-1]}` is missing", f"add `{at[-1]}:`"
        at = at[:-1]
    elif kind == "literal_error":
        choices = [part.strip(" '") for part in limits["expected"].replace(" or ", ", ").split(",")]
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
    return SuiteError(message, where=_where(file, at, lines), mend=mend)


def _nearest(given: str, choices: list[str], otherwise: str) -> str:
    near = difflib.get_close_matches(given, choices, n=1)
    return f"did you mean `{near[0]}`?" if near else f"{otherwise}: {', '.join(choices)}"


def _named(value: Any) -> str:
    names = {dict: "a mapping", list: "a list", str: "text", bool: "true or false", int: "a number", float: "a number"}
    return names.get(type(value), f"a {type(value).__name__}")


def _shown(value: Any) -> str:
    return repr(value) if isinstance(value, (str, int, float)) else _named(value)


def _written_path(loc: tuple[str | int, ...], document: Mapping[str, Any]) -> Path_:
    """The place as the user wrote it: parts written as bare text have no keys, scorers may stand under their kind."""
    at: Path_ = ()
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


def _fields_at(at: Path_) -> list[str]:
    """The keys that the model knows at that place."""
    model: type[BaseModel] | None = Suite
    for part in at:
        if model is None:
            return []
        if isinstance(part, str) and part in model.model_fields:
            model = _model_of(model.model_fields[part].annotation)
    return sorted(model.model_fields) if model is not None else []


def _model_of(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if get_origin(annotation) in (list, Union, UnionType) or get_args(annotation):
        for argument in get_args(annotation):
            if (found := _model_of(argument)) is not None:
                return found
    return None


def _near_file(path: Path) -> str:
    folder = path.parent
    names = [p.name for p in folder.glob("*.y*ml")] if folder.is_dir() else []
    near = difflib.get_close_matches(path.name, names, n=1)
    if near:
        return f"did you mean {folder / near[0]}?"
    return "give the path of a suite file (YAML)"
