"""From the suite's `dataset:` to a checked dataset: which kind of source it names, and where the files are."""

from __future__ import annotations

import glob
import re
from pathlib import Path

from ragscore.addresses import without_secrets
from ragscore.datasets import duck
from ragscore.datasets.checking import checked
from ragscore.datasets.dataset import Dataset
from ragscore.datasets.jsonl import JsonLines
from ragscore.datasets.selection import select
from ragscore.datasets.source import Source
from ragscore.datasets.tables import Tables
from ragscore.datasets.trec import QRELS_SUFFIXES, RUN_SUFFIXES, Collection, collection_in, collection_source
from ragscore.errors import DatasetError
from ragscore.secrets import Secrets
from ragscore.suite import DatasetPart

#: The kind of a file by the end of its name, before `.gz`.
KINDS = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".duckdb": "duckdb",
    ".ddb": "duckdb",
    ".db": "duckdb",
    **dict.fromkeys(RUN_SUFFIXES, "run"),
    **dict.fromkeys(QRELS_SUFFIXES, "qrels"),
}
SPREADSHEETS = (".xlsx", ".xls", ".xlsm", ".ods", ".numbers")
SPLITS = ("train", "validation", "valid", "val", "dev", "test")


def load_dataset(
    part: DatasetPart, *, base_dir: Path, where: str = "dataset", secrets: Secrets | None = None
) -> Dataset:
    """The dataset that a suite names, checked in one pass.

    Args:
        part: The suite's `dataset:`.
        base_dir: What its paths are relative to.
        where: The place of `dataset:` in the suite, for messages.
        secrets: Kept out of what is told of a callable's failure.

    Raises:
        DatasetError: it cannot be read, or rows are faulty: all of them at once, the first 20 with row and field.
        ConfigError: a callable that it names is not there.
    """
    source = source_of(part, base_dir=base_dir, where=where, secrets=secrets)
    wanted = select(source, where=part.where, sample=part.sample, seed=part.seed, limit=part.limit, at=where)
    mends = {
        "jsonl": 'write one JSON object a line: {"input": …}',
        "csv": "write a header and one item a row",
        "tsv": "write a header and one item a row",
    }
    return checked(
        source,
        name=part.described,
        wanted=wanted,
        columns={str(field): column for field, column in part.columns.items()},
        alternatives=part.references == "alternatives",
        empty=mends.get(_kind_of(Path(part.path or "")) or "", "check what it names"),
    )


def source_of(part: DatasetPart, *, base_dir: Path, where: str = "dataset", secrets: Secrets | None = None) -> Source:
    """The source that a suite's `dataset:` names, without `where`, `sample` and `limit`.

    Raises:
        DatasetError: there is no such file, or its kind is not known.
    """
    if part.python is not None:
        from ragscore.datasets.calling import called_source

        return called_source(part.python, base_dir=base_dir, where=f"{where}.python", secrets=secrets)
    if part.plugin is not None:
        from ragscore.datasets.calling import read_source

        path = part.path if part.path is None or duck.REMOTE.match(part.path) else _existing(part.path, base_dir)
        return read_source(part.plugin, path, where=f"{where}.plugin", secrets=secrets)
    if part.queries or part.qrels or part.run:
        return collection_source(_named_collection(part, base_dir), part.described)
    if part.sql is not None:
        return _queried(part, part.sql, base_dir=base_dir, where=where)
    assert part.path is not None
    paths = _found(part.path, base_dir)
    if (part.format or _kind_of(paths[0])) == "duckdb":
        return _queried(part, _only_table(paths[0]), base_dir=base_dir, where=where)
    return _opened(paths, kind=part.format, split=part.split, name=_shown(base_dir, part.path))


def _queried(part: DatasetPart, sql: str, *, base_dir: Path, where: str) -> Source:
    from ragscore.datasets.queries import query_source

    def open_files(path: str) -> Source:
        return _opened(_found(path, base_dir), kind=None, split=None, name=_shown(base_dir, path))

    database = data = None
    if part.path is not None:
        paths = _found(part.path, base_dir)
        if (part.format or _kind_of(paths[0])) == "duckdb":
            (database, *_) = paths
        else:
            data = _opened(paths, kind=part.format, split=part.split, name=_shown(base_dir, part.path))
    return query_source(
        sql, base_dir=base_dir, where=f"{where}.sql", open_files=open_files, database=database, data=data
    )


def _only_table(database: Path) -> str:
    from ragscore.datasets.queries import tables_of

    tables = tables_of(database)
    if len(tables) != 1:
        said = ", ".join(tables[:20]) or "none"
        mend = f"say which rows with `sql: SELECT … FROM …`; tables: {said}"
        raise DatasetError(f"has {len(tables)} tables", where=str(database), mend=mend)
    return f"SELECT * FROM {duck.name(tables[0])}"


def _named_collection(part: DatasetPart, base_dir: Path) -> Collection:
    def path(given: str | None) -> Path | None:
        return None if given is None else _existing(given, base_dir)

    found = Collection()
    if part.path is not None and (folder := _full(part.path, base_dir)).is_dir():
        found = collection_in(folder, split=part.split) or found
    return Collection(
        queries=path(part.queries) or found.queries,
        qrels=path(part.qrels) or found.qrels,
        run=path(part.run) or found.run,
        corpus=path(part.corpus) or found.corpus,
    )


