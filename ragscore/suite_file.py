"""Reads a suite from YAML, and says on which line a fault stands.

The document is kept as written (`SuiteFile.document`), with `${VAR}` unresolved, so that the history never holds a
secret; `SuiteFile.suite` is the checked suite with variables filled in.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin

import yaml
from pydantic import BaseModel, ValidationError

from ragscore.errors import SuiteError
from ragscore.suite import Suite

#: Scalars that are names, taken as written: `version: 1.10` is not the number 1.1, `name: no` not a boolean.
NAMES = frozenset({("name",), ("target", "retriever"), ("target", "version"), ("dataset",), ("dataset", "path")})
VARIABLE = re.compile(r"\$\$\{|\$\{(?P<name>[A-Za-z_]\w*)(?::-(?P<default>[^}]*))?\}")

Path_ = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class SuiteFile:
    """A suite as read: where it stands, as it was written, and as it is meant."""

    suite: Suite
    document: Mapping[str, Any]
    path: Path | None
    base_dir: Path


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
        raise SuiteError(f"cannot be read: {error.strerror}", where=str(path)) from None
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
    try:
        filled = _filled(document, os.environ if environment is None else environment, (), known_lines, file)
        suite = Suite.model_validate(filled)
    except ValidationError as error:
        raise _suite_error(error, file, known_lines) from None
    base = base_dir or (path.parent if path is not None else Path())
    return SuiteFile(suite=suite, document=document, path=path, base_dir=base.resolve())


def _parse(text: str, file: str) -> tuple[dict[str, Any], dict[Path_, int]]:
    loader = yaml.SafeLoader(text)
    try:
        node = loader.get_single_node()
        if not isinstance(node, yaml.MappingNode):
            raise SuiteError("is empty or not a mapping", where=file, mend="a suite starts with `name:`")
        lines: dict[Path_, int] = {}
        value = _value(loader, node, (), lines, file)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{file}:{mark.line + 1}" if mark is not None else file
        raise SuiteError(f"is not YAML: {error.problem}", where=where, mend="check indentation and quotes") from None
    except yaml.YAMLError as error:
        raise SuiteError(f"is not YAML: {error}", where=file, mend="check the characters of the file") from None
    finally:
        loader.dispose()
    return value, lines


def _value(loader: yaml.SafeLoader, node: yaml.Node, at: Path_, lines: dict[Path_, int], file: str) -> Any:
    lines[at] = node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        loader.flatten_mapping(node)
        mapping: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = str(key_node.value)
            line = key_node.start_mark.line + 1
            if key in mapping:
                raise SuiteError(f"`{key}` stands twice", where=f"{file}:{line}", mend="remove one of the two")
            mapping[key] = _value(loader, value_node, (*at, key), lines, file)
            lines[(*at, key)] = line
        return mapping
    if isinstance(node, yaml.SequenceNode):
        return [_value(loader, child, (*at, number), lines, file) for number, child in enumerate(node.value)]
    if at in NAMES and isinstance(node, yaml.ScalarNode) and node.tag != "tag:yaml.org,2002:null":
        return str(node.value)
    return loader.construct_object(node, deep=True)


def _filled(value: Any, environment: Mapping[str, str], at: Path_, lines: Mapping[Path_, int], file: str) -> Any:
    """`value` with `${VAR}` and `${VAR:-default}` filled in; `$${` stands for a literal `${`."""
    if isinstance(value, Mapping):
        return {key: _filled(each, environment, (*at, key), lines, file) for key, each in value.items()}
    if isinstance(value, list):
        return [_filled(each, environment, (*at, number), lines, file) for number, each in enumerate(value)]
    if not isinstance(value, str):
        return value

    def fill(match: re.Match[str]) -> str:
        name = match["name"]
        if name is None:
            return "${"
        found = environment.get(name)
        if found:  # like a shell's :-, an empty variable takes the default
            return found
        if match["default"] is not None:
            return match["default"]
        if found is not None:
            return found
        raise SuiteError(
            f"the environment variable {name} is not set",
            where=_where(file, at, lines),
            mend=f"set it, or write ${{{name}:-default}}",
        )

    return VARIABLE.sub(fill, value)


def _where(file: str, at: Path_, lines: Mapping[Path_, int]) -> str:
    line = next((lines[at[:end]] for end in range(len(at), -1, -1) if at[:end] in lines), None)
    field = ".".join(str(part) for part in at)
    return ": ".join(part for part in (f"{file}:{line}" if line else file, field) if part)


def _suite_error(error: ValidationError, file: str, lines: Mapping[Path_, int]) -> SuiteError:
    faults = [_fault(detail, file, lines) for detail in error.errors(include_url=False)]
    faults.sort(key=lambda fault: [int(part) for part in re.findall(r":(\d+)", fault.where or "")[:1]])
    first = faults[0]
    if len(faults) == 1:
        return first
    return SuiteErrors(faults)


class SuiteErrors(SuiteError):
    """Several faults at once, in the order of the file; one line each."""

    def __init__(self, faults: list[SuiteError]) -> None:
        super().__init__("; ".join(str(fault) for fault in faults))
        self.faults = faults

    def __str__(self) -> str:
        return "\n".join(str(fault) for fault in self.faults)

    def __reduce__(self) -> tuple[object, ...]:
        return (SuiteErrors, (self.faults,))


def _fault(detail: Any, file: str, lines: Mapping[Path_, int]) -> SuiteError:
    at = _written_path(detail["loc"], lines)
    message = str(detail["msg"]).removeprefix("Value error, ")
    mend = None
    if detail["type"] == "extra_forbidden":
        message = f"unknown key `{at[-1]}`"
        choices = _fields_at(at[:-1])
        near = difflib.get_close_matches(str(at[-1]), choices, n=1)
        mend = f"did you mean `{near[0]}`?" if near else f"known here: {', '.join(choices)}"
    elif detail["type"] == "missing":
        message = f"`{at[-1]}` is missing"
        at, mend = at[:-1], f"add `{at[-1]}:`"
    elif detail["type"] == "literal_error":
        choices = [part.strip(" '") for part in detail["ctx"]["expected"].replace(" or ", ", ").split(",")]
        near = difflib.get_close_matches(str(detail["input"]), choices, n=1)
        message = f"{detail['input']!r} is not known here"
        mend = f"did you mean `{near[0]}`?" if near else f"one of: {', '.join(choices)}"
    elif detail["type"] == "string_pattern_mismatch":
        message, mend = f"{detail['input']!r} is not of the form module:callable", "write e.g. my_app.search:retrieve"
    return SuiteError(message, where=_where(file, at, lines), mend=mend)


def _written_path(loc: tuple[str | int, ...], lines: Mapping[Path_, int]) -> Path_:
    """The place as the user wrote it: `scorers.1.kind` may be a bare string or the key of a mapping."""
    path: Path_ = tuple(part for part in loc if not str(part).startswith("function-"))
    while path and path not in lines and path[:-1] not in lines:
        path = path[:-1]
    if path and path[-1] in ("kind", "name") and path not in lines:
        path = path[:-1]
    return path


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
