"""Reading JSONL: what is right comes in exactly as written, what is wrong is named with its line, field and mend."""

from __future__ import annotations

import hashlib
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragscore.datasets import Dataset, read_jsonl
from ragscore.datasets.rows import COLUMNS, item_of
from ragscore.errors import DatasetError
from ragscore.history import History, item_detail
from ragscore.items import Item, Record, Response

Read = Callable[..., Dataset]
Complain = Callable[..., list[str]]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def made(*lines: str | dict[str, Any], raw: bytes | None = None) -> Dataset:
        path = tmp_path / "data.jsonl"
        texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
        path.write_bytes(raw if raw is not None else "\n".join([*texts, ""]).encode("utf-8"))
        return read_jsonl(path)

    return made


@pytest.fixture
def complaints(read: Read, tmp_path: Path) -> Complain:
    def made(*lines: str | dict[str, Any], raw: bytes | None = None) -> list[str]:
        with pytest.raises(DatasetError) as caught:
            read(*lines, raw=raw)
        return str(caught.value).replace(f"{tmp_path}/", "").splitlines()

    return made


def test_every_column_is_read(read: Read) -> None:
    (item,) = read(
        {
            "id": "q1",
            "input": "why?",
            "reference": "because",
            "reference_context_ids": ["a", 2],
            "contexts": ["plain", {"id": 7, "text": "rich", "score": 0.5, "metadata": {"page": 3}}],
            "output": "said",
            "claims": ["one", "two"],
            "answerable": False,
            "metadata": {"lang": "en"},
        }
    ).items
    assert item.reference_context_ids == ("a", "2")
    assert item.contexts is not None
    assert [(c.text, c.id, c.score, c.metadata) for c in item.contexts] == [
        ("plain", None, None, {}),
        ("rich", "7", 0.5, {"page": 3}),
    ]
    assert (item.id, item.input, item.reference, item.output) == ("q1", "why?", "because", "said")
    assert (item.claims, item.answerable, item.metadata) == (("one", "two"), False, {"lang": "en"})


def test_what_is_left_out_or_null_is_absent_and_an_empty_list_of_contexts_is_not(read: Read) -> None:
    bare, null, empty = read(
        {"input": "a"},
        {"input": "b", "reference": None, "contexts": None, "claims": None, "output": None, "answerable": None},
        {"input": "c", "contexts": []},
    ).items
    for item in (bare, null):
        assert (item.reference, item.contexts, item.claims, item.output, item.answerable) == (None,) * 4 + (True,)
    assert empty.contexts == ()


def test_a_byte_order_mark_blank_lines_and_crlf_do_not_matter_and_lines_are_still_counted(
    read: Read, complaints: Complain
) -> None:
    raw = b'\xef\xbb\xbf{"input": "a"}\r\n\r\n   \r\n{"input": "b"}\r\n'
    assert [item.input for item in read(raw=raw).items] == ["a", "b"]
    assert complaints(raw=raw + b'{"input": 3}')[0].startswith("data.jsonl:5: input: ")


def test_separators_of_lines_inside_of_texts_do_not_split_a_line(read: Read, complaints: Complain) -> None:
    odd = '{"input": "a\u2028b\u2029c\u0085d\u000cx"}'.replace("\x0c", "\\f")
    assert read(odd).items[0].input == "a\u2028b\u2029c\x85d\x0cx"
    assert complaints(odd, {"input": 3})[0].startswith("data.jsonl:2: ")


@pytest.mark.parametrize(
    "text", ["2024-01-01", "007", "1e5", "null", "NaN", "Infinity", "true", " padded ", "1,5", "a\tb\\"]
)
def test_texts_stay_exactly_what_they_are(read: Read, text: str) -> None:
    row = {"id": text, "input": text, "reference": text, "output": text, "claims": [text], "contexts": [text]}
    (item,) = read({**row, "reference_context_ids": [text], "other": text}).items
    assert (item.id, item.input, item.reference, item.output, item.claims) == (text, text, text, text, (text,))
    assert item.contexts is not None
    assert item.contexts[0].text == text
    assert item.reference_context_ids == (text,)
    assert item.metadata == {"other": text}


