"""What a page says and how: hostile text, comparisons in words, what is missing, the command."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path

import pytest

from ragscore.cli.report import report
from ragscore.errors import UsageError
from ragscore.history import History
from ragscore.report.html import contents_of, render, write_report
from tests.history.example import example
from tests.report.conftest import Bench
from tests.report.html.reading import Page
from tests.report.rows import FACTS, NOISE, item
from tests.workspace import Workspace

HOSTILE = (
    "</script><script>alert(1)</script><img src=x onerror=alert(2)> \"'&amp; {{ 7*7 }} \x00\x1b[31m שלום \u202e 🙂"
)


def test_hostile_text_is_shown_as_text(bench: Bench) -> None:
    rows = [
        item(HOSTILE, HOSTILE, NOISE, input=HOSTILE, reference=HOSTILE, metadata={HOSTILE[:20]: HOSTILE[:30]}),
        item(2, *FACTS, metadata={HOSTILE[:20]: "x"}),
    ]
    bench.run(rows, version=HOSTILE[:40], retriever=HOSTILE)
    html = render(contents_of(bench.history, bench.history.run("last")))
    page = Page(html)
    assert html.count("<script") == html.count("</script>") == 2
    assert not [own for tag, own in page.tags if tag == "img" or any(name.startswith("on") for name in own)]
    assert "alert(1)" in page.text
    assert "49" not in page.text.split("alert(2)")[1][:40]
    assert "\x00" not in html
    assert "␀" in page.text
    assert page.said(page.items[f"q{HOSTILE}"]["q"]) == HOSTILE


def test_the_page_names_nothing_outside_and_allows_only_its_own_script(bench: Bench) -> None:
    bench.run([item(1, *FACTS)])
    html = render(contents_of(bench.history, bench.history.run("last")))
    page = Page(html)
    linked = [own.get(name, "") for _, own in page.tags for name in ("src", "href", "action") if name in own]
    assert all(each.startswith(("#", "data:,")) for each in linked)
    assert not re.findall(r"url\(|@import|https?://(?!www\.w3\.org/2000/svg)", html)
    (policy,) = [own["content"] for tag, own in page.tags if own.get("http-equiv") == "Content-Security-Policy"]
    (script,) = re.findall(r"<script>(.*?)</script>", html, re.S)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert policy.startswith("default-src 'none'")
    assert f"script-src 'sha256-{digest}'" in policy


def test_a_comparison_is_one_sentence_a_manager_can_read(bench: Bench) -> None:
    full = [item(n, *FACTS) for n in range(30)]
    bench.run(full, version="v1")
    bench.run([item(n, *(FACTS if n > 12 else FACTS[:1])) for n in range(30)], version="v2")
    shown = Page(render(contents_of(bench.history, bench.history.run("last")))).text
    assert (
        "From v1 to v2, context recall fell from 1.00 to 0.71 over 30 questions: 13 questions got worse and 0 better. "
        "Chance hardly explains this: it is worse."
    ) in shown
    back = Page(render(contents_of(bench.history, bench.history.runs()[1], against=bench.history.runs()[0]))).text
    assert "rose from 0.71 to 1.00" in back
    assert "Chance hardly explains this: it is better." in back


def test_nothing_changed_and_nothing_to_compare_are_said(bench: Bench) -> None:
    bench.run([item(n, *FACTS) for n in range(8)])
    assert "no earlier complete run" in Page(render(contents_of(bench.history, bench.history.run("last")))).text
    bench.run([item(n, *FACTS) for n in range(8)])
    shown = Page(render(contents_of(bench.history, bench.history.run("last")))).text
    assert "stayed at 1.00 over 8 questions: 0 questions got worse and 0 better. Nothing changed." in shown


def test_runs_that_are_unlike_are_compared_only_when_that_is_forced(bench: Bench) -> None:
    bench.run([item(n, *FACTS) for n in range(4)])
    bench.run([item(f"other{n}", *FACTS) for n in range(4)], version="v2")
    after, before = bench.history.runs()
    assert "Not compared with run" in Page(render(contents_of(bench.history, after))).text
    with pytest.raises(UsageError):
        contents_of(bench.history, after, against=before)
    forced = Page(render(contents_of(bench.history, after, against=before, force=True))).text
    assert "Compared by force" in forced


def test_the_judge_is_shown_with_agreement_noise_and_spend(tmp_path: Path) -> None:
    history = example(tmp_path / "history.duckdb")
    page = Page(render(contents_of(history, history.run("run-4"))))
    (confusion,) = [each.rows for each in page.tables if each.attributes.get("class") == "confusion"]
    assert [row[1:] for row in confusion[1:]] == [["60", "5"], ["5", "30"]]
    assert "0.890" in page.text
    assert "0.780" in page.text
    spend = next(each.rows for each in page.tables if each.rows[0][0] == "day (UTC)")
    from ragscore.history import select

    rows = select(history.path, "SELECT day, model, calls, failed FROM judge_spend ORDER BY day DESC, model").rows
    assert [row[:4] for row in spend[1:]] == [[str(each) for each in row] for row in rows]
    assert any("unknown" in row[-1] for row in spend[1:]), "a cost that is unknown is not 0"


def test_the_legend_names_deploys_and_versions_that_came_without_one(bench: Bench, tmp_path: Path) -> None:
    for version in ("v1", "v2"):
        bench.run([item(n, *FACTS) for n in range(4)], version=version)
    by_hand = Page(render(contents_of(bench.history, bench.history.run("last")))).text_of("overview", "context_recall")
    assert "other version, no deploy" in by_hand
    assert by_hand.count("deploy") == by_hand.count("other version, no deploy")
    history = example(tmp_path / "deployed.duckdb")
    deployed = Page(render(contents_of(history, history.run("last")))).text_of("overview", "context_recall")
    assert "deploy" in deployed
    assert "no deploy" not in deployed


def test_one_run_alone_has_its_numbers_and_no_empty_chart(bench: Bench) -> None:
    bench.run([item(n, *FACTS) for n in range(4)])
    page = Page(render(contents_of(bench.history, bench.history.run("last"))))
    assert "One run so far; the chart begins with the next one." in page.text_of("overview", "context_recall")
    assert [own.get("data-by") for tag, own in page.tags if tag == "table" and "data-by" in own] == ["run", "run"]


def test_fewer_items_than_the_run_has_are_said(bench: Bench) -> None:
    bench.run([item(n, *FACTS) for n in range(5)])
    from ragscore.history import findings, item_scores
    from ragscore.report.html.entries import entries_of
    from ragscore.report.html.texts import Texts

    run = bench.history.run("last")
    made = entries_of(
        bench.history, run, item_scores(bench.history, "last"), findings(bench.history, "last"), Texts(), most=3
    )
    assert [each.item_id for each in made] == ["q0", "q1", "q2"]


def test_a_run_that_keeps_no_texts_says_so(bench: Bench) -> None:
    bench.run([item(1, *FACTS)], store_text="hash")
    shown = render(contents_of(bench.history, bench.history.run("last")))
    assert "keeps fingerprints instead of texts" in shown
    assert FACTS[0] not in shown


def test_a_report_replaces_the_file_as_a_whole(bench: Bench, tmp_path: Path) -> None:
    bench.run([item(1, *FACTS)])
    file = tmp_path / "out" / "report.html"
    contents = contents_of(bench.history, bench.history.run("last"))
    assert write_report(contents, file) == file.stat().st_size
    write_report(contents, file)
    assert [each.name for each in file.parent.iterdir()] == ["report.html"]


def test_the_command_takes_a_suite_a_run_a_version_or_two_runs(
    bench: Bench, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ids = {version: bench.run([item(n, *FACTS) for n in range(4)], version=version).run_id for version in ("v1", "v2")}
    out = tmp_path / "out.html"
    asked: list[tuple[str, tuple[str, str] | None, str]] = [
        ("last", None, "v2"),
        ("docs", None, "v2"),
        ("v1", None, "v1"),
        (ids["v1"], None, "v1"),
        ("last", ("v2", "v1"), "v1"),
        ("last", ("v1", "last"), "v2"),
    ]
    for what, compare, expected in asked:
        assert report(what, compare=compare, output=out, history=bench.history.path, json=True) == 0
        told = json.loads(capsys.readouterr().out)
        assert told == {"file": str(out), "bytes": out.stat().st_size, "run_id": ids[expected], "items": 4}
    for what, compare, said in (("nosuch", None, "no run and no version 'nosuch'"), ("v1", ("v1", "v2"), "two things")):
        with pytest.raises(UsageError, match=said):
            report(what, compare=compare, output=out, history=bench.history.path)
    with pytest.raises(UsageError, match="cannot be written"):
        report(output=out / "report.html", history=bench.history.path)


def test_the_command_line_writes_the_report_beside_the_suite(workspace: Workspace) -> None:
    assert workspace.ragscore("run", "suite.yaml").returncode == 0
    run = History(workspace.history).run("last")
    done = workspace.ragscore("report", "drinks")
    assert done.stdout.startswith(f"report.html: drinks v1, run {run.run_id}"), done.stderr
    assert "context recall" in Page((workspace.folder / "report.html").read_text(encoding="utf-8")).text
    done = workspace.ragscore("report", "--compare", "v1", "last")
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
