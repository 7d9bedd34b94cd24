"""Every number in a report is the history's, cell by cell."""

from __future__ import annotations

import pytest

from ragscore.history import item_detail, item_scores, select, summaries
from ragscore.history.trends import By, trends
from ragscore.report.comparison import compare_runs
from ragscore.report.html import contents_of, render
from ragscore.report.summary import coverage_shown, mean_shown
from ragscore.scorers import rounded
from ragscore.scorers.arithmetic import as_fraction
from tests.report.conftest import Bench
from tests.report.html.reading import Page
from tests.report.rows import FACTS, NOISE, item

SCORERS = ["context_recall", {"context_precision": {"scale": 10, "name": "precision10"}}]


@pytest.fixture
def runs(bench: Bench) -> Bench:
    """Three runs of three versions, with a target that fails, a question nobody can answer, and nothing retrieved."""
    for version, kept in (("v1", 3), ("v2", 1), ("v3", 2)):
        rows = [
            item(1, *FACTS[:kept], NOISE, metadata={"lang": "de"}),
            item(2, NOISE, *FACTS[:kept], metadata={"lang": "en"}),
            item(3, metadata={"lang": "de"}),
            item(4, NOISE, FACTS[kept - 1], metadata={"lang": "en"}),
            item(5, *FACTS, input="raise please"),
            item(6, NOISE, answerable=False),
            item(7, *FACTS, claims=list(FACTS[:2]), metadata={"lang": "de"}),
        ]
        bench.run(rows, version=version, scorers=SCORERS)
    return bench


@pytest.fixture
def page(runs: Bench) -> Page:
    return Page(render(contents_of(runs.history, runs.history.run("last"))))


def test_means_counts_and_coverage_are_those_of_score_history(runs: Bench, page: Page) -> None:
    found = summaries(runs.history, runs.history.run("last").run_id)
    assert {each.scorer for each in found} == {"context_recall", "precision10"}
    for each in found:
        assert each.mean_exact is not None
        assert each.coverage is not None
        assert page.cells[each.scorer, "mean"] == mean_shown(each.mean_exact, each.scale).split()[0]
        assert page.cells[each.scorer, "n"] == str(each.n)
        assert page.cells[each.scorer, "coverage"] == coverage_shown(each.coverage)
        for status, count in each.by_status.items():
            assert f"{count} {status.value.replace('_', ' ')}" in page.text


@pytest.mark.parametrize("by", ["run", "version", "day"])
def test_the_numbers_under_a_chart_are_those_of_the_trend(runs: Bench, page: Page, by: By) -> None:
    for trend in trends(runs.history, by=by):
        _, *rows = page.table(data_trend=trend.scorer, data_by=by).rows
        assert len(rows) == len(trend.points) == (1 if by == "day" else 3)
        for row, point in zip(rows, trend.points, strict=True):
            assert point.mean is not None
            assert point.coverage is not None
            change = "" if point.change is None else f"{point.change:+.2f}".replace("-", "−")
            assert row[:6] == [
                point.label,
                f"{point.started_at:%Y-%m-%d}",
                f"{point.mean:.2f}",
                change,
                str(point.n),
                coverage_shown(point.coverage),
            ]


def test_the_list_shows_the_score_or_the_status_of_each_item(runs: Bench, page: Page) -> None:
    scores = {(s.item_id, s.scorer): s for s in item_scores(runs.history, "last")}
    head, *rows = page.table(**{"class": "items"}).rows
    assert head == ["item", "context recall", "precision10", "missing"]
    assert len(rows) == 7
    for name, *cells in rows:
        item_id = name.split()[0]
        for scorer, cell in zip(("context_recall", "precision10"), cells, strict=False):
            score = scores[item_id, scorer]
            word = score.status.value.replace("_", " ")
            if score.score is None:
                assert cell == word
            else:
                assert cell == (f"{score.score:.2f}" if word == "ok" else f"{score.score:.2f} {word}")
    assert rows[0][0].startswith("q5"), "what failed is looked at first"
    assert rows[-1][0].startswith("q6")


