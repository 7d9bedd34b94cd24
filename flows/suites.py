"""Which suites a flow is about: the files in a folder, those of a retriever, and one of them with another version."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragscore.errors import ConfigError, RagscoreError, UsageError
from ragscore.suite_file import SuiteFile, read_suites
from ragscore.suite_yaml import read_document


def suite_paths(places: Iterable[Path | str]) -> list[Path]:
    """The suite files among files and folders, in the order of their names.

    A file is taken as it is. In a folder every `*.yaml` and `*.yml` that has a `dataset` and a `target` counts, so
    that what other suites extend, and other people's YAML, may lie there too.

    Raises:
        UsageError: a place is not there.
        SuiteError: a file is not YAML.
    """
    return [path for path, is_named in _files(places) if is_named or _is_suite(read_document(path)[0])]


def _files(places: Iterable[Path | str]) -> list[tuple[Path, bool]]:
    """The YAML files of the places, each once, and whether it was named itself."""
    found: dict[Path, bool] = {}
    for place in map(Path, places):
        if place.is_dir():
            files = sorted(each for each in place.iterdir() if each.suffix in (".yaml", ".yml") and each.is_file())
            for each in files:
                found.setdefault(each, False)
        elif place.exists():
            found[place] = True
        else:
            raise UsageError("no such file or folder", where=str(place), mend="name suite files, or a folder of them")
    return list(found.items())


def _is_suite(document: Mapping[str, Any]) -> bool:
    return "dataset" in document and ("target" in document or "targets" in document)


@dataclass(frozen=True, slots=True)
class Found:
    """The suites of a retriever, and those that nobody can tell of whether they are, because they are wrong.

    Attributes:
        paths: The suite files, in the order of their names.
        broken: What is wrong, by file.
    """

    paths: Sequence[Path]
    broken: Mapping[Path, RagscoreError]


def suites_of(retriever: str, places: Iterable[Path | str]) -> Found:
    """Those of the suites whose target is `retriever`. A wrong one does not take the others down.

    Raises:
        UsageError: there is none, nor a wrong one that may be it; or a place is not there.
    """
    places = list(places)
    found: list[Path] = []
    broken: dict[Path, RagscoreError] = {}
    known: set[str] = set()
    for path, is_named in _files(places):
        document: Mapping[str, Any] = {}
        try:
            document = read_document(path)[0]
            if not is_named and not _is_suite(document):
                continue
            retrievers = {each.suite.target.retriever for each in read_suites(path)}
        except ConfigError as error:
            if retriever in (_named(document) or {retriever}):
                broken[path] = error
            continue
        known |= retrievers
        if retriever in retrievers:
            found.append(path)
    if not found and not broken:
        raise UsageError(
            f"no suite is about the retriever {retriever!r}",
            where=", ".join(map(str, places)),
            mend=f"retrievers here: {', '.join(sorted(known)) or 'none'}; a suite names its own as target.retriever",
        )
    return Found(found, broken)


def _named(document: Mapping[str, Any]) -> set[str]:
    """The retrievers that a suite names plainly; empty when it may be any."""
    targets = document.get("targets", [document.get("target")])
    if not isinstance(targets, list):
        return set()
    names = {each.get("retriever") if isinstance(each, dict) else None for each in targets}
    is_plain = all(isinstance(name, str) and "$" not in name for name in names)
    return {str(name) for name in names} if is_plain else set()


def chosen(path: Path, *, retriever: str | None = None, version: str | None = None) -> SuiteFile:
    """The suite in a file, with the version that was deployed in the place of its own.

    Where a file has several targets, `retriever` chooses among them, and then the version.

    Raises:
        UsageError: several targets fit, or none.
        SuiteError: the suite is wrong.
    """
    files: Sequence[SuiteFile] = read_suites(path)
    if retriever is not None:
        files = [each for each in files if each.suite.target.retriever == retriever]
    if len(files) > 1:
        files = [each for each in files if each.suite.target.version == version] or files
    if len(files) != 1:
        raise UsageError(
            f"{len(files)} of its targets fit {retriever or 'the flow'} {version or ''}".strip(),
            where=str(path),
            mend="name a retriever and version that one target has, or give each target a suite of its own",
        )
    (file,) = files
    if version is None or file.suite.target.version == version:
        return file
    if file.document.get("target") == "none":
        return file.changed(target={"none": True, "version": version})
    return file.changed(target__version=version)
