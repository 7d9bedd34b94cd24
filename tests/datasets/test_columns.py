"""Columns under other tools' names are recognised, the suite's mapping wins, and what may be two things is an error."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragscore.datasets.columns import ALIASES, SETTLED_BY, settle
from ragscore.errors import DatasetError
from tests.datasets.conftest import Load, Refused, write_jsonl

VALUES = {
    "id": "i1",
    "input": "q?",
    "reference": "r",
    "contexts": ["c"],
    "context_ids": ["d1"],
    "output": "o",
    "reference_context_ids": ["d1"],
    "claims": ["one"],
    "answerable": False,
    "relevance": {"d1": 2},
}


@pytest.mark.parametrize(("field", "alias"), [(field, alias) for field, names in ALIASES.items() for alias in names])
def test_every_known_name_is_read_as_its_field(load: Load, folder: Path, field: str, alias: str) -> None:
    row = {name: value for name, value in VALUES.items() if name != field}
    ours = VALUES | {"context_ids": VALUES["context_ids"]}
    write_jsonl(folder / "ours.jsonl", [ours])
    write_jsonl(folder / "theirs.jsonl", [{**row, alias: VALUES[field]}])
    assert load("theirs.jsonl").items == load("ours.jsonl").items


def test_two_names_of_the_same_field_are_an_error_that_lists_the_choices(refused: Refused, folder: Path) -> None:
    write_jsonl(folder / "d.jsonl", [{"question": "a", "query": "b"}])
    assert refused("d.jsonl") == (
        "d.jsonl: `question` and `query` may each be the input — "
        "write `columns: {input: question}` or `columns: {input: query}`"
    )


def test_the_mapping_of_the_suite_wins_and_the_other_column_becomes_metadata(load: Load, folder: Path) -> None:
    write_jsonl(folder / "d.jsonl", [{"question": "a", "query": "b", "input": "c", "x": {"y": "r"}}])
    (item,) = load("d.jsonl", columns={"input": "query", "reference": "x.y"}).items
    assert (item.input, item.reference) == ("b", "r")
    assert item.metadata == {"question": "a", "input": "c", "x": {"y": "r"}}


def test_our_own_name_wins_over_other_tools_names(load: Load, folder: Path) -> None:
    write_jsonl(folder / "d.jsonl", [{"input": "a", "question": "b", "reference": "r", "expected": "e"}])
    (item,) = load("d.jsonl").items
    assert (item.input, item.reference, item.metadata) == ("a", "r", {"question": "b", "expected": "e"})


def test_an_answer_beside_no_reference_may_be_either(load: Load, refused: Refused, folder: Path) -> None:
    write_jsonl(folder / "d.jsonl", [{"question": "a", "answer": "b"}])
    assert refused("d.jsonl") == (
        "d.jsonl: `answer` may be the trusted answer or what the system said — "
        "write `columns: {reference: answer}` or `columns: {output: answer}`"
    )
    assert load("d.jsonl", columns={"reference": "answer"}).items[0].reference == "b"
    assert load("d.jsonl", columns={"output": "answer"}).items[0].output == "b"
    write_jsonl(folder / "e.jsonl", [{"question": "a", "answer": "b", "ground_truth": "c"}])
    assert (load("e.jsonl").items[0].output, load("e.jsonl").items[0].reference) == ("b", "c")


def test_a_mapped_column_that_is_not_there_is_named_with_the_nearest(refused: Refused, folder: Path) -> None:
    write_jsonl(folder / "d.jsonl", [{"frage": "a", "antwort": "b"}])
    assert refused("d.jsonl", columns={"input": "frage", "reference": "antwrt"}) == (
        "d.jsonl: columns.reference: has no column `antwrt` — did you mean `antwort`?"
    )


def test_without_a_column_for_the_question_the_columns_are_listed_once(refused: Refused, folder: Path) -> None:
    write_jsonl(folder / "d.jsonl", [{"frage": "a"}, {"frage": "b"}])
    assert refused("d.jsonl") == (
        "d.jsonl: no column is known to hold the question — name it with `columns: {input: …}`; there are: `frage`"
    )


@pytest.mark.parametrize("late", ["ground_truth", "response"])
def test_a_known_name_that_appears_late_is_a_fault_and_not_silently_metadata(
    refused: Refused, folder: Path, late: str
) -> None:
    rows = [{"id": n, "question": "a"} for n in range(SETTLED_BY)]
    write_jsonl(folder / "d.jsonl", [*rows, {"id": "x", "question": "b", late: "r"}])
    assert refused("d.jsonl").startswith(f"d.jsonl:{SETTLED_BY + 1}: {late}: first stands here, after the columns")


def test_our_own_name_may_appear_late(load: Load, folder: Path) -> None:
    rows = [{"id": n, "question": "a"} for n in range(SETTLED_BY)]
    write_jsonl(folder / "d.jsonl", [*rows, {"id": "x", "question": "b", "reference": "r", "tags": ["t"]}])
    assert load("d.jsonl").items[-1].reference == "r"


def test_a_reference_that_is_a_list_needs_the_word_of_the_suite(load: Load, refused: Refused, folder: Path) -> None:
    write_jsonl(folder / "d.jsonl", [{"input": "a", "reference": ["x", "y"]}])
    assert "is a list, not text — write one text in quotes, or `references: alternatives`" in refused("d.jsonl")
    assert load("d.jsonl", references="alternatives").items[0].reference == "x\nor\ny"
    write_jsonl(folder / "e.jsonl", [{"input": "a", "ground_truths": ["x"]}])
    assert load("e.jsonl").items[0].reference == "x"


def test_chat_messages_as_input_become_the_last_question_and_stay_beside(load: Load, folder: Path) -> None:
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yes?"}]
    messages.append({"role": "user", "content": "What is tea?"})
    write_jsonl(folder / "d.jsonl", [{"input": messages, "output": [{"role": "assistant", "content": "A drink."}]}])
    (item,) = load("d.jsonl").items
    assert (item.input, item.output) == ("What is tea?", "A drink.")
    assert item.metadata["messages"] == messages


def test_ids_of_contexts_are_given_to_them(load: Load, refused: Refused, folder: Path) -> None:
    write_jsonl(folder / "d.jsonl", [{"input": "a", "contexts": ["x", "y"], "retrieved_context_ids": ["d1", 2]}])
    assert [(c.id, c.text) for c in load("d.jsonl").items[0].contexts or ()] == [("d1", "x"), ("2", "y")]
    write_jsonl(folder / "d.jsonl", [{"input": "a", "retrieved_context_ids": ["d1"]}])
    assert [(c.id, c.text) for c in load("d.jsonl").items[0].contexts or ()] == [("d1", "d1")]
    write_jsonl(folder / "d.jsonl", [{"input": "a", "contexts": ["x", "y"], "retrieved_context_ids": ["d1"]}])
    assert "context_ids: are 1 for 2 contexts" in refused("d.jsonl")


def test_grades_give_the_reference_ids_and_count_in_the_hash(load: Load, folder: Path) -> None:
    hashes = set()
    for grade in (1, 2):
        write_jsonl(folder / "d.jsonl", [{"input": "a", "qrels": {"d1": grade, "d2": 0}}])
        dataset = load("d.jsonl")
        assert dataset.items[0].reference_context_ids == ("d1",)
        hashes.add(dataset.hash)
    assert len(hashes) == 2


def test_settling_says_where() -> None:
    with pytest.raises(DatasetError, match=r"^here: `expected` and `gold_answer` may each be the reference — "):
        settle([{"input": "a", "expected": "x", "gold_answer": "y"}], where="here")


def test_one_context_in_a_cell_stays_one_though_it_holds_a_table_of_markdown(load: Load, folder: Path) -> None:
    text = "| lamp | price |\n|---|---|\n| red | 5 |"
    (folder / "d.csv").write_text(f'question,context,ground_truth\nq,"{text}",a\n', encoding="utf-8")
    assert [each.text for each in load("d.csv").items[0].contexts or ()] == [text]


def test_headers_of_a_spreadsheet_are_known_whatever_their_case(load: Load, refused: Refused, folder: Path) -> None:
    text = "ID,Question,Ground Truth,Context,Retrieved-Context-IDs\n1,q,a,c | d,x\n"
    (folder / "d.csv").write_text(text, encoding="utf-8")
    (item,) = load("d.csv").items
    assert (item.id, item.input, item.reference, dict(item.metadata)) == ("1", "q", "a", {})
    assert [(each.id, each.text) for each in item.contexts or ()] == [("x", "c | d")]
    (folder / "d.csv").write_text("Frage,Reference\nq,a\n", encoding="utf-8")
    assert load("d.csv", columns={"input": "Frage"}).items[0].reference == "a"
    (folder / "d.csv").write_text("Question,Answer\nq,a\n", encoding="utf-8")
    assert "write `columns: {reference: Answer}` or" in refused("d.csv")
    (folder / "d.csv").write_text("Question,question,Prompt,query\na,b,c,d\n", encoding="utf-8")
    (folder / "d.jsonl").write_text('{"Question": "a", "Prompt": "b"}\n', encoding="utf-8")
    assert "`Question` and `Prompt` may each be the input" in refused("d.jsonl")
    (folder / "d.jsonl").write_text('{"Question": "a", "question": "b"}\n', encoding="utf-8")
    assert load("d.jsonl").items[0].input == "b"


def test_a_mapped_column_may_be_in_no_row_that_is_wanted(load: Load, refused: Refused, folder: Path) -> None:
    write_jsonl(folder / "d.jsonl", [{"q": "a"}, {"q": "b", "gold": {"text": None}}, {"q": "c", "gold": {"text": "x"}}])
    columns = {"input": "q", "reference": "gold.text"}
    assert load("d.jsonl", columns=columns, limit=1).items[0].reference is None
    assert load("d.jsonl", columns=columns, where="q = 'b'").items[0].reference is None
    assert "has no column `gold.txt`" in refused("d.jsonl", columns={**columns, "reference": "gold.txt"}, limit=1)
