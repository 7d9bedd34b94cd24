"""where, sample and limit: which rows are meant, and that the rest does not count."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.datasets.conftest import Load, Refused, write_jsonl


@pytest.fixture
def rows(folder: Path) -> list[dict[str, object]]:
    made: list[dict[str, object]] = [
        {
            "id": f"i{n}",
            "input": f"q{n}",
            "reference": "007" if n % 2 else "2024-01-01",
            "level": n,
            "metadata": {"lang": "en" if n < 5 else "de"},
        }
        for n in range(10)
    ]
    write_jsonl(folder / "d.jsonl", made)
    return made


@pytest.mark.usefixtures("rows")
@pytest.mark.parametrize(
    ("where", "ids"),
    [
        ("reference = '007' AND level < 4", ["i1", "i3"]),
        ("metadata.lang = 'de' AND level >= 8", ["i8", "i9"]),
        ("reference LIKE '2024-01-0_' AND id < 'i3' -- a remark", ["i0", "i2"]),
        ("starts_with(reference, '00') AND level IN (5, 6)", ["i5"]),
    ],
)
def test_where_is_sql_over_the_columns_of_the_file_with_texts_as_texts(load: Load, where: str, ids: list[str]) -> None:
    assert [item.id for item in load("d.jsonl", where=where).items] == ids


def test_where_works_on_tables_and_on_rows_of_a_function(load: Load, folder: Path) -> None:
    (folder / "d.csv").write_text("id,input,n\n01,a,\n02,b,007\n", encoding="utf-8")
    assert [item.id for item in load("d.csv", where="n = '007'").items] == ["02"]
    (folder / "labels_where.py").write_text("def rows(): return [{'input': 'a', 'n': 1}, {'input': 'b', 'n': 2}]\n")
    assert [item.input for item in load(python="labels_where:rows", where="n > 1").items] == ["b"]


@pytest.mark.usefixtures("rows")
def test_a_condition_that_is_wrong_or_never_true_is_said(refused: Refused) -> None:
    assert refused("d.jsonl", where="nope = 1").startswith("dataset.where: is not right: ")
    assert refused("d.jsonl", where="level = 1); DROP TABLE x; --").startswith("dataset.where: is not right: ")
    assert refused("d.jsonl", where="level > 99").startswith("dataset.where: nothing fulfils `where`")


@pytest.mark.usefixtures("rows")
def test_a_sample_is_the_same_every_time_in_order_and_another_with_another_seed(load: Load) -> None:
    chosen = [[item.id for item in load("d.jsonl", sample=4, seed=seed).items] for seed in (0, 0, 1)]
    assert chosen[0] == chosen[1] == sorted(chosen[0])
    assert len(chosen[0]) == 4
    assert chosen[0] != chosen[2]
    assert len(load("d.jsonl", sample=99).items) == 10


def test_a_sample_hardly_changes_when_rows_are_added(load: Load, folder: Path) -> None:
    write_jsonl(folder / "small.jsonl", [{"input": f"q{n}"} for n in range(1000)])
    write_jsonl(folder / "grown.jsonl", [{"input": f"q{n}"} for n in range(1050)])
    before, after = ({item.id for item in load(name, sample=100).items} for name in ("small.jsonl", "grown.jsonl"))
    assert len(before & after) >= 85


@pytest.mark.usefixtures("rows")
def test_where_comes_before_sample_and_sample_before_limit(load: Load) -> None:
    sampled = [item.id for item in load("d.jsonl", where="level < 6", sample=4).items]
    assert set(sampled) <= {f"i{n}" for n in range(6)}
    assert [item.id for item in load("d.jsonl", where="level < 6", sample=4, limit=2).items] == sampled[:2]


def test_rows_that_are_not_meant_are_neither_checked_nor_hashed(load: Load, refused: Refused, folder: Path) -> None:
    write_jsonl(folder / "d.jsonl", [{"input": "a"}, {"input": "b"}, {"input": ""}])
    assert [item.input for item in load("d.jsonl", limit=2).items] == ["a", "b"]
    write_jsonl(folder / "e.jsonl", [{"input": "a"}, {"input": "b"}])
    assert load("d.jsonl", limit=2).hash == load("e.jsonl").hash
    assert refused("d.jsonl", limit=3).startswith("d.jsonl:3: input: is missing or empty")