@pytest.mark.parametrize(
    ("row", "field", "what", "mend"),
    [
        ({}, "input", "is missing or empty", "every item needs a question"),
        ({"question": "a"}, "input", "is missing or empty", "the row has `question`"),
        ({"input": ""}, "input", "is missing or empty", "every item"),
        ({"input": " \t"}, "input", "is missing or empty", "every item"),
        ({"input": None}, "input", "is missing or empty", "every item"),
        ({"input": 3}, "input", "is a number, not text", "in quotes"),
        ({"input": "a", "reference": {"x": 1}}, "reference", "is an object, not text", "in quotes"),
        ({"input": "a", "reference": 42}, "reference", "is a number, not text", "in quotes"),
        ({"input": "a", "reference": True}, "reference", "is true or false, not text", "in quotes"),
        ({"input": "a", "reference": ["x", "y"]}, "reference", "is a list, not text", "in quotes"),
        ({"input": "a", "output": ["x"]}, "output", "is a list, not text", "in quotes"),
        ({"input": "a", "claims": "x"}, "claims", "is text, not a list", '["fact one"'),
        ({"input": "a", "claims": []}, "claims", "is an empty list", "leave it out"),
        ({"input": "a", "claims": ["x", 3]}, "claims[1]", "is a number", '["fact one"'),
        ({"input": "a", "claims": ["x", " "]}, "claims[1]", "is blank", '["fact one"'),
        ({"input": "a", "contexts": "x"}, "contexts", "is text, not a list", "[{"),
        ({"input": "a", "contexts": [None]}, "contexts[0]", "is null", "write text"),
        ({"input": "a", "contexts": ["x", {"id": 1}]}, "contexts[1]", "has no `text`", '"text"'),
        ({"input": "a", "contexts": [{"text": 3}]}, "contexts[0]", "has no `text`", '"text"'),
        ({"input": "a", "contexts": [{"text": "x", "id": {}}]}, "contexts[0].id", "is an object", "short text"),
        ({"input": "a", "reference_context_ids": "x"}, "reference_context_ids", "is text", '["id1"'),
        ({"input": "a", "reference_context_ids": ["x", {}]}, "reference_context_ids[1]", "is an object", '["id1"'),
        ({"input": "a", "answerable": "no"}, "answerable", "is text, not true or false", "true or false"),
        ({"input": "a", "answerable": 0}, "answerable", "is a number, not true or false", "true or false"),
        ({"input": "a", "metadata": [1]}, "metadata", "is a list, not an object", "{key: value}"),
        ({"input": "a", "id": 1.5}, "id", "is a number, not text or a whole number", "unique"),
        ({"input": "a", "id": True}, "id", "is true or false", "unique"),
        ({"input": "a", "id": ["x"]}, "id", "is a list", "unique"),
    ],
)
def test_a_faulty_row_names_its_line_field_and_mend(
    complaints: Complain, row: dict[str, Any], field: str, what: str, mend: str
) -> None:
    (said,) = complaints({"input": "fine", "id": "fine"}, row)
    assert said.startswith(f"data.jsonl:2: {field}: {what}")
    assert mend in said.partition(" — ")[2]


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ('{"input": "a"', "is not JSON: Expecting ',' delimiter at column 14"),
        ("{'input': 'a'}", "is not JSON: Expecting property name enclosed in double quotes at column 2"),
        ('{"input": "a"},', "is not JSON: Extra data at column 15"),
        ('{"input": "a"} {"input": "b"}', "is not JSON: Extra data at column 16"),
        ('{"input": "a\x01"}', "is not JSON: Invalid control character at column 13"),
        ('[{"input": "a"}]', "is not a JSON object"),
        ('"a"', "is not a JSON object"),
        ("null", "is not a JSON object"),
        ('{"input": "a", "score": NaN}', "holds NaN, which is not JSON"),
        ('{"input": "a", "score": [-Infinity]}', "holds -Infinity, which is not JSON"),
        ('{"input": "a", "score": 1e999}', "holds 1e999, which is beyond all numbers"),
        ('{"input": "a", "id": ' + "9" * 5000 + "}", "holds a number with too many digits"),
        ('{"input": "a", "deep": ' + "[" * 100_000 + "]" * 100_000 + "}", "is nested too deeply"),
        ('{"input": "a\\ud800b"}', "holds '\\ud800', half of a character"),
        ('{"input": "a", "x": [{"y": "\\uDC00"}]}', "holds '\\udc00', half of a character"),
    ],
    ids=lambda value: value[:40],
)
def test_a_line_that_is_no_sound_json_object_is_named(complaints: Complain, line: str, what: str) -> None:
    (said,) = complaints(line)
    assert said.startswith(f"data.jsonl:1: line: {what}")
    assert " — " in said


