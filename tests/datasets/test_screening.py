"""DuckDB's screening and Python's reading say the same of every file: which rows are wrong, which items, which hash."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ragscore.datasets import Streamed, jsonl, tables
from ragscore.datasets.checking import checked
from ragscore.datasets.columns import settle
from ragscore.datasets.dataset import fingerprint, hash_of
from ragscore.datasets.jsonl import JsonLines
from ragscore.datasets.screening import screen
from ragscore.datasets.source import Wanted
from ragscore.datasets.tables import Tables
from ragscore.errors import DatasetError
from tests.datasets.conftest import Load, write_jsonl

GOOD: list[dict[str, Any]] = [
    {"id": f"i{n}", "input": f"What is number {n}?", "reference": 'It is a number. é 😀 \\ " / \x7f\u2028'}
    for n in range(40)
]
#: Rows that are right, in ways that DuckDB may see otherwise.
UNUSUAL: list[dict[str, Any]] = [
    {"input": "no id"},
    {"id": 7, "input": "whole number"},
    {"id": -12345678901234567890123, "input": "large"},
    {"id": " padded ", "input": " \t padded"},
    {"id": "", "input": "blank id"},
    {"id": "c\x01", "input": "control \x1f \x00", "reference": "\x0b"},
    {"id": "n1", "input": "NaN", "reference": "NaN", "output": "Infinity", "metadata": {"x": "NaN"}},
    {"id": "l1", "input": "[list]", "contexts": ["a", "b, c", '["x"]'], "tags": ["a", "b,c"], "claims": ["one"]},
    {
        "id": "l2",
        "input": "objects",
        "contexts": ["a", {"id": 3, "text": "t", "score": 0.5}],
        "reference_context_ids": [1, "a,b", "null"],
    },
    {
        "id": "l3",
        "input": "empty",
        "contexts": [],
        "reference_context_ids": [],
        "tags": [],
        "reference": "",
        "output": "",
    },
    {"id": "a1", "input": "unanswerable", "answerable": False, "metadata": None, "other": {"deep": [None, 1.5e300]}},
    {"id": "m1", "input": [{"role": "user", "content": "hi"}], "output": [{"role": "assistant", "content": "yes"}]},
    {"id": "r1", "input": "graded", "relevance": {"d": 2}, "context_ids": ["d"]},
    {"id": "k1", "input": "kept", "metadata": {"messages": ["x"], "lang": "en"}},
]
WRONG: list[dict[str, Any]] = [
    {"id": "x", "input": ""},
    {"id": "x", "input": "\u3000\u2003"},
    {"id": "x", "input": None},
    {"id": "x"},
    {"id": "x", "input": 3},
    {"id": 1.5, "input": "a"},
    {"id": True, "input": "a"},
    {"id": ["x"], "input": "a"},
    {"id": "x", "input": "a", "reference": 2024},
    {"id": "x", "input": "a", "reference": ["a", "b"]},
    {"id": "x", "input": "a", "output": {"a": 1}},
    {"id": "x", "input": "a", "contexts": "a"},
    {"id": "x", "input": "a", "contexts": ["a", None]},
    {"id": "x", "input": "a", "contexts": [["a"]]},
    {"id": "x", "input": "a", "contexts": [3]},
    {"id": "x", "input": "a", "reference_context_ids": "d1"},
    {"id": "x", "input": "a", "reference_context_ids": ["d1", ["d2"]]},
    {"id": "x", "input": "a", "reference_context_ids": [None]},
    {"id": "x", "input": "a", "claims": []},
    {"id": "x", "input": "a", "claims": ["one", " "]},
    {"id": "x", "input": "a", "claims": ["one", ""]},
    {"id": "x", "input": "a", "claims": ["\u3000"]},
    {"id": "x", "input": "a", "tags": "t"},
    {"id": "x", "input": "a", "tags": ["t", 3]},
    {"id": "x", "input": "a", "answerable": "no"},
    {"id": "x", "input": "a", "answerable": 0},
    {"id": "x", "input": "a", "metadata": [1]},
    {"id": "x", "input": "a", "metadata": "m"},
    {"id": "x", "input": "a", "relevance": {"d": 1.5}},
    {"id": "x", "input": "a", "context_ids": ["d"], "contexts": []},
    {"id": "i3", "input": "an id that stands above"},
]
LINES = [
    '{"id": "x", "input": "a", "metadata": {"x": NaN}}',
    '{"id": "x", "input": "a", "other": -Infinity}',
    '{"id": "x", "input": "a"},',
    '{"id": "x", "input": "a"} {"id": "y", "input": "b"}',
    '{"id": "x", "input": "a"',
    "null",
    "[]",
    '"x"',
    '{"id": "x", "input": "a", "input": "b"}',
    '{"id": "x", "input": "\\ud800"}',
]


@pytest.fixture
def screened(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Small files are screened too, and streamed."""
    monkeypatch.setattr(jsonl, "SMALL", 0)
    monkeypatch.setattr(tables, "SMALL", 0)
    return monkeypatch


