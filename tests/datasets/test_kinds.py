"""Every kind of file gives the same items from the same rows, and texts stay texts."""

from __future__ import annotations

import csv
import gzip
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ragscore.datasets import load_dataset
from ragscore.suite import DatasetPart
from tests.datasets.conftest import Load, Refused, write_jsonl

FILES = Path(__file__).parent / "files"
#: What other readers take for dates, numbers, nothing.
TEXTS = [
    "2024-01-01",
    "2024-1-1",
    "007",
    "1e5",
    "null",
    "NULL",
    "NaN",
    "nan",
    "None",
    "true",
    "1_000",
    " x ",
    "Ω\t,;|",
    "'",
]
ROWS: list[dict[str, Any]] = [
    {"id": f"{number:03}", "input": f"q{number}?", "reference": text, "output": text, "contexts": ["a", text]}
    for number, text in enumerate(TEXTS)
]


def as_jsonl(folder: Path, rows: list[dict[str, Any]]) -> str:
    write_jsonl(folder / "d.jsonl", rows)
    return "d.jsonl"


def as_json(folder: Path, rows: list[dict[str, Any]]) -> str:
    (folder / "d.json").write_text(json.dumps(rows, indent=2, ensure_ascii=False), encoding="utf-8")
    return "d.json"


def _as_table(path: Path, rows: list[dict[str, Any]], delimiter: str) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(rows[0])
        writer.writerows(
            [json.dumps(cell) if isinstance(cell, list) else cell for cell in row.values()] for row in rows
        )


def as_csv(folder: Path, rows: list[dict[str, Any]]) -> str:
    _as_table(folder / "d.csv", rows, ",")
    return "d.csv"


def as_semicolons(folder: Path, rows: list[dict[str, Any]]) -> str:
    _as_table(folder / "semicolons.csv", rows, ";")
    return "semicolons.csv"


def as_tsv(folder: Path, rows: list[dict[str, Any]]) -> str:
    _as_table(folder / "d.tsv", rows, "\t")
    return "d.tsv"


def as_parquet(folder: Path, rows: list[dict[str, Any]]) -> str:
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE d (id VARCHAR, input VARCHAR, reference VARCHAR, output VARCHAR, contexts VARCHAR[])"
        )
        connection.executemany("INSERT INTO d VALUES (?, ?, ?, ?, ?)", [list(row.values()) for row in rows])
        connection.execute(f"COPY d TO '{folder}/d.parquet'")
    return "d.parquet"


def as_gzip(folder: Path, rows: list[dict[str, Any]]) -> str:
    (folder / "d.jsonl.gz").write_bytes(gzip.compress((folder / as_jsonl(folder, rows)).read_bytes()))
    return "d.jsonl.gz"


def as_csv_gzip(folder: Path, rows: list[dict[str, Any]]) -> str:
    (folder / "d.csv.gz").write_bytes(gzip.compress((folder / as_csv(folder, rows)).read_bytes()))
    return "d.csv.gz"


WRITERS = [as_jsonl, as_json, as_csv, as_semicolons, as_tsv, as_parquet, as_gzip, as_csv_gzip]


@pytest.mark.parametrize("write", WRITERS, ids=lambda write: write.__name__)
def test_texts_that_look_like_something_else_arrive_exactly_as_written(
    load: Load, folder: Path, write: Callable[[Path, list[dict[str, Any]]], str]
) -> None:
    items = load(write(folder, ROWS)).items
    assert [item.reference for item in items] == [item.output for item in items] == TEXTS
    assert [item.id for item in items] == [row["id"] for row in ROWS]
    assert [[each.text for each in item.contexts or ()] for item in items] == [["a", text] for text in TEXTS]


def test_every_kind_gives_the_same_dataset_hash(load: Load, folder: Path) -> None:
    assert len({load(write(folder, ROWS)).hash for write in WRITERS}) == 1


@pytest.mark.parametrize("write", [as_csv, as_tsv, as_parquet, as_json], ids=lambda write: write.__name__)
def test_a_query_over_a_file_keeps_texts_too(load: Load, folder: Path, write: Callable[..., str]) -> None:
    path = write(folder, ROWS)
    items = load(sql=f"SELECT * FROM '{path}' ORDER BY id").items
    assert [item.reference for item in items] == TEXTS
    assert load(path, sql="SELECT * FROM data WHERE reference = '007'").items[0].reference == "007"