def test_a_whole_surrogate_pair_is_one_character_and_an_escaped_backslash_is_no_surrogate(read: Read) -> None:
    assert [item.input for item in read('{"input": "\\ud83d\\ude00"}', '{"input": "\\\\ud800"}').items] == [
        "😀",
        "\\ud800",
    ]


@pytest.mark.parametrize(
    ("line", "key"),
    [('{"input": "a", "input": "b"}', "input"), ('{"input": "a", "metadata": {"k": 1, "j": 1, "k": 1}}', "k")],
)
def test_a_key_that_stands_twice_is_refused(complaints: Complain, line: str, key: str) -> None:
    assert complaints(line) == [f"data.jsonl:1: {key}: stands twice in one object — remove one of the two"]


@pytest.mark.parametrize("ids", [("x", "x"), (1, "1"), (0, 0)])
def test_an_id_that_stands_twice_names_both_lines(complaints: Complain, ids: tuple[Any, Any]) -> None:
    first, second = ({"id": each, "input": text} for each, text in zip(ids, "ab", strict=True))
    (said,) = complaints(first, "", second)
    assert said == f"data.jsonl:3: id: {str(ids[0])!r} stands on line 1 already — give every item its own id"


def test_the_same_question_twice_without_ids_is_said_in_words_of_the_file(complaints: Complain) -> None:
    (said,) = complaints({"input": "a", "reference": "x"}, {"input": "a", "reference": "y"})
    assert said == (
        "data.jsonl:2: input: is the same as on line 1, without an id — remove one, or give each its own `id`"
    )


def test_the_same_question_twice_is_fine_with_ids(read: Read) -> None:
    items = read({"id": 1, "input": "a"}, {"id": 2, "input": "a"}, {"input": "a"}).items
    assert len({item.id for item in items}) == 3


@pytest.mark.parametrize("row", [{}, {"id": None}, {"id": ""}, {"id": "  "}])
def test_a_missing_id_is_a_stable_hash_of_the_input(row: dict[str, Any]) -> None:
    first, again = item_of({**row, "input": "why?"}), item_of({**row, "input": "why?", "reference": "r", "lang": "en"})
    assert first.id == again.id == hashlib.sha256(b'["why?"]').hexdigest()[:12]
    assert item_of({**row, "input": "why not?"}).id != first.id


def test_unknown_columns_go_to_metadata_where_what_stands_there_wins(read: Read) -> None:
    (item,) = read({"input": "a", "lang": "en", "n": [1, {"m": None}], "metadata": {"lang": "de", "k": 1}}).items
    assert item.metadata == {"lang": "de", "n": [1, {"m": None}], "k": 1}


def test_a_whole_number_of_any_size_is_an_id_with_all_its_digits(read: Read) -> None:
    number = 10**400 + 7
    assert read({"id": number, "input": "a"}, {"id": 0, "input": "b"}, {"id": -3, "input": "c"}).items[0].id == str(
        number
    )


def test_all_faulty_lines_are_named_up_to_20_and_the_rest_counted(complaints: Complain) -> None:
    lines = complaints(*[{"input": number} for number in range(25)])
    assert [line.partition(": ")[0] for line in lines[:20]] == [f"data.jsonl:{number}" for number in range(1, 21)]
    assert lines[20:] == ["… and 5 more faulty lines"]
    assert len(complaints(*[{"input": number} for number in range(20)])) == 20