def test_each_item_holds_what_the_history_holds(runs: Bench, page: Page) -> None:
    run = runs.history.run("last")
    assert len(page.items) == 7
    for item_id, shown in page.items.items():
        detail = item_detail(runs.history, run.run_id, item_id)
        assert page.said(shown["q"]) == detail.item.input
        assert page.said(shown["ref"]) == detail.item.reference
        assert page.said(shown["out"]) == detail.response.output
        assert page.said(shown["err"]) == detail.response.error
        assert shown["ans"] == detail.item.answerable
        assert shown["ms"] == detail.response.latency_ms
        assert shown["meta"] == detail.item.metadata
        for name, held in shown["sets"].items():
            contexts = detail.context_sets[name].contexts
            assert [(page.said(each[0]), each[1], each[2]) for each in held] == [
                (each.text, each.id, each.score) for each in contexts
            ]
        assert {each["n"] for each in shown["s"]} == {score.scorer for score in detail.scores}
        by_name = {score.scorer: score for score in detail.scores}
        for each in shown["s"]:
            score = by_name[each["n"]]
            assert each["v"] == score.value
            assert each["x"] == (None if score.exact is None else round(float(score.exact), 6))
            assert each["st"] == score.status.value
            assert page.said(each["why"]) == score.reason
            assert each["cost"] == score.usage.cost_usd
            assert each["set"] == score.context_set
            assert len(each["f"]) == len(score.findings)
            for found, finding in zip(each["f"], score.findings, strict=True):
                assert (found["k"], found["r"], found["p"]) == (finding.kind, finding.rank, finding.positive)
                assert page.said(found["why"]) == finding.why
                assert found["src"] == list(finding.sources)
                assert found["quo"] == list(finding.quotes)
                assert found["ok"] == finding.verified
                if finding.kind != "context":
                    assert page.said(found["t"]) == finding.text


def test_the_scores_over_time_are_those_of_item_history(runs: Bench, page: Page) -> None:
    places = [run["id"] for run in page.data["time"]["runs"]]
    assert len(places) == 3
    found = select(runs.history.path, "SELECT item_id, scorer, run_id, exact FROM item_history WHERE exact IS NOT NULL")
    assert len(found.rows) > 20
    for item_id, scorer, run_id, exact in found.rows:
        assert page.data["time"]["of"][item_id][scorer][places.index(run_id)] == pytest.approx(exact, abs=5e-5)
    held = [v for of in page.data["time"]["of"].values() for line in of.values() for v in line if v is not None]
    assert len(held) == len(found.rows)


def test_the_comparison_is_that_of_compare(runs: Bench, page: Page) -> None:
    after, before, *_ = runs.history.runs()
    compared = compare_runs(runs.history, before, after)
    for each in compared.scorers:
        scale = as_fraction(each.scale)
        assert each.before is not None
        assert each.after is not None
        assert f"{rounded(each.before, scale):.2f} to {rounded(each.after, scale):.2f}" in page.text
        for pair in [*each.worse, *each.better]:
            assert pair.before.exact is not None
            assert pair.after.exact is not None
            step = (
                f"{rounded(pair.before.exact, scale):.2f} → {rounded(pair.after.exact, scale):.2f} {pair.after.item_id}"
            )
            assert step in page.text
            assert all(claim in page.text for claim in [*pair.lost, *pair.won])
    changed = {pair.after.item_id for each in compared.scorers for pair in each.pairs if pair.change}
    assert changed == {item_id for item_id, shown in page.items.items() if shown["change"]}


def test_slices_are_means_over_the_scores_that_count(runs: Bench, page: Page) -> None:
    german = select(
        runs.history.path,
        "SELECT avg(s.exact), count(*) FROM latest_scores AS s JOIN latest_items AS i USING (run_id, item_id)"
        " WHERE s.run_id = ? AND s.scorer = 'context_recall' AND s.counted AND s.exact IS NOT NULL"
        " AND json_extract_string(i.metadata, '$.lang') = 'de'",
        [runs.history.run("last").run_id],
    ).rows[0]
    rows = [row for table in page.tables if table.attributes.get("class") == "slices" for row in table.rows]
    (row,) = [row for row in rows if row[0] == "lang = de" and "→" not in row[1]]
    assert float(row[1]) == pytest.approx(german[0], abs=0.0051)
    assert row[2] == str(german[1])