def test_a_query_over_jsonl_gives_what_the_file_gives_whatever_the_types(load: Load, folder: Path) -> None:
    rows = [
        {"id": 1, "input": "q1", "reference": "Leaves.", "contexts": ["a", {"id": 7, "text": "b"}]},
        {"id": 2, "input": "q2", "reference": ["x", "y"], "contexts": ["c"], "relevance": {"d1": 2}},
        {"id": 2**63, "input": [{"role": "user", "content": "q3"}], "relevance": {"d2": 1, "d3": 0}},
    ]
    write_jsonl(folder / "d.jsonl", rows)
    queried = load("d.jsonl", sql="SELECT * FROM data -- all", references="alternatives")
    assert [item.id for item in queried.items] == ["1", "2", str(2**63)]
    assert [item.input for item in queried.items] == ["q1", "q2", "q3"]
    assert queried.items[1].metadata["relevance"] == {"d1": 2}
    assert queried.hash == load("d.jsonl", references="alternatives").hash


@pytest.mark.parametrize("cell", ["['a' 'b']", "['a'\n 'b']", "[\"it's a\" 'b']"])
def test_an_array_of_numpy_in_a_cell_is_not_made_one_context(refused: Refused, folder: Path, cell: str) -> None:
    with (folder / "d.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["input", "contexts"], ["q", cell]])
    assert "contexts: is not a list, though it begins like one" in refused("d.csv")
    assert "an array of numpy has no commas" in refused("d.csv")


def test_a_list_as_python_writes_it_may_hold_quotes_of_either_kind(load: Load, folder: Path) -> None:
    texts = ["it's", "say \"a\" 'b'", "'' \"\"", ""]
    with (folder / "d.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["input", "contexts"], ["q", str(texts)]])
    assert [each.text for each in load("d.csv").items[0].contexts or ()] == texts


def test_a_spreadsheet_is_told_how_to_become_a_table(refused: Refused, folder: Path) -> None:
    (folder / "d.XLSX").write_bytes(b"PK\x03\x04")
    assert refused("d.XLSX") == "d.XLSX: is a spreadsheet — save the sheet as CSV (Excel: CSV UTF-8)"


def test_configurations_of_the_hub_are_not_mixed(load: Load, refused: Refused, folder: Path) -> None:
    for number, name in enumerate(
        ("cuad/test-0", "cuad/test-1", "hotpotqa/test-0", "lang=de/data/x", "lang=en/data/x")
    ):
        path = folder / "hub" / f"{name}.parquet"
        if number > 2:
            path = folder / "parts" / f"{name}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        duckdb.sql(f"COPY (SELECT 'q{number}' AS input) TO '{path}'")
    said = "hub: holds 2 datasets — name the folder of one: cuad, hotpotqa; or all files by a pattern (**)"
    assert refused("hub", split="test") == said
    assert len(load("hub/cuad", split="test").items) == 2
    assert len(load("hub/**/*.parquet").items) == 3
    assert len(load("parts/**/*.parquet").items) == 2


def test_rows_that_end_in_two_ways_are_named(refused: Refused, folder: Path) -> None:
    (folder / "d.csv").write_bytes(b'input,reference\nq,"a\r\nb"\nq2,c\r\nq3,d\n')
    assert refused("d.csv") == (
        "d.csv:4: ends with CR LF, the rows before with LF — save the file with one kind of line end"
    )


@pytest.mark.parametrize("first", ["sep=;\r\n", "\ufeffSEP=;\r\n", '"sep=;"\r\n'])
def test_the_line_that_tells_excel_the_delimiter_is_no_header(
    load: Load, refused: Refused, folder: Path, first: str
) -> None:
    (folder / "d.csv").write_bytes(f'{first}input;"reference, trusted"\r\nq;a\r\n'.encode())
    (item,) = load("d.csv", columns={"reference": "reference, trusted"}).items
    assert (item.input, item.reference) == ("q", "a")
    (folder / "d.csv").write_bytes(f"{first}input;reference\r\nq;a\r\nq2;b;c\r\n".encode())
    assert refused("d.csv").startswith("d.csv:4: has more cells than the header")


@pytest.mark.parametrize("write", [as_jsonl, as_json, as_csv], ids=lambda write: write.__name__)
def test_a_compressed_file_that_is_cut_off_or_damaged_is_said_to_be(
    refused: Refused, load: Load, folder: Path, write: Callable[..., str]
) -> None:
    whole = gzip.compress((folder / write(folder, ROWS)).read_bytes())
    name = f"{write(folder, ROWS)}.gz"
    (folder / name).write_bytes(whole[:-20])
    assert refused(name) == f"{name}: is cut off — compress the file again"
    (folder / name).write_bytes(whole[:40] + b"\xff" * 20 + whole[60:])
    assert refused(name).startswith((f"{name}: is damaged — compress", f"{name}: cannot be read: CRC check failed"))
    (folder / name.upper()).write_bytes(whole)
    assert len(load(name.upper()).items) == len(ROWS)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1), min_size=1, max_size=5))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_comes_out_of_csv_and_parquet_as_it_went_in(tmp_path: Path, texts: list[str]) -> None:
    rows = [{"id": f"i{n}", "input": "q", "reference": t, "output": "o", "contexts": [t]} for n, t in enumerate(texts)]
    for write in (as_csv, as_parquet):
        items = load_dataset(DatasetPart(path=write(tmp_path, rows)), base_dir=tmp_path).items
        assert [item.reference for item in items] == texts


