"""Two runs, item by item: what is paired, what is left out and said so, and what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any
from xml.etree import ElementTree

import pytest

from ragscore.errors import UsageError
from ragscore.gate import Move, Verdict
from ragscore.history import select
from ragscore.judges.scripted import ScriptedJudge
from ragscore.report.comparison import Comparison, ScorerComparison, compare_runs, keep_comparison
from ragscore.report.comparison_formats import as_junit, as_markdown, moved

from .conftest import Bench, Row
from .rows import FACTS, NOISE, item

RECALL, PRECISION = "context_recall", "context_precision"


def compared(bench: Bench, before: Sequence[Row], after: Sequence[Row], **suite: Any) -> Comparison:
    first = bench.run(before, version="v1", **suite)
    return compare_runs(bench.history, first, bench.run(after, version="v2", **suite))


def of(comparison: Comparison, name: str = RECALL) -> ScorerComparison:
    (found,) = (each for each in comparison.scorers if each.scorer == name)
    return found


def refusal(bench: Bench, before: dict[str, Any], after: dict[str, Any]) -> str:
    first = bench.run([item(1, *FACTS)], version="v1", **before)
    second = bench.run([item(1, *FACTS)], version="v2", **after)
    with pytest.raises(UsageError) as caught:
        compare_runs(bench.history, first, second)
    return str(caught.value)


def test_items_are_paired_exactly_although_their_contexts_differ(bench: Bench) -> None:
    before = [item(1, *FACTS), item(2, *FACTS), item(3, FACTS[0])]
    after = [item(1, *FACTS[:2]), item(2, *FACTS), item(3, NOISE, FACTS[0])]
    comparison = compared(bench, before, after)
    recall, precision = of(comparison), of(comparison, PRECISION)
    assert [(pair.after.item_id, pair.change) for pair in recall.pairs] == [
        ("q1", Fraction(-1, 3)),
        ("q2", Fraction(0)),
        ("q3", Fraction(0)),
    ]
    assert (recall.before, recall.after) == (Fraction(7, 9), Fraction(2, 3))
    assert [pair.after.item_id for pair in recall.worse] == ["q1"]
    assert (recall.better, recall.one_sided, recall.changed) == ([], [], [])
    assert [(pair.after.item_id, pair.change) for pair in precision.worse] == [("q3", Fraction(-1, 2))]


def test_facts_that_were_lost_and_won_are_named(bench: Bench) -> None:
    (pair,) = of(compared(bench, [item(1, FACTS[0], FACTS[1])], [item(1, FACTS[2], FACTS[1])])).pairs
    assert (pair.lost, pair.won) == ([FACTS[0]], [FACTS[2]])
    assert pair.change == 0


def test_a_side_that_retrieved_nothing_has_lost_all_facts(bench: Bench) -> None:
    (pair,) = of(compared(bench, [item(1, *FACTS)], [item(1)])).pairs
    assert pair.lost == list(FACTS)
    assert pair.change == -1


def test_the_largest_drop_and_the_largest_rise_come_first(bench: Bench) -> None:
    before = [item(1, *FACTS), item(2, *FACTS), item(3), item(4)]
    after = [item(1, *FACTS[:2]), item(2, FACTS[0]), item(3, FACTS[0]), item(4, *FACTS)]
    recall = of(compared(bench, before, after))
    assert [pair.after.item_id for pair in recall.worse] == ["q2", "q1"]
    assert [pair.after.item_id for pair in recall.better] == ["q4", "q3"]


def test_items_that_one_run_only_scored_are_listed_and_move_no_mean(bench: Bench) -> None:
    before = [item(1, *FACTS), item("fails before", *FACTS), item("gone", NOISE), item("new", answerable=False)]
    before[1]["contexts"] = None  # an item whose contexts cannot be had is not scored
    after = [item(1, *FACTS), item("fails before", NOISE), item("new", *FACTS), item("later", NOISE)]
    recall = of(compared(bench, before, after))
    assert [pair.after.item_id for pair in recall.pairs] == ["q1"]
    assert (recall.before, recall.after) == (Fraction(1), Fraction(1))
    assert sorted(recall.one_sided) == ["qfails before", "qnew"]
    assert (recall.came, recall.went) == (["qlater"], ["qgone"])


def test_items_that_neither_run_scored_are_not_listed(bench: Bench) -> None:
    rows = [item(1, *FACTS), item(2, NOISE, answerable=False), {**item(3), "contexts": None}]
    recall = of(compared(bench, rows, rows))
    assert [pair.after.item_id for pair in recall.pairs] == ["q1"]
    assert recall.one_sided == []


def test_items_that_do_not_count_in_means_are_not_paired(bench: Bench) -> None:
    rows = [item(1, *FACTS), item(2, NOISE, reference=None)]
    assert len(of(compared(bench, rows, rows, scorers=[RECALL])).pairs) == 2
    excluded = compared(bench, rows, rows, scorers=[RECALL], missing_reference="exclude")
    assert [pair.after.item_id for pair in of(excluded).pairs] == ["q1"]


@pytest.mark.parametrize(
    "change", [{"input": "What else?"}, {"reference": FACTS[0]}, {"reference": None}, {"claims": [FACTS[0]]}], ids=str
)
def test_an_item_whose_question_reference_or_claims_changed_is_listed_and_not_compared(
    bench: Bench, change: dict[str, Any]
) -> None:
    before = [item(1, *FACTS), item(2, *FACTS)]
    recall = of(compared(bench, before, [item(1, *FACTS), item(2, FACTS[0], **change)]))
    assert [pair.after.item_id for pair in recall.pairs] == ["q1"]
    assert recall.changed == ["q2"]


@pytest.mark.parametrize("change", [{"metadata": {"lang": "en"}}, {"output": "said"}, {"reference_context_ids": ["x"]}])
def test_other_columns_may_change(bench: Bench, change: dict[str, Any]) -> None:
    assert of(compared(bench, [item(1, *FACTS)], [item(1, *FACTS, **change)])).changed == []


def test_runs_that_share_too_few_items_are_refused_and_forced_have_no_mean(bench: Bench) -> None:
    first = bench.run([item(1, *FACTS)], version="v1")
    second = bench.run([item(2, *FACTS)], version="v2")
    with pytest.raises(UsageError, match="they share 0 of 1 items"):
        compare_runs(bench.history, first, second)
    forced = compare_runs(bench.history, first, second, force=True)
    assert forced.unlike == ["they share 0 of 1 items"]
    recall = of(forced)
    assert (recall.pairs, recall.before, recall.after) == ([], None, None)
    assert (recall.came, recall.went) == (["q2"], ["q1"])
    assert forced.answers[RECALL].verdict is Verdict.INCONCLUSIVE


def test_a_dataset_may_grow(bench: Bench) -> None:
    more = [item(number, *FACTS) for number in range(9)]
    recall = of(compared(bench, more[:3], more))
    assert (len(recall.pairs), len(recall.came)) == (3, 6)


def test_useful_contexts_that_moved_are_told_with_their_ranks(bench: Bench) -> None:
    before, after = item(1, FACTS[0], NOISE, FACTS[1]), item(1, NOISE, FACTS[0], FACTS[2])
    (pair,) = of(compared(bench, [before], [after]), PRECISION).pairs
    assert list(pair.moves) == [Move(FACTS[0], 1, 2), Move(FACTS[1], 3, None), Move(FACTS[2], None, 3)]
    assert [moved(move) for move in pair.moves] == ["#1 → #2", "#3 → gone", "new at #3"]


def test_scorers_that_only_one_run_has_are_left_out(bench: Bench) -> None:
    first = bench.run([item(1, *FACTS)], version="v1", scorers=[RECALL, PRECISION])
    second = bench.run([item(1, *FACTS)], version="v2", scorers=[PRECISION])
    comparison = compare_runs(bench.history, first, second)
    assert [each.scorer for each in comparison.scorers] == [PRECISION]


def test_another_scale_is_compared_exactly_and_shown_in_the_later_one(bench: Bench) -> None:
    first = bench.run([item(1, *FACTS)], version="v1", scorers=[RECALL])
    second = bench.run([item(1, *FACTS[:2])], version="v2", scorers=[{RECALL: {"scale": 10}}])
    recall = of(compare_runs(bench.history, first, second))
    assert (recall.scale, recall.pairs[0].change) == (10, Fraction(-1, 3))


def test_runs_of_unlike_judges_are_refused(bench: Bench) -> None:
    said = refusal(bench, {}, {"judge": ScriptedJudge(default=True)})
    assert said == (
        "the runs cannot be compared: their judge differs (offline-lexical-1, scripted) — judge both runs the same way,"
        " or compare them all the same with --force"
    )


def test_forced_runs_are_compared_and_marked(bench: Bench) -> None:
    first = bench.run([item(1, *FACTS)], version="v1")
    second = bench.run([item(1, *FACTS)], version="v2", judge=ScriptedJudge(default=True))
    forced = compare_runs(bench.history, first, second, force=True)
    assert forced.as_dict()["forced"] is True
    assert "compared by force: their judge differs" in as_markdown(forced)
    keep_comparison(bench.history, forced)
    rows = select(bench.history.path, "select distinct forced, baseline_run_id, run_id from comparisons").rows
    assert rows == [(True, first.run_id, second.run_id)]


def test_an_item_that_fails_on_one_side_makes_no_improvement(bench: Bench) -> None:
    easy = [item(number, *FACTS) for number in range(9)]
    hard = item("hard", NOISE)
    failed = {**hard, "contexts": None}
    recall = of(compared(bench, [*easy, hard], [*easy, failed]))
    assert (recall.before, recall.after) == (Fraction(1), Fraction(1))
    assert recall.one_sided == ["qhard"]


def test_the_same_comparison_is_kept_once_with_its_figures(bench: Bench) -> None:
    rows = [item(number, *FACTS) for number in range(8)]
    comparison = compared(bench, rows, [item(number, NOISE) for number in range(8)], scorers=[RECALL])
    keep_comparison(bench.history, comparison)
    keep_comparison(bench.history, comparison)
    query = "select scorer, n, mean_before, mean_after, difference, low, high, verdict, forced from comparisons"
    assert select(bench.history.path, query).rows == [(RECALL, 8, 1.0, 0.0, -1.0, -1.0, -1.0, "fail", False)]


def test_the_tolerated_drop_is_what_the_later_suite_declares_or_what_is_given(bench: Bench) -> None:
    before = [item(number, *FACTS) for number in range(20)]
    after = [item(number, *FACTS[: 2 if number < 9 else 3]) for number in range(20)]
    first = bench.run(before, version="v1", scorers=[RECALL])
    second = bench.run(after, version="v2", scorers=[RECALL], gate={RECALL: {"max_drop": 0.5}})
    assert compare_runs(bench.history, first, second).answers[RECALL].verdict is Verdict.PASS
    strict = compare_runs(bench.history, first, second, max_drop={})
    assert strict.answers[RECALL].verdict is Verdict.FAIL


def test_markdown_escapes_what_comes_from_outside(bench: Bench) -> None:
    text = "<script>alert(1)</script> @everyone | **bold** [x](http://e.vil)"
    before = [item(number, *FACTS, input=f"{text} {number}?") for number in range(2)]
    said = as_markdown(compared(bench, before, [{**row, "contexts": [NOISE]} for row in before]))
    assert "<script>" not in said
    assert "@everyone" not in said
    assert "\\*\\*bold" in said
    assert "| context\\_recall | ❔ inconclusive | 2 | 1.00 | 0.00 | -1.000 | unknown |" in said


def test_junit_has_a_case_per_scorer_and_survives_any_text(bench: Bench) -> None:
    rows = [item(number, *FACTS, input=f"what \x0b\x00 <&> {number}?") for number in range(8)]
    comparison = compared(bench, rows, [{**row, "contexts": [NOISE]} for row in rows])
    suite = ElementTree.fromstring(as_junit(comparison).encode())
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("2", "2", "0")
    assert [case.get("name") for case in suite.iter("testcase")] == [f"{name} v1 → v2" for name in (RECALL, PRECISION)]


@pytest.mark.parametrize(
    ("before", "after", "what"),
    [
        ({"scorers": [PRECISION]}, {"scorers": [{PRECISION: {"against": "output"}}]}, "expected answer"),
        ({"duplicates": "count"}, {"duplicates": "once"}, "treatment of repeated contexts differs (count, once)"),
        (
            {"scorers": [{RECALL: {"name": "quality"}}]},
            {"scorers": [{PRECISION: {"name": "quality"}}]},
            "kind of scorer called quality differs (context_recall, context_precision)",
        ),
        (
            {"scorers": [{"recall_at_k": {"k": 4}}]},
            {"scorers": [{"recall_at_k": {"k": 1}}]},
            "way of counting recall_at_k differs (k: 4, k: 1)",
        ),
        ({"scorers": ["hit_rate"]}, {"scorers": [{"hit_rate": {"k": 1}}]}, "(as it is usual, k: 1)"),
        (
            {"scorers": ["answer_correctness"]},
            {"scorers": [{"answer_correctness": {"measure": "f1"}}]},
            'way of counting answer_correctness differs (measure: "precision", measure: "f1")',
        ),
        (
            {"scorers": ["context_relevance"]},
            {"scorers": [{"context_relevance": {"weights": {"low": 0.5}}}]},
            "way of counting context_relevance differs",
        ),
    ],
)
def test_runs_that_were_scored_in_unlike_ways_are_refused(
    bench: Bench, before: dict[str, Any], after: dict[str, Any], what: str
) -> None:
    assert what in refusal(bench, before, after)


def test_a_setting_that_is_written_out_is_the_same_as_left_out(bench: Bench) -> None:
    first = bench.run([item(1, *FACTS)], version="v1", scorers=["answer_correctness", "context_relevance"])
    same = [{"answer_correctness": {"measure": "precision"}}, {"context_relevance": {"unused": 0.1, "weights": {}}}]
    second = bench.run([item(1, *FACTS)], version="v2", scorers=same)
    assert compare_runs(bench.history, first, second).unlike == []


def test_runs_without_a_common_scorer_are_refused(bench: Bench) -> None:
    said = refusal(bench, {"scorers": [RECALL]}, {"scorers": [PRECISION]})
    assert said.startswith("the runs cannot be compared: they have no scorer in common — ")


def test_items_that_no_judge_saw_do_not_make_runs_unlike(bench: Bench) -> None:
    first = bench.run([item(1, *FACTS), item(2)], version="v1")
    second = bench.run([item(1, *FACTS), item(2, *FACTS)], version="v2")
    assert len(of(compare_runs(bench.history, first, second)).pairs) == 2
