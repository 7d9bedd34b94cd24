"""Reads a suite's YAML into a document, and remembers where everything stands.

`extends: base.yaml` takes another file's keys as defaults: mappings are merged, everything else is replaced.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from yaml.reader import ReaderError

from ragscore.errors import SuiteError

#: Scalars that are names, taken as written: `version: 1.10` is not the number 1.1, `name: no` not a boolean.
NAMES = frozenset({"name", "retriever", "version", "dataset", "path", "extends"})


class Place(NamedTuple):
    """Where something stands: file and line (the first is 1)."""

    file: str
    line: int


#: Keys and list positions from the top of a document down.
At = tuple[str | int, ...]
Places = Mapping[At, Place]


def read_document(path: Path, *, below: tuple[Path, ...] = ()) -> tuple[dict[str, Any], dict[At, Place]]:
    """The document of a suite file with what it extends, and the place of every key and list entry.

    Args:
        path: The file.
        below: The files that extend this one.

    Raises:
        SuiteError: a file is missing or is not YAML, or files extend each other in a circle.
    """
    document, places = parse(_text(path), str(path))
    base = document.pop("extends", None)
    if base is None:
        return document, places
    where = f"{path}:{places[('extends',)].line}: extends"
    if not isinstance(base, str) or not base:
        raise SuiteError("is not the path of a suite file", where=where, mend="write e.g. base.yaml")
    base_path = path.parent / base
    if base_path.resolve() in [each.resolve() for each in (path, *below)]:
        raise SuiteError("the files extend each other in a circle", where=where, mend="remove one `extends`")
    try:
        defaults, default_places = read_document(base_path, below=(path, *below))
    except SuiteError as error:
        if error.what == "no such file":
            raise SuiteError(f"no such file: {base_path}", where=where, mend=error.mend) from None
        raise
    return merged(defaults, document), {**default_places, **places}


def merged(defaults: Mapping[str, Any], document: Mapping[str, Any]) -> dict[str, Any]:
    """`document` over `defaults`: mappings are merged key by key, everything else is replaced."""
    result = dict(defaults)
    for key, value in document.items():
        under = result.get(key)
        both = isinstance(value, Mapping) and isinstance(under, Mapping)
        result[key] = merged(under, value) if both and under is not None else value
    return result


def described(file: str, at: At, places: Places) -> str:
    """File, line and field, for messages: `suite.yaml:4: target.python`."""
    place = place_of(at, places)
    field = ".".join(str(part) for part in at)
    return ": ".join(part for part in (f"{place.file}:{place.line}" if place else file, field) if part)


def place_of(at: At, places: Places) -> Place | None:
    """The place of a field, or of the nearest thing around it that has one."""
    return next((places[at[:end]] for end in range(len(at), -1, -1) if at[:end] in places), None)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise SuiteError("no such file", where=str(path), mend=_near_file(path)) from None
    except IsADirectoryError:
        raise SuiteError("is a directory, not a suite file", where=str(path), mend="name the YAML file in it") from None
    except UnicodeDecodeError:
        raise SuiteError("is not UTF-8 text", where=str(path), mend="save the file as UTF-8") from None
    except OSError as error:
        what = f"cannot be read: {error.strerror}"
        raise SuiteError(what, where=str(path), mend="check the path and its rights") from None


def parse(text: str, file: str) -> tuple[dict[str, Any], dict[At, Place]]:
    """The document of one YAML text, and the place of every key and list entry.

    Raises:
        SuiteError: it is not YAML, or not a mapping.
    """
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
        places: dict[At, Place] = {}
        value = _value(loader, node, (), places, file)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{file}:{mark.line + 1}" if mark is not None else file
        mend = "indent with spaces, not tabs" if "'\\t'" in str(error.problem) else "check indentation and quotes"
        raise SuiteError(f"is not YAML: {error.problem}", where=where, mend=mend) from None
    except RecursionError:
        raise SuiteError("is nested too deeply", where=file, mend="check brackets") from None
    finally:
        loader.dispose()
    return value, places


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


def _value(loader: yaml.SafeLoader, node: yaml.Node, at: At, places: dict[At, Place], file: str) -> Any:
    places[at] = Place(file, node.start_mark.line + 1)
    if isinstance(node, yaml.MappingNode):
        loader.flatten_mapping(node)
        mapping: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = str(key_node.value)
            mapping[key] = _value(loader, value_node, (*at, key), places, file)
            places[(*at, key)] = Place(file, key_node.start_mark.line + 1)
        return mapping
    if isinstance(node, yaml.SequenceNode):
        return [_value(loader, child, (*at, number), places, file) for number, child in enumerate(node.value)]
    if at and at[-1] in NAMES and isinstance(node, yaml.ScalarNode) and node.tag != "tag:yaml.org,2002:null":
        return str(node.value)
    try:
        return loader.construct_object(node, deep=True)
    except (ValueError, KeyError):  # 2024-13-45, !!int abc, !!bool abc
        field = ".".join(map(str, at))
        raise SuiteError(
            f"{node.value!r} cannot be read as {node.tag.rpartition(':')[2]}",
            where=f"{file}:{places[at].line}: {field}",
            mend="put it in quotes",
        ) from None


def _near_file(path: Path) -> str:
    folder = path.parent
    names = [p.name for p in folder.glob("*.y*ml")] if folder.is_dir() else []
    near = difflib.get_close_matches(path.name, names, n=1)
    if near:
        return f"did you mean {folder / near[0]}?"
    return "give the path of a suite file (YAML)"
