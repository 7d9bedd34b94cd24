"""Which suites a flow is about: the files in a folder, those of a retriever, and one of them with another version."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from ragscore.errors import UsageError
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
    found: list[Path] = []
    for place in map(Path, places):
        if place.is_dir():
            files = sorted(each for each in place.iterdir() if each.suffix in (".yaml", ".yml") and each.is_file())
            found += [each for each in files if _is_suite(each)]
        elif place.exists():
            found.append(place)
        else:
            raise UsageError("no such file or folder", where=str(place), mend="name suite files, or a folder of them")
    return list(dict.fromkeys(found))


def _is_suite(path: Path) -> bool:
    document, _ = read_document(path)
    return "dataset" in document and ("target" in document or "targets" in document)


def suites_of(retriever: str, places: Iterable[Path | str]) -> list[Path]:
    """Those of the suites whose target is `retriever`.

    Raises:
        UsageError: there is none.
        SuiteError: a suite is wrong; it may be the one that is looked for.
    """
    places = list(places)
    paths = suite_paths(places)
    found = [path for path in paths if any(each.suite.target.retriever == retriever for each in read_suites(path))]
    if not found:
        known = sorted({each.suite.target.retriever for path in paths for each in read_suites(path)})
        raise UsageError(
            f"no suite is about the retriever {retriever!r}",
            where=", ".join(map(str, places)),
            mend=f"retrievers here: {', '.join(known) or 'none'}; a suite names its own as target.retriever",
        )
    return found


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