def test_an_empty_cell_is_missing_and_a_quoted_line_break_is_kept(load: Load, folder: Path) -> None:
    (folder / "d.csv").write_text('input,reference,output\r\nq1,,""\r\n"two\nlines",r,o\r\n', encoding="utf-8-sig")
    first, second = load("d.csv").items
    assert (first.reference, first.output) == (None, None)
    assert (second.input, second.reference) == ("two\nlines", "r")


def test_lists_objects_and_truth_values_stand_as_text_in_a_table(load: Load, folder: Path) -> None:
    (folder / "d.csv").write_text(
        "question,retrieved_contexts,reference_context_ids,tags,answerable,metadata,level\n"
        'q1,"[\'a, b\', ""c\'s""]","d1, d2",easy;short,no,"{""k"": [1]}",3\n'
        'q2,"[""a""]","[""d,3""]",,TRUE,,\n',
        encoding="utf-8",
    )
    first, second = load("d.csv").items
    assert [each.text for each in first.contexts or ()] == ["a, b", "c's"]
    assert (first.reference_context_ids, first.answerable) == (("d1", "d2"), False)
    assert first.metadata == {"tags": ["easy", "short"], "k": [1], "level": "3"}
    assert (second.reference_context_ids, second.answerable, second.metadata) == (("d,3",), True, {})


def test_all_faulty_rows_of_a_table_are_named_with_their_numbers(refused: Refused, folder: Path) -> None:
    (folder / "d.csv").write_text(
        "id,input,answerable,contexts\na,,,\nb,q,maybe,\na,x,,\nb,y,,plain\na,z,,\n", encoding="utf-8"
    )
    assert refused("d.csv").splitlines() == [
        "d.csv: row 1: input: is missing or empty — every item needs a question in `input`; the row has `id`",
        "d.csv: row 2: answerable: is 'maybe', not true or false — write true or false",
        'd.csv: row 4: contexts: is text, not a list — write ["text", …] or [{"id": …, "text": …}, …]',
        "d.csv: row 5: id: 'a' stands in row 3 already — give every item its own id",
    ]


def test_rows_that_are_no_rows_of_the_table_are_named_by_line(refused: Refused, folder: Path) -> None:
    (folder / "d.csv").write_text('input,reference\na,b\nc\nd,e,f\ng,"h\n', encoding="utf-8")
    said = refused("d.csv").splitlines()
    assert [line.partition(" — ")[0] for line in said] == [
        "d.csv:3: has fewer cells than the header",
        "d.csv:4: has more cells than the header",
        "d.csv:5: has a quote that is not closed",
    ]


def test_a_table_in_another_encoding_or_with_a_column_twice_is_refused(refused: Refused, folder: Path) -> None:
    (folder / "latin.csv").write_bytes("input,reference\nä,b\n".encode("latin-1"))
    assert refused("latin.csv") == "latin.csv:2: is not UTF-8 text — save the file as UTF-8 (Excel: CSV UTF-8)"
    (folder / "twice.csv").write_text("input,Input\na,b\n", encoding="utf-8")
    assert refused("twice.csv") == "twice.csv:1: the column `Input` stands twice — give every column its own name"
    (folder / "empty.csv").write_text("", encoding="utf-8")
    assert refused("empty.csv") == "empty.csv: is empty — the first line names the columns"
    (folder / "header.csv").write_text("input,reference\n", encoding="utf-8")
    assert refused("header.csv") == "header.csv: holds no items — write a header and one item a row"