def outcome(path: Path, wanted: Wanted = None) -> tuple[Any, Any]:
    try:
        dataset = checked(JsonLines([path], "d.jsonl", shown=["d.jsonl"]), name="d", wanted=wanted)
    except DatasetError as error:
        return "refused", str(error)
    return list(dataset.items), dataset.hash


def both(path: Path, monkeypatch: pytest.MonkeyPatch, wanted: Wanted = None) -> tuple[Any, Any]:
    """What Python alone says of a file, after seeing that DuckDB and Python say the same."""
    with monkeypatch.context() as patch:
        patch.setattr(jsonl, "SMALL", 1 << 40)
        alone = outcome(path, wanted)
    with monkeypatch.context() as patch:
        patch.setattr(jsonl, "SMALL", 0)
        assert outcome(path, wanted) == alone
    return alone


@pytest.mark.parametrize("row", UNUSUAL, ids=lambda row: str(row["input"])[:20])
def test_unusual_rows_are_right_for_both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, row: dict[str, Any]) -> None:
    write_jsonl(tmp_path / "d.jsonl", [*GOOD, row, {"id": "end", "input": "end"}])
    items, hashed = both(tmp_path / "d.jsonl", monkeypatch)
    assert len(items) == len(GOOD) + 2
    assert hashed == hash_of(map(fingerprint, items))


@pytest.mark.parametrize("row", WRONG, ids=lambda row: json.dumps(row)[:60])
def test_wrong_rows_are_wrong_for_both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, row: dict[str, Any]) -> None:
    write_jsonl(tmp_path / "d.jsonl", [*GOOD, row, {"id": "end", "input": "end"}])
    kind, said = both(tmp_path / "d.jsonl", monkeypatch)
    assert kind == "refused"
    assert said.startswith("d.jsonl:41: ")


@pytest.mark.parametrize("line", LINES)
def test_lines_that_are_no_rows_are_wrong_for_both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    path = tmp_path / "d.jsonl"
    write_jsonl(path, GOOD)
    path.write_text(path.read_text(encoding="utf-8") + "\n   \n" + line + "\n", encoding="utf-8")
    kind, said = both(path, monkeypatch)
    assert kind == "refused"
    assert said.startswith("d.jsonl:43: ")


def test_everything_at_once_is_the_same_for_both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [*GOOD, *UNUSUAL]
    write_jsonl(tmp_path / "d.jsonl", rows)
    items, _ = both(tmp_path / "d.jsonl", monkeypatch)
    assert len(items) == len(rows)
    mask = bytearray(n % 3 == 0 for n in range(len(rows) - 4))
    chosen, _ = both(tmp_path / "d.jsonl", monkeypatch, wanted=mask)
    assert chosen == [item for item, wanted in zip(items, mask, strict=False) if wanted]
    numbered = [{**row, "id": f"w{n}"} if row.get("id") == "x" else row for n, row in enumerate(WRONG)]
    write_jsonl(tmp_path / "d.jsonl", [*GOOD, *numbered, *GOOD])
    kind, said = both(tmp_path / "d.jsonl", monkeypatch)
    assert kind == "refused"
    assert said.endswith(f"… and {len(WRONG) + len(GOOD) - 20} more faulty lines")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
