"""The look: plain when piped, within 80 columns, nothing hidden in colour, nobody's text taken for markup."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import pytest
from rich.cells import cell_len
from rich.console import Console

from ragscore.assembly import assemble
from ragscore.history import History, RunRow, item_detail
from ragscore.judges.scripted import ScriptedJudge
from ragscore.report.comparison import compare_runs
from ragscore.report.layout import console
from ragscore.report.summary import summary_of
from ragscore.report.terminal import print_comparison, print_item, print_runs, print_summary
from ragscore.runs import begin
from ragscore.suite_file import read_suite
from tests.workspace import Workspace

from .conftest import Bench, make_bench
from .rows import FACTS, NOISE, item

ESCAPE = "\x1b"
SCORERS = ["context_recall", {"context_precision": {"name": "precision10", "scale": 10}}]


def printed(show: Callable[[Console], None], width: int = 80) -> list[str]:
    out = Console(file=io.StringIO(), width=width, highlight=False)
    show(out)
    assert isinstance(out.file, io.StringIO)
    return out.file.getvalue().splitlines()


@dataclass(frozen=True)
class Happened:
    """A plain run, and one after it in which all kinds of things happened."""

    history: History
    before: RunRow
    after: RunRow

    def everything(self, width: int) -> dict[str, list[str]]:
        """All that can be printed of them."""
        history, before, after = self.history, self.before, self.after
        comparison = compare_runs(history, before, after, force=True)
        shown = {
            "summary": printed(lambda out: print_summary(summary_of(history, after), out), width),
            "comparison": printed(lambda out: print_comparison(comparison, out), width),
            "runs": printed(lambda out: print_runs(history.runs(), out), width),
        }
        for item_id in ("q1", "q2", "q3", "q4 [x]", "q5", "q7"):
            detail = item_detail(history, after.run_id, item_id)
            shown[item_id] = printed(partial(print_item, detail), width)
        return shown


@pytest.fixture(scope="module")
def happened(tmp_path_factory: pytest.TempPathFactory) -> Happened:
    bench = make_bench(tmp_path_factory.mktemp("reports"))
    before = bench.run([item(number, *FACTS) for number in range(1, 9)], version="v1", scorers=SCORERS)
    rows = [
        item(1, *FACTS),
        item(2, NOISE, FACTS[0], input="What of [bold red]it[/], " + "which is a long question " * 12 + "?"),
        item(3, *FACTS, input="raise, please"),
        item("4 [x]"),
        item(5, NOISE, reference=None, answerable=False),
        item(6, NOISE, reference=None),
        item(7, NOISE, NOISE, facts=("A fact with [brackets] in it. " + "And words " * 40 + "to the end.",)),
    ]
    return Happened(bench.history, before, bench.run(rows, version="v2", scorers=SCORERS))


@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_line_ends_in_spaces_or_holds_an_escape_and_tables_fit_the_width(happened: Happened, width: int) -> None:
    for lines in happened.everything(width).values():
        assert [line for line in lines if line != line.rstrip()] == []
        assert ESCAPE not in "".join(lines)
        # Lines that are meant to be copied, and one-line messages, are left whole.
        long = [line for line in lines if len(line) > width]
        assert all(
            re.match(r"! |→ |\S+ (-m )?ragscore |ragscore |  \d|  q|q|.*·|.*not compared", line) for line in long
        ), long


def test_a_summary_shows_figures_statuses_faults_and_worst_items(happened: Happened) -> None:
    row = happened.after
    lines = happened.everything(120)["summary"]
    text = "\n".join(lines)
    assert lines[1] == f"docs-search v2  run {row.run_id} · 7 items · judge: offline-lexical-1"
    assert re.search(r"^  context_recall  0\.27 poor +5 +83\.3%  1 target_error, 1 unanswerable,", text, re.MULTILINE)
    assert "precision10" in text
    assert "(reference and output mixed)" in text
    assert "! coverage of context_recall and precision10 0.833 is below 0.95: 1 target_error; first: q3: " in text
    assert "items marked as not answerable: 1; not judged by this judge" in text
    assert re.search(r"target: p50 \d+ ms, p95 \d+ ms", text)
    assert "1 retrieved contexts repeat an earlier one of their item" in text
    assert "q4 [x]  context_recall 0.00 (no_context)  precision10 0.00 (no_context)" in text
    # Named as they can be typed here: with the history, which is not the default one.
    resume, show = lines[-2:]
    assert re.search(rf"ragscore resume {row.run_id} --history \S+   tries again what failed$", resume)
    assert re.search(rf"ragscore show {row.run_id} --item 'q4 \[x\]' --history \S+$", show)


def test_a_summary_without_faults_offers_no_resume(bench: Bench) -> None:
    row = bench.run([item(1, FACTS[0])])
    text = "\n".join(printed(lambda out: print_summary(summary_of(bench.history, row), out)))
    assert "ragscore resume" not in text
    assert re.search(rf"ragscore show {row.run_id} --item q1 --history \S+$", text)


def test_texts_of_the_dataset_are_never_taken_for_markup(happened: Happened) -> None:
    shown = happened.everything(120)
    assert "What of [bold red]it[/]" in "\n".join(shown["q2"])
    assert "A fact with [brackets] in it." in "\n".join(shown["q7"])
    assert shown["q4 [x]"][1].startswith("q4 [x]  run ")


def test_control_characters_of_what_was_retrieved_never_reach_the_terminal(bench: Bench) -> None:
    evil = "\x1b[2J\x1b]0;title\x07 back\x08 \x9b31m \r"
    row = bench.run(
        [
            item(evil, evil + FACTS[0], facts=(FACTS[0] + evil,), input=evil + "?", output=evil),
            item("2", reference=evil),
        ],
        version=evil,
        retriever=evil,
        scorers=[{"context_recall": {"name": evil}}, "context_precision"],
    )
    assert row.version == evil
    shows = [
        lambda out: print_summary(summary_of(bench.history, row), out),
        lambda out: print_item(item_detail(bench.history, row.run_id, f"q{evil}"), out),
        lambda out: print_comparison(compare_runs(bench.history, row, row), out),
        lambda out: print_runs([row], out),
    ]
    for show in shows:
        text = "\n".join(printed(show, 200))
        assert re.findall(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", text) == []
        assert "␛[2J" in text


def test_names_with_brackets_are_shown_whole(bench: Bench) -> None:
    name = "v1 [red] [/]"
    row = bench.run([item(1, *FACTS)], version=name, scorers=[{"context_recall": {"name": "recall [bold]"}}])
    for show in (
        lambda out: print_summary(summary_of(bench.history, row), out),
        lambda out: print_comparison(compare_runs(bench.history, row, row), out),
        lambda out: print_runs([row], out),
    ):
        assert name in "\n".join(printed(show, 200))
    assert "recall [bold]" in "\n".join(printed(lambda out: print_summary(summary_of(bench.history, row), out), 200))


def test_a_comparison_shows_means_changes_and_lost_facts(bench: Bench) -> None:
    before = bench.run([item(1, *FACTS), item(2, *FACTS), item(3, NOISE)], version="v1", scorers=SCORERS)
    after = bench.run([item(1, *FACTS[:2]), item(2, *FACTS), item(4, NOISE)], version="v2", scorers=SCORERS)
    lines = printed(lambda out: print_comparison(compare_runs(bench.history, before, after), out))
    assert lines[1] == "v1 → v2  docs-search, item by item"
    assert re.fullmatch(r"  scorer +items +v1 +v2  change  worse  better", lines[2])
    assert re.fullmatch(r"  context_recall +2 +1\.00 +0\.83 +-0\.17 +1 +0", lines[3])
    assert re.fullmatch(r"  precision10 +2 +10\.00 +10\.00 +0\.00 +0 +0", lines[4])
    assert lines[5:7] == ["context_recall: new, not compared: q4", "context_recall: gone, not compared: q3"]
    assert lines[-3:] == [
        "context_recall: worse in 1",
        "  1.00 → 0.67  q1  What of lighthouse 1?",
        f"        lost: {FACTS[2]}",
    ]


def test_scores_of_an_item_are_compared_in_one_scale(bench: Bench) -> None:
    before = bench.run([item(1, *FACTS)], version="v1", scorers=["context_recall"])
    after = bench.run([item(1, *FACTS[:2])], version="v2", scorers=[{"context_recall": {"scale": 10}}])
    lines = printed(lambda out: print_comparison(compare_runs(bench.history, before, after), out))
    assert re.fullmatch(r"  context_recall +1 +10\.00 +6\.67 +-3\.33 +1 +0", lines[3])
    assert "  10.00 → 6.67  q1  What of lighthouse 1?" in lines


@pytest.mark.parametrize(("supported", "change"), [((0, 1), "+0.13"), ((1, 0), "-0.13"), ((3, 3), "0.00")])
def test_a_change_is_rounded_half_up_on_both_sides_of_zero(
    bench: Bench, supported: tuple[int, int], change: str
) -> None:
    claims = [f"fact {number}" for number in range(8)]
    runs = [
        bench.run(
            [item(1, NOISE, claims=claims)],
            version=f"v{place}",
            judge=ScriptedJudge(supported=dict.fromkeys(claims[:count], True)),
            scorers=["context_recall"],
        )
        for place, count in enumerate(supported)
    ]
    lines = printed(lambda out: print_comparison(compare_runs(bench.history, *runs), out))
    assert lines[3].split()[4] == change


def test_long_lists_are_cut_and_counted(bench: Bench) -> None:
    before = bench.run([item(number, *FACTS) for number in range(9)], version="v1", scorers=["context_recall"])
    rows = [item(number, NOISE) for number in range(7)] + [item(f"new{number}", *FACTS) for number in range(6)]
    after = bench.run(rows, version="v2", scorers=["context_recall"])
    lines = printed(lambda out: print_comparison(compare_runs(bench.history, before, after), out))
    assert "context_recall: gone, not compared: q7, q8" in lines
    assert "context_recall: new, not compared: qnew0, qnew1, qnew2, qnew3, qnew4 and 1 more" in lines
    assert lines[-1] == "  … and 2 more"


def test_an_item_is_shown_with_each_claim_and_context_its_verdict_and_evidence(bench: Bench) -> None:
    row = bench.run([item(1, NOISE, FACTS[0], output="The lighthouse stands.")], scorers=SCORERS)
    text = "\n".join(printed(lambda out: print_item(item_detail(bench.history, row.run_id, "q1"), out)))
    assert f"  ✓ supported  {FACTS[0]}" in text
    assert f"      context #2: “{FACTS[0]}”" in text
    assert f"  ✗ missing  {FACTS[1]}" in text
    assert "precision10  5.00 of 10  mixed" in text
    assert f"  ✗ #1 not relevant  {NOISE}" in text
    assert f"  ✓ #2 relevant  {FACTS[0]}" in text
    assert "contexts (item)" in text


def test_what_was_never_decided_and_what_failed_is_said_in_words(bench: Bench) -> None:
    judge = ScriptedJudge(supported=lambda text, task: None, relevant=lambda text, task: True)
    undecided = bench.run([item(1, *FACTS), item(2, *FACTS, input="raise")], version="v1", judge=judge)
    text = "\n".join(printed(lambda out: print_item(item_detail(bench.history, undecided.run_id, "q1"), out)))
    assert "context_recall  not scored: judge_error" in text
    assert "  ? undecided  " in text
    text = "\n".join(printed(lambda out: print_item(item_detail(bench.history, undecided.run_id, "q2"), out)))
    assert "target     failed: ValueError: no index" in text
    assert "context_recall  not scored: target_error" in text


def test_a_piped_console_is_plain_and_120_wide_or_as_columns_says(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, happened: Happened
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    print_summary(summary_of(happened.history, happened.after), console())
    out = capsys.readouterr().out
    assert console().width == 120
    assert ESCAPE not in out
    assert "✗" in out
    monkeypatch.setenv("COLUMNS", "60")
    assert console().width == 60


COLOUR = re.compile(r"\x1b\[(?:\d+;)*(?:3[0-8]|9[0-7])(?:;\d+)*m")


def test_no_color_is_heeded_and_signs_and_words_say_it_all(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, happened: Happened
) -> None:
    detail = item_detail(happened.history, happened.after.run_id, "q2")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    print_item(detail, console())
    coloured = capsys.readouterr().out
    assert COLOUR.search(coloured)
    monkeypatch.setenv("NO_COLOR", "1")
    print_item(detail, console())
    plain = capsys.readouterr().out
    assert not COLOUR.search(plain)
    assert "✓ supported" in re.sub(r"\x1b\[[\d;]*m", "", plain)


def test_a_run_that_was_stopped_at_once_shows_no_empty_table(workspace: Workspace) -> None:
    history = History(workspace.history)
    run = begin(assemble(read_suite(workspace.suite)), history)
    history.finish_run(run.run_id, status="cancelled")
    text = "\n".join(printed(lambda out: print_summary(summary_of(history, history.run(run.run_id)), out)))
    assert "4 of 4 items are not done" in text
    assert "not scored" not in text


def test_a_list_that_is_too_wide_puts_the_words_of_a_run_below_its_figures(happened: Happened) -> None:
    rows = happened.history.runs()
    wide = printed(lambda out: print_runs(rows, out), 120)
    assert wide[1].split()[:5] == [rows[0].run_id, "docs", "docs-search", "v2", "7"]
    narrow = printed(lambda out: print_runs(rows, out), 60)
    assert narrow[0].split() == ["run", "items"]
    assert narrow[1].split() == [rows[0].run_id, "7"]
    assert narrow[2].startswith("    suite docs · retriever docs-search · version v2")
    assert f"judge {rows[0].judge}" in " ".join(" ".join(narrow).split())
    assert max(map(len, narrow)) <= 60


@pytest.mark.parametrize("width", [60, 80])
def test_names_in_wide_scripts_stay_aligned_and_within_the_width(bench: Bench, width: int) -> None:
    name = "文脈の再現率と検索品質"
    rows = [
        item(1, NOISE, facts=("灯台は北の崖の上に立っている。" * 8,), id="質問一", input="灯台について" * 20 + "？")
    ]
    row = bench.run(rows, version="版本二", retriever="文書検索", scorers=[{"context_recall": {"name": name}}])
    shows: list[Callable[[Console], None]] = [
        lambda out: print_runs([row], out),
        lambda out: print_summary(summary_of(bench.history, row), out),
        lambda out: print_item(item_detail(bench.history, row.run_id, "質問一"), out),
        lambda out: print_comparison(compare_runs(bench.history, row, row), out),
    ]
    for show in shows:
        lines = printed(show, width)
        # What is meant to be copied, and headings, are left whole.
        folded = [line for line in lines if not re.search("ragscore |run 2|item by item|^! |^→ ", line)]
        assert [line for line in folded if cell_len(line) > width] == []
    table = printed(lambda out: print_comparison(compare_runs(bench.history, row, row), out), 80)[2:4]
    ends = [[cell_len(line[: found.end()]) for found in re.finditer(r"\S+", line)] for line in table]
    assert ends[0][1:] == ends[1][1:], "figures end where their heads end"


MARKS_ARE_ASCII = [
    ({"TERM": "dumb"}, True),
    ({"LC_ALL": "C"}, True),
    ({"LANG": "POSIX"}, True),
    ({"LANG": "C", "LC_CTYPE": "C.UTF-8"}, True),  # as Python itself sets it
    ({"LANG": "de_DE.ISO-8859-15"}, True),
    ({"PYTHONIOENCODING": "ascii", "LANG": "en_GB.UTF-8"}, True),
    ({"LANG": "en_GB.UTF-8"}, False),
    ({"LANG": "C.utf8", "TERM": "xterm"}, False),
    ({"LANG": "en_GB"}, False),
    ({"LANG": "C", "PYTHONUTF8": "1"}, False),
    ({}, False),
]


@pytest.mark.parametrize(("told", "ascii_only"), MARKS_ARE_ASCII)
def test_marks_are_ascii_where_the_terminal_knows_no_more(
    monkeypatch: pytest.MonkeyPatch, happened: Happened, told: dict[str, str], ascii_only: bool
) -> None:
    for name in ("TERM", "LC_ALL", "LC_CTYPE", "LANG", "PYTHONIOENCODING", "PYTHONUTF8"):
        monkeypatch.delenv(name, raising=False)
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    comparison = compare_runs(happened.history, happened.before, happened.after, force=True)
    text = "\n".join(printed(lambda out: print_comparison(comparison, out)))
    assert text.isascii() == ascii_only
    assert ("v1 -> v2  docs-search" in text) == ascii_only
