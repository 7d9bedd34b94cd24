"""What the Prefect UI is told, and which suites a deploy is about: from real runs, without a server."""

from __future__ import annotations

import base64
import re
import xml.etree.ElementTree as ET
from datetime import UTC, datetime, timedelta

import pytest

from ragscore.errors import UsageError
from ragscore.flows import telling
from ragscore.flows.artifacts import key_of
from ragscore.flows.digest import digest_markdown
from ragscore.flows.stored import stored_suite
from ragscore.flows.suites import chosen, suite_paths, suites_of
from ragscore.flows.trend import Point, svg
from ragscore.gate import evaluate_gate
from ragscore.history import History
from ragscore.report.summary import summary_of
from ragscore.suite_file import read_suite
from tests.workspace import Workspace, items


@pytest.fixture
def two_runs(workspace: Workspace) -> Workspace:
    """v1 is whole; v2 finds nothing for cocoa, and fails on tea."""
    workspace.write_items([*items(), {"id": "odd|id", "input": "What | about <b>tea</b>?", "reference": "Tea."}])
    workspace.write_suite(gate={"coverage": 0.5, "context_recall": {"min": 0.9}})
    assert workspace.ragscore("run", "suite.yaml").returncode in (0, 1)
    workspace.order(**{"What_about_cocoa?": "nothing", "What_about_tea?": "raise"})
    workspace.write_suite(
        target={"retriever": "drinks-search", "version": "v2", "python": "drinks:retrieve"},
        gate={"coverage": 0.5, "context_recall": {"min": 0.9}},
    )
    workspace.ragscore("run", "suite.yaml")
    return workspace


def test_a_summary_shows_change_gate_and_trend_and_takes_no_markup_from_outside(two_runs: Workspace) -> None:
    history = History(two_runs.history)
    run, suite = history.run("last"), read_suite(two_runs.suite).suite
    gate = evaluate_gate(history, run, suite)
    summary = summary_of(history, run, worst=50)
    change = telling.change_of(history, run, suite)
    assert ("cocoa", "context_recall") in change.by_item
    assert ("tea", "context_recall") not in change.by_item  # not scored, so that nothing is known
    text = telling.summary_markdown(history, summary, gate, change, verdict="fail")
    assert text.startswith("# ✗ drinks-search v2: gate FAILED")
    assert "**fail** context\\_recall: mean" in text
    assert "1 target\\_error" in text
    (encoded,) = re.findall(r"data:image/svg\+xml;base64,([A-Za-z0-9+/=]+)", text)
    ET.fromstring(base64.b64decode(encoded))
    rows = telling.worst_rows(summary, change)
    (cocoa,) = [row for row in rows if row["item"] == "cocoa"]
    assert cocoa["context_recall"] == "0.00 (−1.00)"
    assert not [row for row in rows if row["item"] == "tea"]


def test_the_first_run_has_nothing_to_compare_with_and_says_so(workspace: Workspace) -> None:
    workspace.ragscore("run", "suite.yaml")
    history = History(workspace.history)
    change = telling.change_of(history, history.run("last"), read_suite(workspace.suite).suite)
    assert (change.note, dict(change.by_item)) == ("There is no earlier run to compare with.", {})


def test_text_from_outside_ends_no_cell_and_opens_no_tag() -> None:
    drawn = telling.table(("a", "b"), [("x | y\n# z", "<img src=x> [l](javascript:1)")])
    head, rule, row = drawn.splitlines()
    assert (head, rule) == ("| a | b |", "| --- | --- |")
    assert row == r"| x \| y \# z | \<img src=x\> \[l\](javascript:1) |"


@pytest.mark.parametrize(
    ("value", "shown"), [(0.0, "0.00"), (0.25, "+0.25"), (-0.25, "−0.25"), (0.001, "+0.001"), (-0.004, "-0.004")]
)
def test_a_change_that_is_something_never_reads_as_nothing(value: float, shown: str) -> None:
    assert telling.signed(value) == shown.replace("-", "−")


def test_a_trend_leaves_gaps_where_nothing_was_scored() -> None:
    drawn = ET.fromstring(svg({"a<b": [Point("v1", 0.5), Point("v2", None), Point("v3", 1.0, failed=True)]}))
    circles = [each for each in drawn.iter() if each.tag.endswith("circle")]
    assert len(circles) == 3  # two runs, and the ring


def test_a_digest_names_every_suite_of_the_period_and_counts_failed_gates(two_runs: Workspace) -> None:
    now = datetime.now(UTC)
    text, count = digest_markdown(History(two_runs.history), now - timedelta(days=1), now)
    assert count == 2
    assert "## drinks: drinks-search" in text
    assert "failed their gate" in text
    empty, none = digest_markdown(History(two_runs.history), now - timedelta(days=9), now - timedelta(days=8))
    assert (none, "No run in this time." in empty) == (0, True)


