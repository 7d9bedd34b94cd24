"""A SQL query over files or a DuckDB database: carried out once, its rows spooled as Parquet.

Files that the query names (`FROM 'questions.csv'`) are read as `path:` reads them: texts stay texts. DuckDB's own
functions (`read_csv(…)`) do what they do.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ragscore.datasets import duck
from ragscore.datasets.source import Source
from ragscore.datasets.spool import Spool
from ragscore.datasets.tables import Tables
from ragscore.errors import DatasetError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

#: DuckDB's types of whole numbers that Parquet does not have.
HUGE = re.compile(r"\bU?HUGEINT\b")
DATABASES = (".duckdb", ".db", ".ddb")


def query_source(
    sql: str,
    *,
    base_dir: Path,
    where: str,
    open_files: Callable[[str], Source],
    database: Path | None = None,
    data: Source | None = None,
) -> Tables:
    """The rows of a query, in its order.

    Args:
        sql: One SELECT.
        base_dir: What relative paths in it are relative to.
        where: The place of the query, for messages.
        open_files: Gives the source for a path that stands in the query as a table.
        database: A DuckDB file whose tables the query may name.
        data: What the query may call `data`: the files of `path:`.

    Raises:
        DatasetError: the query is wrong, or a file cannot be read.
    """
    spool = Spool()
    spooled = spool.file("rows.parquet")
    kept: list[Source] = []
    with duck.connected(base_dir=base_dir) as connection:
        # With several threads a query that joins or groups gives its rows in another order each time.
        connection.execute("SET threads = 1")
        if database is not None:
            _attach(connection, database)
        with duck.explained(where, mend="check the SQL", what="cannot be carried out"):
            statements = connection.extract_statements(sql)
            if len(statements) != 1 or statements[0].type.name != "SELECT":
                raise DatasetError("is not one SELECT", where=where, mend="write one query: SELECT … FROM …")
            named = connection.get_table_names(statements[0].query)
        if data is not None:
            kept.append(data)
            connection.execute(f"CREATE TEMP VIEW data AS {data.relation(connection)}")
        for table in named:
            if is_file(table):
                source = open_files(table)
                kept.append(source)
                connection.execute(f"CREATE TEMP VIEW {duck.name(table)} AS {source.relation(connection)}")
        query = statements[0].query.strip().rstrip(";")
        with duck.explained(where, mend="check the SQL", what="cannot be carried out"):
            _spool(connection, query, spooled)
    return Tables([spooled], where, "parquet", shown=[where], spool=spool)


def _spool(connection: DuckDBPyConnection, query: str, spooled: Path) -> None:
    """Write the rows of a query as Parquet; whole numbers of any size stay whole.

    Parquet has no HUGEINT, as which JSON's whole numbers are read: DuckDB would write them as floating-point numbers.
    """
    import duckdb

    described = connection.execute(f"DESCRIBE SELECT * FROM ({query}\n)").fetchall()
    huge = {duck.name(str(row[0])): str(row[1]) for row in described if HUGE.search(str(row[1]))}
    small = [f"CAST({name} AS {HUGE.sub('BIGINT', kind)}) AS {name}" for name, kind in huge.items()]
    try:
        _copy(connection, query, small, spooled)
    except duckdb.ConversionException:  # one has more than 64 bits, or the query itself fails so
        _copy(connection, query, [f"to_json({name}) AS {name}" for name in huge], spooled)


def _copy(connection: DuckDBPyConnection, query: str, instead: list[str], spooled: Path) -> None:
    replaced = f" REPLACE ({', '.join(instead)})" if instead else ""
    connection.execute(f"COPY (SELECT *{replaced} FROM ({query}\n)) TO {duck.text(str(spooled))} (FORMAT parquet)")


def is_file(table: str) -> bool:
    """Whether a table of a query is a path of a file that we read ourselves."""
    suffixes = {each.lower() for each in Path(table).suffixes}
    return bool(suffixes & {".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet", ".arrow"})


def tables_of(database: Path) -> list[str]:
    """The names of the tables and views of a DuckDB file.

    Raises:
        DatasetError: it cannot be read.
    """
    with duck.connected() as connection:
        _attach(connection, database)
        query = (
            "SELECT table_name FROM information_schema.tables WHERE table_catalog = 'source'"
            " AND table_schema NOT IN ('information_schema', 'pg_catalog') ORDER BY table_name"
        )
        return [str(row[0]) for row in connection.execute(query).fetchall()]


def _attach(connection: object, database: Path) -> None:
    from duckdb import DuckDBPyConnection

    assert isinstance(connection, DuckDBPyConnection)
    if not database.is_file():
        raise DatasetError("no such file", where=str(database), mend="check `dataset.path` in the suite")
    with duck.explained(str(database), mend="is it a DuckDB file, and free?"):
        connection.execute(f"ATTACH {duck.text(str(database))} AS source (READ_ONLY)")
        connection.execute("USE source")
