"""The judge's replies in a page: as text, whole, the worst items' first, and never too many."""

from __future__ import annotations

import random
import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from ragscore.history import History
from ragscore.items import Call, Record, Status
from ragscore.report.html import contents_of, render
from ragscore.report.html.replies import ROOM
from tests.history.records import precision, recall, record, run_row, store
from tests.report.html.reading import Page
from tests.report.html.test_page import HOSTILE

JUDGE = "openai/m"


def asked(number: int, *replies: str | None) -> Record:
    """An item whose recall took one call per reply; None is a call that got none."""
    calls = tuple(
        Call("attribute_claims", JUDGE, "json_schema", "timeout" if reply is None else "ok", reply=reply)
        for reply in replies
    )
    return record(number).having(scores=(replace(recall(number), calls=calls), precision(number)))


def filled(folder: Path, records: Sequence[Record]) -> History:
    history = History(folder / "history.duckdb")
    history.start_run(run_row(items=len(records), judge=JUDGE))
    assert store(history, "run-1", records)[2] == 2 * len(records)
    assert history.finish_run("run-1", status="complete").ok
    return history


def shown(page: Page, item_id: str) -> list[str | None]:
    return [page.said(call["reply"]) for score in page.items[item_id]["s"] for call in score["calls"]]


def test_a_hostile_reply_is_shown_as_text_and_word_for_word(tmp_path: Path) -> None:
    history = filled(tmp_path, [asked(0, HOSTILE, None, "")])
    html = render(contents_of(history, history.run("last")))
    page = Page(html)
    assert html.count("<script") == html.count("</script>") == 2
    assert not [own for tag, own in page.tags if tag == "img" or any(name.startswith("on") for name in own)]
    assert shown(page, "item-0") == [HOSTILE, None, ""]


def test_replies_go_in_whole_worst_items_first_and_of_the_others_the_command_is_named(tmp_path: Path) -> None:
    long = 20_000
    records = [asked(number, f"{number:03}" + "é" * (long // 2 - 2) + "!", "short") for number in range(40)]
    history = filled(tmp_path, records)
    page = Page(render(contents_of(history, history.run("last"))))
    ids = list(page.items)
    whole = [item_id for item_id in ids if shown(page, item_id)[0] is not None]
    assert whole == ids[: len(whole)], "in the order of the page"
    assert ROOM - 2 * long < len(whole) * long <= ROOM
    for item_id in whole[:-1]:
        number = int(item_id.removeprefix("item-"))
        assert shown(page, item_id) == [call.reply for call in (records[number].scores or ())[0].calls]
        assert page.items[item_id]["more"] is None
    for item_id in ids[len(whole) :]:
        assert shown(page, item_id) == [None, None]
        assert [call.get("left") for call in page.items[item_id]["s"][0]["calls"]] == [True, True]
        words = shlex.split(page.items[item_id]["more"])
        place = words.index("show")
        assert words[place : place + 5] == ["show", "run-1", "--item", item_id, "--replies"]


def test_calls_of_an_attempt_that_was_superseded_are_not_shown(tmp_path: Path) -> None:
    history = History(tmp_path / "history.duckdb")
    history.start_run(run_row(items=1, judge=JUDGE))
    failed = asked(1, "not JSON")
    scores = failed.scores or ()
    store(history, "run-1", [failed.having(scores=(replace(recall(1, Status.JUDGE_ERROR), calls=scores[0].calls),))])
    store(history, "run-1", [asked(1, "better").having(attempt=2)])
    page = Page(render(contents_of(history, history.run("last"))))
    assert shown(page, "item-1") == ["better"]


@pytest.mark.e2e
@pytest.mark.parametrize(
    "letters", [lambda noise: chr(noise.randint(0x4E00, 0x9FFF)), lambda noise: chr(noise.randint(32, 126))]
)
def test_1000_items_with_replies_that_do_not_compress_stay_below_2_mb(
    tmp_path: Path, letters: Callable[[random.Random], str]
) -> None:
    noise = random.Random(5)
    records = [asked(number, "".join(letters(noise) for _ in range(1_500))) for number in range(1_000)]
    history = filled(tmp_path, records)
    html = render(contents_of(history, history.run("last")))
    assert len(html.encode()) < 2_000_000
    page = Page(html)
    assert 50 < sum(shown(page, item_id)[0] is not None for item_id in page.items) < 1_000
