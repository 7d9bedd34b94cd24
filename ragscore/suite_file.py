"""Suites as read from a file: checked, with variables filled in, one per target.

The document is kept as written (`SuiteFile.document`), with `${VAR}` unresolved, so that the history never holds a
secret; `SuiteFile.suite` is the checked suite with variables filled in.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ragscore.errors import ConfigError, SuiteError
from ragscore.secrets import Secrets
from ragscore.suite import Suite
from ragscore.suite_faults import SuiteErrors, faults_of, together
from ragscore.suite_yaml import At, Places, described, merged, read_document

__all__ = ["SuiteErrors", "SuiteFile", "check_suite", "read_suite", "read_suites"]

#: `$${` for a literal `${`, `${NAME}`, or `${NAME:-default}`, whose default may hold one more variable; else a slip.
VARIABLE = re.compile(
    r"\$\$\{|\$\{(?P<name>[A-Za-z_]\w*)(?::-(?P<default>(?:\$\{[^{}]*\}|\$(?!\{)|[^$}])*))?\}|(?P<slip>\$\{[^}]*\}?)"
)


@dataclass(frozen=True, slots=True)
class SuiteFile:
    """A suite as read: where it stands, as it was written, and as it is meant.

    `secrets` are the values that variables gave to it, to be kept out of messages.
    """

    suite: Suite
    document: Mapping[str, Any]
    path: Path | None
    base_dir: Path
    places: Places = field(default_factory=dict)
    secrets: Secrets = field(default_factory=Secrets, repr=False, compare=False)

    def where(self, *at: str | int) -> str:
        """File, line and field of a place in the suite, for messages."""
        return described(str(self.path) if self.path is not None else "suite", at, self.places)

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
        return check_suite(document, path=self.path, base_dir=self.base_dir, places=self.places)


def read_suite(path: Path, *, environment: Mapping[str, str] | None = None) -> SuiteFile:
    """Read and check a suite file that has one target.

    Raises:
        SuiteError: the file is missing, is not YAML, is not a suite, or has several `targets`; the message names file,
            line and field.
    """
    files = read_suites(path, environment=environment)
    if len(files) > 1:
        raise SuiteError(f"has {len(files)} targets", where=str(path), mend="name a suite with one `target` here")
    return files[0]


def read_suites(path: Path, *, environment: Mapping[str, str] | None = None) -> list[SuiteFile]:
    """Read and check a suite file: one suite, or one per entry of its `targets`.

    An entry of `targets` is laid over `target`, which may hold what they share.

    Raises:
        SuiteError: as for `read_suite`.
    """
    document, places = read_document(path)
    if "targets" not in document:
        return [check_suite(document, path=path, places=places, environment=environment)]
    entries = document.pop("targets")
    where = described(str(path), ("targets",), places)
    shared = document.get("target", {})
    if not isinstance(entries, list) or not entries or not all(isinstance(each, Mapping) for each in entries):
        raise SuiteError("is not a list of targets", where=where, mend="begin each target with `- version: …`")
    if not isinstance(shared, Mapping):
        raise SuiteError(
            "is not a mapping", where=described(str(path), ("target",), places), mend="write keys below it"
        )
    files: list[SuiteFile] = []
    faults: list[ConfigError] = []
    for number, entry in enumerate(entries):
        moved = {
            ("target", *at[2:]): place for at, place in places.items() if at[:2] == ("targets", number) and len(at) > 1
        }
        whole = {**document, "target": merged(shared, entry)}
        try:
            files.append(check_suite(whole, path=path, places={**places, **moved}, environment=environment))
        except SuiteErrors as error:
            faults += error.faults
        except SuiteError as error:
            faults.append(error)
    if faults:
        raise together(list({str(fault): fault for fault in faults}.values()))
    seen: set[tuple[str, str]] = set()
    for number, file in enumerate(files):
        named = (file.suite.target.retriever, file.suite.target.version)
        if named in seen:
            raise SuiteError(
                f"two targets are {named[0]} {named[1]}",
                where=described(str(path), ("targets", number), places),
                mend="give each its own `version` (or `retriever`)",
            )
        seen.add(named)
    return files


def check_suite(
    document: Mapping[str, Any],
    *,
    path: Path | None = None,
    base_dir: Path | None = None,
    places: Places | None = None,
    environment: Mapping[str, str] | None = None,
) -> SuiteFile:
    """Check a suite given as a document (a mapping, as YAML gives it).

    Raises:
        SuiteError: it is not a suite; `SuiteErrors` when there are several faults, in the order of the file.
    """
    file = str(path) if path is not None else "suite"
    known = places or {}
    faults: list[ConfigError] = []
    filled = _filled(document, os.environ if environment is None else environment, (), known, file, faults)
    try:
        suite = Suite.model_validate(filled)
    except ValidationError as error:
        unset = {fault.where for fault in faults}  # what an unset variable left empty is no second fault
        faults += [each for each in faults_of(error, document, file=file, places=known) if each.where not in unset]
    if faults:
        raise together(faults)
    base = base_dir or (path.parent if path is not None else Path())
    secrets = Secrets.of(document, filled)
    return SuiteFile(suite, document, path, base.resolve(), known, secrets)


def _filled(
    value: Any,
    environment: Mapping[str, str],
    at: At,
    places: Places,
    file: str,
    faults: list[ConfigError],
) -> Any:
    """`value` with `${VAR}` and `${VAR:-default}` filled in; `$${` stands for a literal `${`. Adds to `faults`."""
    if isinstance(value, Mapping):
        return {key: _filled(each, environment, (*at, key), places, file, faults) for key, each in value.items()}
    if isinstance(value, list):
        return [_filled(each, environment, (*at, number), places, file, faults) for number, each in enumerate(value)]
    if not isinstance(value, str):
        return value

    def fill(match: re.Match[str]) -> str:
        name, slip = match["name"], match["slip"]
        if slip is not None:
            mend = "write ${NAME} or ${NAME:-default}, and $${ for a literal ${"
            faults.append(SuiteError(f"{slip} is not a variable", where=described(file, at, places), mend=mend))
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
        faults.append(SuiteError(what, where=described(file, at, places), mend=mend))
        return ""

    return VARIABLE.sub(fill, value)