ROW = st.fixed_dictionaries(
    {"input": st.text(max_size=6) | JSON},
    optional={
        "id": st.text(max_size=4) | JSON,
        "reference": st.text(max_size=6) | JSON,
        "output": st.text(max_size=6) | JSON,
        "contexts": st.lists(st.text(max_size=4), max_size=3) | JSON,
        "claims": st.lists(st.text(max_size=4), max_size=3) | JSON,
        "reference_context_ids": st.lists(st.text(max_size=3), max_size=3) | JSON,
        "tags": st.lists(st.text(max_size=3), max_size=2) | JSON,
        "answerable": st.booleans() | JSON,
        "metadata": st.dictionaries(st.text(max_size=3), JSON, max_size=2) | JSON,
        "other": JSON,
    },
)


@given(st.lists(ROW, min_size=1, max_size=6))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_rows_are_the_same_for_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: list[dict[str, Any]]
) -> None:
    path = tmp_path / "d.jsonl"
    lines = [json.dumps(row) for row in (*GOOD[:8], *rows)]
    path.write_text("\n".join(lines), encoding="utf-8")
    both(path, monkeypatch)


def test_plain_rows_are_never_looked_at_by_python(tmp_path: Path, screened: pytest.MonkeyPatch) -> None:
    rows = [{**row, "contexts": ["a", "b"], "reference_context_ids": ["d1"], "metadata": {"n": 1}} for row in GOOD]
    write_jsonl(tmp_path / "d.jsonl", [*rows, {"id": 8, "input": " x"}])
    source = JsonLines([tmp_path / "d.jsonl"], "d")
    found = screen(source, settle([*rows], where="d"), None)
    assert found is not None
    assert list(found.suspects) == [False] * len(rows) + [True]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_tables_are_screened_too(tmp_path: Path, screened: pytest.MonkeyPatch, kind: tables.Kind) -> None:
    import duckdb

    path = tmp_path / f"d.{kind}"
    with duckdb.connect() as connection:
        connection.execute(
            'COPY (SELECT \'i\' || n AS id, CASE WHEN n = 3 THEN \'[{"role": "user", "content": "hi"}]\''
            " ELSE 'q' || n END AS question, CASE WHEN n % 2 = 0 THEN 'null' END AS ground_truth, 'x' AS other"
            " FROM range(40) t(n))"
            f" TO '{path}'"
        )
    source = Tables([path], "d", kind)
    dataset = checked(source, name="d")
    assert isinstance(dataset.items, Streamed)
    screened.setattr(tables, "SMALL", 1 << 40)
    alone = checked(source, name="d")
    assert (list(dataset.items), dataset.hash) == (list(alone.items), alone.hash)
    assert [item.reference for item in alone.items[:3]] == ["null", None, "null"]
    assert alone.items[3].input == "hi"


def test_more_items_than_are_held_are_streamed_again_and_again(
    load: Load, folder: Path, screened: pytest.MonkeyPatch
) -> None:
    write_jsonl(folder / "d.jsonl", [{"input": f"q{n}", "reference": "r"} for n in range(500)])
    dataset = load("d.jsonl")
    assert isinstance(dataset.items, Streamed)
    assert (len(dataset.items), len(list(dataset.items))) == (500, 500)
    assert [item.input for item in dataset.items[2:6:2]] == ["q2", "q4"]
    assert [item.input for item in dataset.items[3:1:-1]] == ["q3", "q2"]
    assert (dataset.items[-1].input, dataset.items[7].input) == ("q499", "q7")
    with pytest.raises(IndexError):
        dataset.items[500]
    assert [len(batch) for batch in dataset.batches(200)] == [200, 200, 100]


def test_a_dataset_that_changes_while_it_is_read_is_said(
    load: Load, folder: Path, screened: pytest.MonkeyPatch
) -> None:
    write_jsonl(folder / "d.jsonl", [{"input": f"q{n}"} for n in range(5)])
    items = load("d.jsonl").items
    write_jsonl(folder / "d.jsonl", [{"input": f"q{n}"} for n in range(4)])
    with pytest.raises(DatasetError, match=r"d\.jsonl: has 4 rows now, 5 when it was checked"):
        list(items)
    write_jsonl(folder / "d.jsonl", [{"input": 3}])
    with pytest.raises(DatasetError, match=r"d\.jsonl:1: input: is a number, not text"):
        list(items)