def test_what_is_typed_in_parquet_is_not_taken_for_text(refused: Refused, load: Load, folder: Path) -> None:
    with duckdb.connect() as connection:
        connection.execute("COPY (SELECT 'q' AS input, DATE '2024-01-01' AS reference) TO 'd.parquet'")
        connection.execute(
            "COPY (SELECT 'q' AS input, 7 AS id, DATE '2024-01-01' AS day, 1.5::DECIMAL(4,2) AS price,"
            " 'NaN'::DOUBLE AS n, [{'id': 'd1', 'text': 't', 'score': 0.5}] AS contexts) TO 'e.parquet'"
        )
    assert refused("d.parquet").startswith("d.parquet: row 1: reference: is a date, not text")
    (item,) = load("e.parquet").items
    assert (item.id, item.metadata) == ("7", {"day": "2024-01-01", "price": "1.50"})
    assert item.contexts is not None
    assert (item.contexts[0].id, item.contexts[0].score) == ("d1", 0.5)


def test_json_says_what_is_wrong_with_it(refused: Refused, folder: Path) -> None:
    (folder / "d.json").write_text('[{"input": "a"},\n {"input": }]', encoding="utf-8")
    assert (
        refused("d.json") == "d.json:2: is not JSON: Expecting value at column 12 — check commas, quotes and brackets"
    )
    (folder / "d.json").write_text('[{"input": "a"}, {"input": 3}, 4]', encoding="utf-8")
    assert [line.partition(" — ")[0] for line in refused("d.json").splitlines()] == [
        "d.json: item 2: input: is a number, not text",
        "d.json: item 3: line: is not a JSON object",
    ]
    (folder / "d.json").write_text('{"config": {}}', encoding="utf-8")
    assert "holds no list of rows that is known here (it has `config`)" in refused("d.json")


def test_jsonl_that_is_called_json_is_read_as_such(load: Load, folder: Path) -> None:
    (folder / "d.json").write_text('{"input": "a"}\n{"input": "b"}\n', encoding="utf-8")
    assert [item.input for item in load("d.json").items] == ["a", "b"]


def test_several_files_come_in_the_order_of_their_names(load: Load, refused: Refused, folder: Path) -> None:
    write_jsonl(folder / "b.jsonl", [{"id": "2", "input": "two"}])
    write_jsonl(folder / "a.jsonl", [{"id": "1", "input": "one"}])
    assert [item.input for item in load("*.jsonl").items] == ["one", "two"]
    write_jsonl(folder / "c.jsonl", [{"id": "3", "input": ""}, {"id": "1", "input": "x"}])
    assert [line.partition(" — ")[0] for line in refused("*.jsonl").splitlines()] == [
        "c.jsonl:1: input: is missing or empty",
        "c.jsonl:2: id: '1' stands on line 1 of a.jsonl already",
    ]
    assert refused("x*.jsonl") == "x*.jsonl: matches no file — check `dataset.path` in the suite"
    (folder / "a.csv").write_text("input\nq\n", encoding="utf-8")
    assert "names files of several kinds (csv, jsonl)" in refused("a.*")


def test_a_file_of_an_unknown_kind_or_none_at_all_is_said(load: Load, refused: Refused, folder: Path) -> None:
    write_jsonl(folder / "labels.txt", [{"input": "a"}])
    assert "is of a kind that is not known by its name (labels.txt) — say which with `format:`" in refused("labels.txt")
    assert len(load("labels.txt", format="jsonl").items) == 1
    for name in ("absent.jsonl", "absent.csv", "absent.json", "absent.parquet"):
        assert refused(name) == f"{name}: no such file — check `dataset.path` in the suite"
    (folder / "sub").mkdir()
    (folder / "sub" / "q.csv").write_text("input\n", encoding="utf-8")
    assert refused("sub") == "sub: is a directory that holds no dataset — name one of its files: q.csv"


def test_hugging_face_datasets_on_disk(load: Load, refused: Refused, folder: Path) -> None:
    pytest.importorskip("nanoarrow")
    shutil.copytree(FILES / "hugging-face", folder / "hf")
    first, second = load("hf", split="test").items
    assert (first.input, first.reference, first.contexts) == ("q0?", "2024-01-01", ())
    assert (second.reference, [each.text for each in second.contexts or ()]) == ("007", ["a"])
    assert second.metadata == {"level": 1, "when": "2024-01-01 00:00:00", "docs": [{"id": "x", "text": "y"}]}
    assert len(load("hf/train").items) == 3
    assert refused("hf") == "hf: has several splits — name one with `split:`; there are: test, train"
    assert refused("hf", split="dev") == "hf: has no split 'dev' — there are: test, train"