def test_faults_survive_pickling(read: Read) -> None:
    with pytest.raises(DatasetError) as caught:
        read({"input": 1}, {"input": 2})
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.exit_code) == (str(caught.value), 2)


@pytest.mark.parametrize("raw", [b"", b"\n\n", b"\xef\xbb\xbf", b"\xef\xbb\xbf\r\n"])
def test_a_file_without_items_is_an_error(complaints: Complain, raw: bytes) -> None:
    assert complaints(raw=raw) == ['data.jsonl: holds no items — write one JSON object a line: {"input": …}']


@pytest.mark.parametrize(
    ("raw", "line"),
    [(b'{"input": "a"}\n' * 3000 + b'{"input": "\xff"}\n', 3001), ('{"input": "a"}\n'.encode("utf-16"), 1)],
    ids=["one byte", "utf-16"],
)
def test_what_is_not_utf8_is_named_with_its_line(complaints: Complain, raw: bytes, line: int) -> None:
    assert complaints(raw=raw) == [f"data.jsonl:{line}: is not UTF-8 text — save the file as UTF-8"]


def test_a_missing_file_and_a_folder_name_the_field_to_mend(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"absent\.jsonl: no such file — check `dataset\.path`"):
        read_jsonl(tmp_path / "absent.jsonl")
    with pytest.raises(DatasetError, match="is a directory — name a file in it"):
        read_jsonl(tmp_path)


BASE = {
    "id": "q",
    "input": "a",
    "reference": "r",
    "reference_context_ids": ["x"],
    "contexts": [{"id": "1", "text": "t"}],
    "output": "o",
    "claims": ["c"],
    "answerable": True,
}


@pytest.mark.parametrize(
    "change",
    [
        {"id": "p"},
        {"input": "b"},
        {"reference": "s"},
        {"reference": None},
        {"reference": ""},
        {"reference_context_ids": ["y"]},
        {"contexts": [{"id": "2", "text": "t"}]},
        {"contexts": [{"id": "1", "text": "u"}]},
        {"contexts": []},
        {"contexts": None},
        {"output": "p"},
        {"claims": ["d"]},
        {"claims": None},
        {"answerable": False},
    ],
    ids=str,
)
def test_the_hash_changes_with_all_that_influences_scores(change: dict[str, Any]) -> None:
    assert Dataset("d", [item_of(BASE)]).hash != Dataset("d", [item_of({**BASE, **change})]).hash


def test_the_hash_does_not_change_with_metadata_or_name_and_is_the_same_everywhere() -> None:
    plain = Dataset("d", [item_of(BASE)]).hash
    assert Dataset("e", [item_of({**BASE, "lang": "en", "metadata": {"k": [1]}})]).hash == plain
    assert plain == "91ed7f440eab5c8ee27cc4b7700e782a"


def test_the_hash_is_over_all_items() -> None:
    one, two = item_of(BASE), item_of({**BASE, "id": "p"})
    assert len({Dataset("d", items).hash for items in ([one], [two], [one, two], [two, one])}) == 4


@given(
    st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"])),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
            lambda inner: st.lists(inner, max_size=3),
            max_leaves=5,
        ),
        max_size=4,
    ),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip),
)
def test_any_json_beside_the_known_columns_is_kept_as_metadata(more: dict[str, Any], text: str) -> None:
    more = {key: value for key, value in more.items() if key not in COLUMNS}
    item = item_of({"input": text, **more})
    assert (item.input, item.metadata) == (text, more)


def test_odd_texts_come_back_from_the_history_as_they_were(read: Read, tmp_path: Path) -> None:
    (item,) = read({"id": "a\u0000b", "input": "x\u0000\u202e😀\u0301", "reference": "1e5"}).items
    assert stored_and_read(item, tmp_path) == item


def stored_and_read(item: Item, folder: Path) -> Item:
    from tests.history.records import run_row

    history = History(folder / "history.duckdb")
    history.start_run(run_row("run-1", items=1))
    history.store_responses("run-1", [Record(item, response=Response(output="o"))])
    return item_detail(history, "run-1", item.id).item
