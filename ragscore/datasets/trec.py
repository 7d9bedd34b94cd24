"""Collections of the retrieval world, BEIR folders and TREC files: queries, graded judgements (qrels), runs, corpus.

- queries: BEIR JSONL (`_id`, `text`, `metadata`) or lines `id TAB text`. Without them the id stands for the question.
- qrels: BEIR TSV with a header (`query-id corpus-id score`), or TREC lines `query 0 document grade`. Documents of a
  grade above 0 become `reference_context_ids`, best first; all grades stay in `metadata["relevance"]`.
- run: TREC lines `query Q0 document rank score tag`. Its documents become the contexts, by score, equal ones by
  document id, both descending, as trec_eval has it (the rank column is not looked at).
- corpus: BEIR JSONL (`_id`, `title`, `text`); gives the contexts of a run their texts. Without it a document's id
  stands for its text: enough for metrics that compare ids, not for judges.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ragscore.datasets import duck
from ragscore.datasets.faults import DatasetErrors
from ragscore.datasets.jsonl import LONGEST_LINE, JsonLines
from ragscore.datasets.opening import opened
from ragscore.datasets.spool import Spool
from ragscore.errors import DatasetError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

RUN_SUFFIXES = (".run", ".trec")
QRELS_SUFFIXES = (".qrels", ".qrel")
#: First lines that name columns instead of being data.
HEADERS = "('query-id', 'query_id', 'qid', 'id', '_id', 'queryid', 'topic')"


@dataclass(frozen=True)
class Collection:
    """The files of a collection; at least one of `queries`, `qrels` and `run` is there."""

    queries: Path | None = None
    qrels: Path | None = None
    run: Path | None = None
    corpus: Path | None = None


def collection_in(folder: Path, *, split: str | None = None) -> Collection | None:
    """The collection in a folder, or None when it holds none.

    Args:
        folder: With `queries.jsonl` or `queries.tsv`, `qrels/` or a qrels file, perhaps `corpus.jsonl` and a run.
        split: Which file of `qrels/`; `test` when left out, or the only one.

    Raises:
        DatasetError: there are several splits or runs, and none is named.
    """
    queries = _first(folder, "queries.jsonl", "queries.jsonl.gz", "queries.tsv", "topics.tsv")
    corpus = _first(folder, "corpus.jsonl", "corpus.jsonl.gz")
    splits = {
        each.name.split(".")[0]: each
        for each in sorted((folder / "qrels").glob("*"))
        if each.suffix in (".tsv", ".txt", *QRELS_SUFFIXES)
    }
    loose = [
        each
        for each in sorted(folder.iterdir())
        if each.suffix in QRELS_SUFFIXES or re.match(r"qrels.*\.(txt|tsv)$", each.name)
    ]
    runs = [
        each for each in sorted(folder.iterdir()) if each.suffix in RUN_SUFFIXES or re.match(r"run.*\.txt$", each.name)
    ]
    if queries is None and not splits and not loose and not runs:
        return None
    if len(runs) > 1:
        said = ", ".join(each.name for each in runs)
        raise DatasetError("holds several runs", where=str(folder), mend=f"name one with `run:`; there are: {said}")
    if not splits and len(loose) > 1:
        said = ", ".join(each.name for each in loose)
        raise DatasetError("holds several qrels", where=str(folder), mend=f"name one with `qrels:`; there are: {said}")
    chosen = _chosen(folder, splits, split) if splits else (loose[0] if loose else None)
    return Collection(queries, chosen, runs[0] if runs else None, corpus)


def collection_source(collection: Collection, name: str) -> JsonLines:
    """The rows of a collection: one for each query that is judged or has results, in the order of the queries.

    Raises:
        DatasetError: a file cannot be read, lines of it are faulty, or qrels name queries that are not there.
    """
    spool = Spool()
    spooled = spool.file("rows.jsonl")
    with duck.connected() as connection:
        _load(connection, collection, name)
        with duck.explained(name):
            connection.execute(f"COPY ({_ROWS}) TO {duck.text(str(spooled))} (FORMAT json)")
    return JsonLines([spooled], name, shown=[name], unit="query", spool=spool)


_ROWS = """
    WITH graded AS (
        SELECT query, list(document ORDER BY grade DESC, place) FILTER (grade > 0) AS good,
               map(list(document ORDER BY place), list(grade ORDER BY place))::JSON AS grades
        FROM (SELECT query, document, max(grade) AS grade, min(place) AS place FROM qrels GROUP BY ALL) GROUP BY query
    ), retrieved AS (
        SELECT query, list({'id': document, 'text': coalesce(body, document), 'score': score}
                           ORDER BY score DESC, document DESC) AS contexts
        FROM run LEFT JOIN corpus USING (document) GROUP BY query
    )
    SELECT queries.query AS id, body AS input, coalesce(good, []) AS reference_context_ids, grades AS relevance,
           contexts, metadata
    FROM queries LEFT JOIN graded USING (query) LEFT JOIN retrieved USING (query)
    WHERE NOT judged OR grades IS NOT NULL
    ORDER BY place"""


def _load(connection: DuckDBPyConnection, collection: Collection, name: str) -> None:
    """Make the tables queries, qrels, run and corpus."""
    connection.execute("CREATE TABLE qrels (query VARCHAR, document VARCHAR, grade INTEGER, place BIGINT)")
    connection.execute("CREATE TABLE run (query VARCHAR, document VARCHAR, score DOUBLE, place BIGINT)")
    connection.execute("CREATE TABLE corpus (document VARCHAR, body VARCHAR)")
    if collection.qrels is not None:
        _check_lines(connection, collection.qrels, (3, 4), "query 0 document grade", number=-1, whole=True)
        connection.execute("INSERT INTO qrels SELECT cells[1], cells[-2], cells[-1]::INTEGER, line FROM cells")
    if collection.run is not None:
        _check_lines(connection, collection.run, (6,), "query Q0 document rank score tag", number=5, whole=False)
        connection.execute("INSERT INTO run SELECT cells[1], cells[3], cells[5]::DOUBLE, line FROM cells")
        _check_repeated(connection, collection.run)
    if collection.corpus is not None and collection.run is not None:
        with duck.explained(str(collection.corpus), mend="write one object a line: _id, title, text"):
            connection.execute(
                "INSERT INTO corpus SELECT _id, concat_ws(chr(10), nullif(title, ''), text) FROM"
                f" {_jsonl(collection.corpus, _id='VARCHAR', title='VARCHAR', text='VARCHAR')}"
                " WHERE _id IN (SELECT document FROM run)"
            )
    if collection.queries is None:
        connection.execute(
            "CREATE TABLE queries AS SELECT query, query AS body, NULL::JSON AS metadata, min(place) AS place,"
            " false AS judged FROM (SELECT query, place - 1e12 AS place FROM qrels"  # those of the qrels first
            " UNION ALL SELECT query, place FROM run) GROUP BY query"
        )
        return
    with duck.explained(str(collection.queries), mend="write one object a line: _id, text"):
        if ".jsonl" in collection.queries.suffixes:
            texts = f"SELECT * FROM {_jsonl(collection.queries, _id='VARCHAR', text='VARCHAR', metadata='JSON')}"
        else:
            path = duck.text(str(collection.queries))
            texts = (
                f"SELECT _id, text, NULL::JSON AS metadata FROM read_csv({path}, auto_detect = false, header = false,"
                " delim = '\t', quote = '', escape = '', columns = {'_id': 'VARCHAR', 'text': 'VARCHAR'})"
            )
        judged = "true" if collection.qrels is not None else "false"
        connection.execute(
            "CREATE TABLE queries AS SELECT _id AS query, text AS body,"
            " CASE WHEN json_type(metadata) = 'OBJECT' AND metadata::VARCHAR <> '{}' THEN metadata END AS metadata,"
            f" place, {judged} AS judged FROM (SELECT row_number() OVER () AS place, * FROM ({texts}))"
            f" WHERE place > 1 OR lower(_id) NOT IN {HEADERS}"
        )
    stray = connection.execute(
        "SELECT DISTINCT query FROM qrels WHERE query NOT IN (SELECT query FROM queries WHERE query IS NOT NULL)"
        " ORDER BY query LIMIT 4"
    ).fetchall()
    if stray:
        said = ", ".join(str(row[0]) for row in stray[:3]) + (", …" if len(stray) > 3 else "")
        what = f"judges queries that {collection.queries.name} does not hold: {said}"
        raise DatasetError(what, where=str(collection.qrels), mend="do these files belong together?")


def _check_lines(
    connection: DuckDBPyConnection, path: Path, cells: tuple[int, ...], shape: str, *, number: int, whole: bool
) -> None:
    """Make the table `cells` of a file: its lines, split at white space; without a header.

    Below a header with tabs, as BEIR has it, they are split at tabs alone: a document's id may hold spaces.
    """
    spool, plain = Spool(), path
    with opened(path, str(path)) as file:
        first = file.readline()
        if path.suffix.lower() == ".gz":  # DuckDB does not unpack what it reads as text
            plain = spool.file("lines")
            with plain.open("wb") as unpacked:
                unpacked.write(first)
                shutil.copyfileobj(file, unpacked)
    names = first.decode("utf-8-sig", "replace").strip().split("\t")
    has_tabs = len(names) > 1 and f"'{names[0].lower()}'" in HEADERS
    cut = "' *\\t *'" if has_tabs else "'[ \\t]+'"
    with duck.explained(str(path), mend="is it a text file?"):
        # Lines, numbered by DuckDB as it reads them: blank ones come as NULL.
        connection.execute(
            "CREATE OR REPLACE TABLE cells AS SELECT line, regexp_split_to_array(trim(told, chr(9) || ' ' || chr(13)),"
            f" {cut}) AS cells FROM (SELECT row_number() OVER () AS line, told FROM (SELECT unnest(string_split("
            f"content, chr(10))) AS told FROM read_text({duck.text(str(plain))})))"
            " WHERE trim(told, chr(9) || ' ' || chr(13)) <> ''"
        )
    connection.execute(f"DELETE FROM cells WHERE line = 1 AND lower(ltrim(cells[1], chr(65279))) IN {HEADERS}")
    kind = "INTEGER" if whole else "DOUBLE"
    # A cast rounds: 0.5 would be grade 1 or 0.
    odd = f" OR try_cast(cells[{number}] AS DOUBLE) <> try_cast(cells[{number}] AS INTEGER)" if whole else ""
    wrong = connection.execute(
        f"SELECT line, array_to_string(cells, ' ') FROM cells WHERE len(cells) NOT IN ({', '.join(map(str, cells))})"
        f" OR try_cast(cells[{number}] AS {kind}) IS NULL OR NOT isfinite(try_cast(cells[{number}] AS DOUBLE)){odd}"
        " ORDER BY line"
    ).fetchall()
    if wrong:
        raise DatasetErrors([f"{path}:{line}: is not `{shape}`: {said[:60]} — mend the line" for line, said in wrong])


def _check_repeated(connection: DuckDBPyConnection, path: Path) -> None:
    repeated = connection.execute(
        "SELECT max(line), cells[1], cells[3] FROM cells GROUP BY ALL HAVING count(*) > 1 ORDER BY 1"
    ).fetchall()
    if repeated:
        raise DatasetErrors(
            [
                f"{path}:{line}: {document} stands twice for query {query} — remove one"
                for line, query, document in repeated
            ]
        )


def _jsonl(path: Path, **columns: str) -> str:
    types = ", ".join(f"{duck.text(key)}: {duck.text(kind)}" for key, kind in columns.items())
    return (
        f"read_json({duck.text(str(path))}, format = 'newline_delimited', columns = {{{types}}},"
        f" maximum_object_size = {LONGEST_LINE})"
    )


def _first(folder: Path, *names: str) -> Path | None:
    return next((folder / name for name in names if (folder / name).is_file()), None)


def _chosen(folder: Path, splits: dict[str, Path], split: str | None) -> Path:
    if split is None and len(splits) == 1:
        return next(iter(splits.values()))
    name = split or "test"
    if name not in splits:
        what = f"has no split {split!r}" if split else "has several splits"
        raise DatasetError(what, where=str(folder), mend=f"name one with `split:`; there are: {', '.join(splits)}")
    return splits[name]