def test_a_digest_takes_no_change_of_scale_for_a_change(workspace: Workspace) -> None:
    for scale in (1, 10):
        workspace.write_suite(scorers=[{"context_recall": {"scale": scale}}])
        assert workspace.ragscore("run", "suite.yaml").returncode == 0
    now = datetime.now(UTC)
    text, _ = digest_markdown(History(workspace.history), now - timedelta(days=1), now)
    (row,) = [line for line in text.splitlines() if line.startswith("| context")]
    cells = [cell.strip() for cell in row.split("|")[3:-1]]  # columns without anything in them are left out
    assert cells == ["1.00 (v1)", "10.00 (v1)", "2 scales: not comparable"]


def test_suites_are_found_in_a_folder_among_other_files(workspace: Workspace) -> None:
    (workspace.folder / "compose.yaml").write_text("services: {}\n", encoding="utf-8")
    (workspace.folder / "base.yml").write_text("judge: offline\n", encoding="utf-8")
    assert suite_paths([workspace.folder, workspace.suite]) == [workspace.suite]
    found = suites_of("drinks-search", [workspace.folder])
    assert (found.paths, found.broken) == ([workspace.suite], {})
    with pytest.raises(UsageError, match=r"no suite is about the retriever 'chat'.*drinks-search"):
        suites_of("chat", [workspace.folder])
    with pytest.raises(UsageError, match="no such file or folder"):
        suite_paths([workspace.folder / "suits"])


def test_a_broken_suite_is_named_beside_those_that_are_found_unless_it_is_about_another_retriever(
    workspace: Workspace,
) -> None:
    other = workspace.suite.read_text(encoding="utf-8").replace("drinks-search", "chat").replace("scorers", "scorer")
    (workspace.folder / "chat.yaml").write_text(other, encoding="utf-8")
    assert suites_of("drinks-search", [workspace.folder]).broken == {}
    for name, text in {
        "ours.yaml": other.replace("chat", "drinks-search"),
        "any.yaml": other.replace("chat", "${WHICH}"),
        "torn.yaml": "dataset: [\n",
    }.items():
        (workspace.folder / name).write_text(text, encoding="utf-8")
    found = suites_of("drinks-search", [workspace.folder])
    assert found.paths == [workspace.suite]
    assert [path.name for path in found.broken] == ["any.yaml", "ours.yaml", "torn.yaml"]
    assert "scorer" in str(found.broken[workspace.folder / "ours.yaml"])
    assert not suites_of("chat", [workspace.folder]).paths  # and nobody says that there is none


def test_a_deployed_version_takes_the_place_of_the_suites_own(workspace: Workspace) -> None:
    file = chosen(workspace.suite, retriever="drinks-search", version="1.10")
    assert (file.suite.target.version, file.suite.target.python) == ("1.10", "drinks:retrieve")
    workspace.write_suite(target=None, targets=[
        {"retriever": "a", "version": "v1", "python": "drinks:retrieve"},
        {"retriever": "a", "version": "v2", "python": "drinks:retrieve"},
        {"retriever": "b", "version": "v1", "python": "drinks:retrieve"},
    ])  # fmt: skip
    assert chosen(workspace.suite, retriever="a", version="v2").suite.target.version == "v2"
    assert chosen(workspace.suite, retriever="b", version="v9").suite.target.version == "v9"
    with pytest.raises(UsageError, match="2 of its targets fit a v3"):
        chosen(workspace.suite, retriever="a", version="v3")


def test_what_a_run_retrieved_is_a_dataset_that_can_be_judged_again(two_runs: Workspace) -> None:
    history = History(two_runs.history)
    first = history.runs(limit=10)[-1]
    file = stored_suite(history, first, two_runs.folder / "again", name="again")
    asked = len(two_runs.calls())
    two_runs.ragscore("schema")
    again = two_runs.folder / "again.yaml"
    import yaml

    again.write_text(yaml.safe_dump(dict(file.document)), encoding="utf-8")
    done = two_runs.ragscore("run", "again.yaml")
    assert done.returncode == 0, done.stderr
    assert len(two_runs.calls()) == asked
    scores = "select item_id, scorer, status, exact_fraction from latest_scores where run_id = '{}' order by 1, 2"
    assert two_runs.sql(scores.format(history.run("last").run_id)) == two_runs.sql(scores.format(first.run_id))


def test_suites_whose_names_have_no_ascii_letters_have_artifacts_of_their_own() -> None:
    assert key_of("Python reference", "summary") == "ragscore-python-reference-summary"
    keys = {key_of(name, "summary") for name in ("質問集", "回答集", "docs 質問", "docs 回答", "docs")}
    assert len(keys) == 5
    assert all(re.fullmatch("[a-z0-9-]+", key) for key in keys)