def test_a_broken_arrow_file_is_refused(refused: Refused, folder: Path) -> None:
    pytest.importorskip("nanoarrow")
    (folder / "d.arrow").write_bytes(b"no arrow at all, but long enough to be read")
    assert refused("d.arrow").startswith("d.arrow: cannot be read as Arrow: ")


def test_a_folder_of_parquet_files_as_the_hub_has_them(load: Load, refused: Refused, folder: Path) -> None:
    (folder / "repo" / "data").mkdir(parents=True)
    path = as_parquet(folder, ROWS)
    for name in ("train-00000-of-00002", "train-00001-of-00002", "test-00000-of-00001"):
        shutil.copy(path, folder / "repo" / "data" / f"{name}.parquet")
    assert len(load("repo", split="test").items) == len(ROWS)
    assert "id: '000' stands in row 1 of repo/data/train-00000-of-00002.parquet already" in refused(
        "repo", split="train"
    )


def test_a_python_callable_yields_rows_and_is_called_once(load: Load, folder: Path) -> None:
    (folder / "labels_once.py").write_text(
        "import datetime\ncalls = []\ndef rows():\n    calls.append(1)\n    for n in range(3):\n"
        "        yield {'input': f'q{n}', 'reference': '007', 'day': datetime.date(2024, 1, 1)}\n",
        encoding="utf-8",
    )
    dataset = load(python="labels_once:rows")
    assert [(item.input, item.reference) for item in dataset.items] == [(f"q{n}", "007") for n in range(3)]
    assert dataset.items[0].metadata == {"day": "2024-01-01"}
    assert dataset.name == "python:labels_once:rows"
    assert sys.modules["labels_once"].calls == [1]


def test_a_callable_that_fails_or_gives_no_rows_is_named(refused: Refused, folder: Path) -> None:
    (folder / "labels_bad.py").write_text(
        "def broken():\n    yield {'input': 'a'}\n    raise KeyError('index')\n"
        "def none(): return None\ndef odd(): return [{'input': 'a'}, 'b']\ndef faulty(): return [{'input': 3}]\n",
        encoding="utf-8",
    )
    assert refused(python="labels_bad:broken") == (
        "dataset.python: labels_bad:broken fails: KeyError: 'index' — mend the function"
    )
    assert "labels_bad:none gave a NoneType, not rows" in refused(python="labels_bad:none")
    assert "labels_bad:odd: row 2: is a str, not a mapping" in refused(python="labels_bad:odd")
    assert refused(python="labels_bad:faulty").startswith("labels_bad:faulty: row 1: input: is a number, not text")
    assert "did you mean 'broken'?" in refused(python="labels_bad:brokn")


def test_a_duckdb_file_is_read_by_its_only_table_or_a_query(load: Load, refused: Refused, folder: Path) -> None:
    with duckdb.connect("labels.duckdb") as connection:
        connection.execute(
            "CREATE TABLE q AS SELECT 'i' || n AS id, 'q' || n AS input, '00' || n AS reference FROM range(3) t(n)"
        )
    assert [item.reference for item in load("labels.duckdb").items] == ["000", "001", "002"]
    dataset = load("labels.duckdb", sql="SELECT * FROM q ORDER BY id DESC;")
    assert [item.id for item in dataset.items] == ["i2", "i1", "i0"]
    with duckdb.connect("labels.duckdb") as connection:
        connection.execute("CREATE VIEW v AS SELECT 1")
    assert "has 2 tables — say which rows with `sql: SELECT … FROM …`; tables: q, v" in refused("labels.duckdb")
    assert "cannot be carried out" in refused("labels.duckdb", sql="SELECT * FROM absent")


def test_a_query_that_is_wrong_or_does_more_than_select_is_refused(refused: Refused, folder: Path) -> None:
    (folder / "d.csv").write_text("input\nq\n", encoding="utf-8")
    assert refused(sql="SELECT nope FROM 'd.csv'").startswith("dataset.sql: cannot be carried out: ")
    for sql in ("DROP TABLE x", "SELECT 1; SELECT 2", "COPY (SELECT 1) TO 'x.csv'"):
        assert refused(sql=sql) == "dataset.sql: is not one SELECT — write one query: SELECT … FROM …"
    assert refused(sql="SELECT * FROM 'absent.csv'") == "absent.csv: no such file — check `dataset.path` in the suite"
