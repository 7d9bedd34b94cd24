"""Every number in a report is the history's, cell by cell."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ragscore.gate import said_of
from ragscore.history import item_detail, item_scores, select, summaries
from ragscore.history.trends import By, trends
from ragscore.report.comparison import compare_runs
from ragscore.report.html import contents_of, render
from ragscore.report.html.intervals import mean_intervals
from ragscore.report.summary import coverage_shown, mean_shown
from ragscore.scorers import rounded
from ragscore.scorers.arithmetic import as_fraction
from ragscore.scorers.reasons import shortened
from tests.history.example import example
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
            assert row == [
                point.label,
                f"{point.started_at:%Y-%m-%d}",
                f"{point.mean:.2f}",
                change,
                str(point.n),
                coverage_shown(point.coverage),
                point.gate_verdict or "",
                point.judge,
            ]


def test_the_list_shows_the_score_or_the_status_of_each_item(runs: Bench, page: Page) -> None:
    scores = {(s.item_id, s.scorer): s for s in item_scores(runs.history, "last")}
    head, *rows = page.table(**{"class": "items"}).rows
    assert head == ["item", "context recall", "precision10", "missing"]
    assert len(rows) == 7
    missing = select(
        runs.history.path,
        "SELECT item_id, count(DISTINCT text) FROM latest_verdicts WHERE run_id = ? AND kind = 'claim' AND NOT positive"
        " GROUP BY item_id",
        [runs.history.run("last").run_id],
    ).rows
    for name, *cells in rows:
        item_id = name.split()[0]
        assert cells[2] == str(dict(missing).get(item_id, ""))
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


def test_the_overview_shows_intervals_changes_coverage_and_cost_of_the_history(runs: Bench, page: Page) -> None:
    after, before, *_ = runs.history.runs()
    earlier = {each.scorer: each for each in summaries(runs.history, before.run_id)}
    spans = mean_intervals(runs.history, [after.run_id])
    for each in summaries(runs.history, after.run_id):
        scorer = each.scorer
        was = earlier[scorer].mean
        assert each.mean is not None
        assert each.mean_exact is not None
        assert each.coverage is not None
        assert was is not None
        mean = mean_shown(each.mean_exact, each.scale).split()[0]
        assert page.cells[scorer, "now"] == page.cells[scorer, "mean"] == mean
        change = f"{each.mean - was:+.2f}".replace("-", "−")
        assert f"{mean} " in page.text_of("overview", scorer)
        assert page.cells[scorer, "change"].split()[-1] == change
        span = spans[after.run_id, scorer]
        interval = "too few items" if span is None else f"{span.low * each.scale:.2f} to {span.high * each.scale:.2f}"
        assert page.facts["overview", scorer, "95 % interval"] == page.facts["run", scorer, "95 % interval"] == interval
        covered = f"{coverage_shown(each.coverage)} ({each.scored} of {each.eligible})"
        assert page.facts["overview", scorer, "coverage"] == covered
        assert page.facts["overview", scorer, "judge cost"] == f"$0.00 ({each.calls} calls)"
        assert f"baseline {was:.2f}" in page.text_of("overview", scorer)


def test_the_run_shows_how_scores_are_spread_and_what_it_took(runs: Bench, page: Page) -> None:
    run = runs.history.run("last")
    for scorer, scale in (("context_recall", 1), ("precision10", 10)):
        counted = select(
            runs.history.path,
            "SELECT least(9, floor(exact * 10)::INTEGER) AS bin, count(*) FROM latest_scores"
            " WHERE run_id = ? AND scorer = ? AND exact IS NOT NULL GROUP BY bin",
            [run.run_id, scorer],
        ).rows
        counts = dict(counted)
        assert sum(counts.values()) >= 5
        for place in range(10):
            label = f"{place / 10 * scale:g}–{(place + 1) / 10 * scale:g}"
            assert f"{label}: {counts.get(place, 0)}" in page.text_of("run", scorer)
    ((p50, p95, items),) = select(
        runs.history.path,
        "SELECT median(latency_ms), quantile_cont(latency_ms, 0.95), count(*) FROM latest_items WHERE run_id = ?",
        [run.run_id],
    ).rows
    assert page.facts["run", "", "items"] == str(items) == "7"
    assert page.facts["run", "", "target, half of the items within"] == f"{p50:.0f} ms"
    assert page.facts["run", "", "target, 95 % within"] == f"{p95:.0f} ms"
    assert page.facts["run", "", "judge calls"] == "0 and 0 remembered"
    assert page.facts["run", "", "not answerable"].startswith("1 ")
    assert page.facts["run", "", "dataset"] == run.dataset
    slowest = select(
        runs.history.path,
        "SELECT item_id, latency_ms FROM latest_items WHERE run_id = ? AND latency_ms IS NOT NULL"
        " ORDER BY latency_ms DESC LIMIT 5",
        [run.run_id],
    ).rows
    listed = re.findall(r"(q\d+) (\d+) ms", page.text_of("run").partition("Slowest")[2])
    assert [int(ms) for _, ms in listed] == [round(ms) for _, ms in slowest]
    assert all(round(page.items[item_id]["ms"]) == int(ms) for item_id, ms in listed)


def test_useful_contexts_that_moved_are_those_of_compare(runs: Bench, page: Page) -> None:
    after, before, *_ = runs.history.runs()
    compared = compare_runs(runs.history, before, after)
    expected = [
        [
            [shortened(move.text, 110), *("–" if rank is None else f"#{rank}" for rank in (move.before, move.after))]
            for move in pair.moves
        ]
        for each in compared.scorers
        for pair in [*each.worse, *each.better]
        if pair.moves
    ]
    shown = [each.rows[1:] for each in page.tables if each.attributes.get("class") == "moves"]
    assert shown == expected
    assert shown
    for each in compared.scorers:
        told = page.text_of("compare", each.scorer)
        same = len(each.pairs) - len(each.worse) - len(each.better)
        assert f"▼ {len(each.worse)} worse = {same} the same ▲ {len(each.better)} better" in told
        assert said_of(compared.answers[each.scorer], each.scale) in told


@pytest.mark.parametrize("compared", [False, True])
def test_slices_are_means_over_the_scores_that_count(runs: Bench, page: Page, compared: bool) -> None:
    after, before, *_ = runs.history.runs()
    found = select(
        runs.history.path,
        "SELECT json_extract_string(i.metadata, '$.lang') AS lang, s.scorer, avg(s.exact * s.scale), count(*),"
        " avg(b.exact * b.scale)"
        " FROM latest_scores AS s JOIN latest_items AS i USING (run_id, item_id)"
        " LEFT JOIN latest_scores AS b ON b.run_id = ? AND b.item_id = s.item_id AND b.scorer = s.scorer"
        " WHERE s.run_id = ? AND s.counted AND s.exact IS NOT NULL AND lang IS NOT NULL GROUP BY ALL",
        [before.run_id, after.run_id],
    ).rows
    means = {(lang, scorer): row for lang, scorer, *row in found}
    assert {lang for lang, _ in means} == {"de", "en"}
    tables = [table for table in page.tables if table.attributes.get("class") == "slices"]
    _, *rows = tables[1 if compared else 0].rows
    assert [row[0] for row in rows] == ["lang = de", "lang = en"]
    for name, *cells in rows:
        for place, scorer in enumerate(("context_recall", "precision10")):
            now, count, was = means[name.removeprefix("lang = "), scorer]
            shown = [float(each) for each in cells[2 * place].split(" → ")]
            assert shown == pytest.approx([was, now] if compared else [now], abs=0.0051)
            assert cells[2 * place + 1] == str(count)


def test_the_judges_figures_are_those_of_calibrations_noise_and_spend(tmp_path: Path) -> None:
    history = example(tmp_path / "history.duckdb")
    page = Page(render(contents_of(history, history.run("last"))))
    ((accuracy, kappa, mcc, n),) = select(
        history.path, "SELECT balanced_accuracy, kappa, mcc, n FROM calibrations"
    ).rows
    assert page.facts["judge", "", "balanced accuracy"] == f"{accuracy:.3f}"
    assert page.facts["judge", "", "Cohen's kappa"] == f"{kappa:.3f}"
    assert mcc is None
    assert page.facts["judge", "", "MCC"] == "–"
    assert f"{n} verdicts" in page.text_of("judge")
    (noise,) = [table.rows for table in page.tables if "verdicts that flip" in table.rows[0]]
    rows = select(history.path, "SELECT scorer, flip_rate, floor, repeats FROM noise").rows
    assert noise[1:] == [[scorer.replace("_", " "), f"{f:.1%}", f"{d:.3f}", str(r)] for scorer, f, d, r in rows]
    (spend,) = [table.rows for table in page.tables if "day (UTC)" in table.rows[0]]
    rows = select(
        history.path,
        "SELECT day, model, calls, failed, prompt_tokens, completion_tokens, cost_usd, known_cost_usd FROM judge_spend"
        " ORDER BY day DESC, model",
    ).rows
    assert len(rows) == 4
    for shown, (day, model, calls, failed, prompt, completion, cost, known) in zip(spend[1:], rows, strict=True):
        tokens = ["unknown" if each is None else f"{each:,}" for each in (prompt, completion)]
        paid = f"${cost:.4f}" if cost is not None else f"unknown (${known:.4f} known)"
        assert shown == [str(day), model, str(calls), str(failed), *tokens, paid]
    for each in summaries(history, history.run("last").run_id):
        cost = "unknown" if each.cost_usd is None else f"${each.cost_usd:.4f}" if each.cost_usd else "$0.00"
        assert page.facts["overview", each.scorer, "judge cost"] == f"{cost} ({each.calls} calls)"
    known = "task, outcome, model, mode, prompt_tokens, completion_tokens, cost_usd, latency_ms"
    for item_id, own in page.items.items():
        for score in own["s"]:
            calls = select(
                history.path,
                f"SELECT {known} FROM judge_calls WHERE run_id = ? AND item_id = ? AND scorer = ? ORDER BY number",
                [history.run("last").run_id, item_id, score["n"]],
            ).rows
            assert [tuple(call[name] for name in known.split(", ")) for call in score["calls"]] == calls