def _opened(paths: list[Path], *, kind: str | None, split: str | None, name: str) -> Source:
    """The source of files that are there, or of the folder that is the only one of them."""
    first = paths[0]
    if len(paths) == 1 and first.is_dir():
        return _in_folder(first, kind=kind, split=split, name=name)
    kinds = {kind or _kind_of(path) for path in paths}
    if len(kinds) > 1:
        said = ", ".join(sorted(str(each) for each in kinds))
        raise DatasetError(f"names files of several kinds ({said})", where=name, mend="name files of one kind")
    shown = [_named(path) for path in paths]
    match kinds.pop():
        case "jsonl":
            return JsonLines(paths, name, shown=shown)
        case "json":
            from ragscore.datasets.documents import json_source

            return json_source(paths, name)
        case "csv" | "tsv" | "parquet" as table:
            return Tables(paths, name, table, shown=shown)
        case "arrow":
            from ragscore.datasets.arrow import arrow_source

            return arrow_source(paths, name)
        case "run":
            return collection_source(Collection(run=first), name)
        case "qrels":
            return collection_source(Collection(qrels=first), name)
    known = ", ".join(dict.fromkeys(KINDS.values()))
    if first.suffix.lower() in SPREADSHEETS:
        raise DatasetError("is a spreadsheet", where=name, mend="save the sheet as CSV (Excel: CSV UTF-8)")
    raise DatasetError(
        f"is of a kind that is not known by its name ({first.name})",
        where=name,
        mend=f"say which with `format:`; one of: {known}",
    )


def _in_folder(folder: Path, *, kind: str | None, split: str | None, name: str) -> Source:
    if (collection := collection_in(folder, split=split)) is not None:
        return collection_source(collection, name)
    files = sorted(path for path in folder.rglob("*") if path.suffix in (".arrow", ".parquet") and _is_data(path))
    if not files:
        there = sorted(path.name for path in folder.iterdir() if _kind_of(path))[:10]
        mend = f"name one of its files: {', '.join(there)}" if there else "name a file"
        raise DatasetError("is a directory that holds no dataset", where=name, mend=mend)
    splits: dict[str, list[Path]] = {}
    for path in files:
        splits.setdefault(_split_of(path.relative_to(folder)), []).append(path)
    if split is None and len(splits) > 1:
        mend = f"name one with `split:`; there are: {', '.join(sorted(splits))}"
        raise DatasetError("has several splits", where=name, mend=mend)
    if split is not None and split not in splits and not (len(splits) == 1 and "" in splits):
        there_are = ", ".join(sorted(each for each in splits if each)) or "none"
        raise DatasetError(f"has no split {split!r}", where=name, mend=f"there are: {there_are}")
    chosen = splits[split] if split in splits else next(iter(splits.values()))
    subsets = sorted({_subset_of(path.relative_to(folder)) for path in chosen})
    if len(subsets) > 1:
        mend = (
            f"name the folder of one: {', '.join(each or '.' for each in subsets[:20])}; or all files by a pattern (**)"
        )
        raise DatasetError(f"holds {len(subsets)} datasets", where=name, mend=mend)
    return _opened(chosen, kind=kind, split=None, name=name)


def _is_data(path: Path) -> bool:
    """Hugging Face keeps what `map` and `filter` gave beside the data."""
    return not path.name.startswith(("cache-", ".", "_")) and ".cache" not in path.parts


def _split_of(path: Path) -> str:
    """The split that a file belongs to: by its name, else by the folder that it stands in; empty if none."""
    for part in (path.name, *reversed(path.parts[:-1])):
        words = re.split(r"[-_.]", part.lower())
        if (found := next((each for each in words if each in SPLITS), None)) is not None:
            return found
    return path.parts[0] if len(path.parts) > 1 and path.parts[0] != "data" else ""


def _subset_of(path: Path) -> str:
    """The folders above a file that say neither its split nor a partition (`lang=en`): a configuration of the hub's."""
    above = [part for part in path.parts[:-1] if part != "data" and "=" not in part]
    return "/".join(part for part in above if not set(re.split(r"[-_.]", part.lower())) & set(SPLITS))


def _found(path: str, base_dir: Path) -> list[Path]:
    """The files that a path, a pattern or an address names."""
    if duck.REMOTE.match(path):
        from ragscore.datasets.remote import fetched

        return fetched(path)
    full = _full(path, base_dir)
    if full.exists() or not glob.has_magic(path):
        return [_existing(path, base_dir)]
    found = sorted(Path(_short(Path(each))) for each in glob.glob(str(full), recursive=True))
    found = [each for each in found if each.is_file()]
    if not found:
        raise DatasetError("matches no file", where=_shown(base_dir, path), mend="check `dataset.path` in the suite")
    return found


def _existing(path: str, base_dir: Path) -> Path:
    full = _full(path, base_dir)
    if not full.exists():
        raise DatasetError("no such file", where=str(_short(full)), mend="check `dataset.path` in the suite")
    return _short(full)


def _full(path: str, base_dir: Path) -> Path:
    return base_dir / Path(path).expanduser()


def _shown(base_dir: Path, path: str) -> str:
    return without_secrets(path) if duck.REMOTE.match(path) else str(_short(_full(path, base_dir)))


def _named(path: Path) -> str:
    """A file as messages name it: what was fetched by its address."""
    from ragscore.datasets.remote import address_of

    return address_of(path) or str(path)


def _short(path: Path) -> Path:
    """As short as it can be, for messages."""
    try:
        return path.relative_to(Path.cwd())
    except ValueError:
        return path


def _kind_of(path: Path) -> str | None:
    name = path.name.lower().removesuffix(".gz")
    return next((kind for suffix, kind in KINDS.items() if name.endswith(suffix)), None)
