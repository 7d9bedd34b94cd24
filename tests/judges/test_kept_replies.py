"""What the model replied is kept with each request word for word, and shown, from the server's end to the page."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from ragscore.cli.show import show
from ragscore.errors import UsageError
from ragscore.history import History, RunRow
from ragscore.report.html import contents_of, render
from tests.judges.judged_suites import JudgedSuite, port_items
from tests.report.html.reading import Page

REPLIES = (
    "select item_id, scorer, number, outcome, reply from judge_calls where run_id = '{0}' and item_id <> ''"
    " order by 1, 2, 3"
)


def page_of(suite: JudgedSuite, run: RunRow) -> Page:
    history = History(suite.workspace.history)
    return Page(render(contents_of(history, history.run(run.run_id))))


def test_replies_that_were_used_and_those_asked_for_again_stand_in_the_history_and_the_page(
    suite: JudgedSuite, capsys: pytest.CaptureFixture[str]
) -> None:
    suite.write(port_items(3))
    suite.server.control(share=1.0, faults=["malformed", "think", "429"], in_a_row=1)
    run = suite.run()
    sent = [each for each in suite.server.stats()["last"] if "reply" in each]
    kept = suite.workspace.sql(REPLIES.format(run.run_id))
    every = suite.workspace.sql("select reply from judge_calls where reply is not null")
    assert Counter(reply for (reply,) in every) == Counter(each["reply"] for each in sent)
    outcomes = {row[3]: row[4] for row in kept}
    assert set(outcomes) == {"ok", "malformed", "throttled"}
    assert outcomes["throttled"] is None

    page = page_of(suite, run)
    shown = [
        (item_id, score["n"], number, call["outcome"], page.said(call["reply"]))
        for item_id, item in page.items.items()
        for score in item["s"]
        for number, call in enumerate(score["calls"], start=1)
    ]
    assert sorted(shown) == kept
    assert all(item["more"] is None for item in page.items.values())

    first = next(row for row in kept if row[4] is not None)
    assert show(run.run_id, item=first[0], replies=True, history=suite.workspace.history) == 0
    printed = capsys.readouterr().out
    for line in first[4].splitlines():
        assert line in printed
    assert show(run.run_id, item=first[0], replies=True, json=True, history=suite.workspace.history) == 0
    told = json.loads(capsys.readouterr().out)
    calls = [(s["scorer"], call["outcome"], call["reply"]) for s in told["scores"] for call in s["calls"]]
    assert calls == [(row[1], row[3], row[4]) for row in kept if row[0] == first[0]]
    with pytest.raises(UsageError, match="--item ID"):
        show(run.run_id, replies=True, history=suite.workspace.history)


def test_a_run_that_remembers_everything_has_no_reply_and_says_that_it_was_remembered(
    suite: JudgedSuite, capsys: pytest.CaptureFixture[str]
) -> None:
    suite.write(port_items(2))
    suite.run()
    again = suite.run()
    assert suite.workspace.sql(REPLIES.format(again.run_id)) == []
    for item in page_of(suite, again).items.values():
        for score in item["s"]:
            assert score["calls"] == []
            assert score["asked"] > 0
            assert all(finding["mem"] for finding in score["f"])
    show(again.run_id, item="i000", replies=True, history=suite.workspace.history)
    assert "remembered from earlier replies: 5" in capsys.readouterr().out


def test_a_run_that_keeps_no_texts_keeps_no_reply(suite: JudgedSuite, capsys: pytest.CaptureFixture[str]) -> None:
    suite.write(port_items(2), store_text="hash")
    run = suite.run()
    kept = suite.workspace.sql(REPLIES.format(run.run_id))
    assert len(kept) == 6
    assert {(row[3], row[4]) for row in kept} == {("ok", None)}
    assert all(call["reply"] is None for item in page_of(suite, run).items.values() for call in item["s"][0]["calls"])
    show(run.run_id, item="i000", replies=True, history=suite.workspace.history)
    assert "not kept (store_text: hash)" in capsys.readouterr().out
