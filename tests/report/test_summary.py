"""What a summary says of a run: faults, advice, worst items, and figures that are what the exact ones are."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragscore.items import Status
from ragscore.judges.scripted import ScriptedJudge
from ragscore.report.summary import RunSummary, coverage_shown, mean_shown, summary_of
from ragscore.scorers import band, mean, rounded

from .conftest import Bench
from .rows import FACTS, NOISE, item

TWICE = [
    "context_recall",
    {"context_recall": {"name": "recall10", "scale": 10}},
    "context_precision",
    {"context_precision": {"name": "precision10", "scale": 10}},
]


def summary(bench: Bench, *rows: dict[str, object], **suite: object) -> RunSummary:
    return summary_of(bench.history, bench.run(rows, **suite))  # type: ignore[arg-type]


def test_a_run_in_which_all_is_scored_has_no_fault(bench: Bench) -> None:
    made = summary(bench, item(1, *FACTS), item(2, NOISE))
    assert made.faults == []
    assert [(each.scorer, each.mean, each.n, each.coverage) for each in made.scorers] == [
        ("context_recall", 0.5, 2, 1.0),
        ("context_precision", 0.5, 2, 1.0),
    ]


def failing(of: int) -> list[dict[str, object]]:
    """So many items, the first of which makes the target fail."""
    return [item(0, *FACTS, input="raise, please"), *(item(number, *FACTS) for number in range(1, of))]


def test_coverage_below_the_floor_is_one_line_with_the_first_reason_and_at_the_floor_it_is_none(bench: Bench) -> None:
    assert summary(bench, *failing(20), version="v20").faults == []
    assert summary(bench, *failing(19), version="v19").faults == [
        "coverage of context_recall and context_precision 0.947 is below 0.95: 1 target_error; "
        "first: q0: the target failed: ValueError: no index for this one"
    ]
    assert summary(bench, *failing(19), version="v19a", gate={"coverage": 0.9}).faults == []


def test_each_scorer_has_its_own_coverage(bench: Bench) -> None:
    judge = ScriptedJudge(default=True, failing={"rate_contexts": Status.JUDGE_ERROR})
    (fault,) = summary(bench, item(1, *FACTS), judge=judge).faults
    assert fault.startswith("coverage of context_precision 0.00 is below 0.95: 1 judge_error; first: q1: ")


def test_items_without_contexts_are_named_where_they_have_no_score(bench: Bench) -> None:
    rows = [item(1, *FACTS, output=FACTS[0]), item(2, output=FACTS[0])]
    assert summary(bench, *rows, scorers=["context_recall", "noise_sensitivity"]).faults == [
        "coverage of noise_sensitivity 0.50 is below 0.95: 1 no_context; first: q2: no context was retrieved"
    ]


def test_items_that_are_zero_by_definition_or_not_answerable_do_not_lower_coverage(bench: Bench) -> None:
    made = summary(
        bench,
        item(1, *FACTS),
        item("no reference", *FACTS, reference=None),
        item("no context"),
        item("unanswerable", NOISE, reference=None, answerable=False),
    )
    assert made.faults == []
    recall = made.scorers[0]
    assert (recall.coverage, recall.eligible, recall.n) == (1.0, 3, 3)
    assert recall.mean_exact == pytest.approx(1 / 3)
    assert {status: count for status, count in recall.by_status.items() if status is not Status.OK} == {
        Status.UNANSWERABLE: 1,
        Status.NO_REFERENCE: 1,
        Status.NO_CONTEXT: 1,
    }


@pytest.mark.parametrize("status", ["failed", "cancelled"])
def test_a_run_that_did_not_end_well_says_why_in_one_line(bench: Bench, status: str) -> None:
    row = bench.run([item(1, *FACTS)], end=lambda h, run: h.finish_run(run, status=status, error="gone\nfor good"))
    assert summary_of(bench.history, row).faults == [f"the run is {status}: gone for good"]


def test_a_run_that_was_stopped_when_all_was_in_flight_says_that_nothing_is_left(bench: Bench) -> None:
    row = bench.run([item(1, *FACTS)], end=lambda h, run: h.finish_run(run, status="cancelled"))
    said = "the run is cancelled: all items are done, but it was stopped before it ended"
    assert summary_of(bench.history, row).faults == [said]


def test_a_run_that_lacks_rows_is_a_fault(bench: Bench) -> None:
    from ragscore.assembly import assemble
    from ragscore.runs import begin
    from ragscore.suite_file import check_suite

    complete = bench.run([item(1, *FACTS)])
    parts = assemble(check_suite(complete.suite_doc, base_dir=bench.folder))
    run = begin(parts, bench.history)
    bench.history.finish_run(run.run_id, status="complete")
    (fault,) = summary_of(bench.history, bench.history.run(run.run_id)).faults
    assert fault.startswith("the run is incomplete")


@pytest.mark.parametrize(("lacking", "advised"), [(2, False), (3, True)])
@pytest.mark.parametrize("scorers", [["context_recall"], TWICE], ids=["one scorer", "two scorers"])
def test_a_fact_that_is_missing_in_three_items_is_named_once_however_many_scorers_looked(
    bench: Bench, lacking: int, advised: bool, scorers: list[object]
) -> None:
    rows = [item(number, *FACTS[:2]) for number in range(lacking)] + [item(9, *FACTS)]
    advice = [line for line in summary(bench, *rows, scorers=scorers).advice if "fact" in line]
    assert advice == ([f"one fact is missing in 3 items: “{FACTS[2]}” — is it in the index?"] if advised else [])


def test_a_fact_is_one_however_its_white_space_is_written(bench: Bench) -> None:
    spellings = ["The  keeper sold lamps.", "The keeper\u00a0sold lamps. ", "\u2003The keeper sold\tlamps."]
    rows = [item(number, NOISE, claims=[text]) for number, text in enumerate(spellings)]
    assert any("The keeper sold lamps." in line for line in summary(bench, *rows, scorers=["context_recall"]).advice)


def test_a_fact_that_was_never_decided_is_not_called_missing(bench: Bench) -> None:
    judge = ScriptedJudge(supported=lambda text, task: None, relevant=lambda text, task: True)
    made = summary(bench, *(item(number, *FACTS) for number in range(4)), judge=judge)
    assert made.advice == []
    assert made.scorers[0].by_status == {Status.JUDGE_ERROR: 4}
    assert all(worst.missing == [] for worst in made.worst)


LATE, EARLY = (NOISE, *FACTS), (*FACTS, NOISE)


@pytest.mark.parametrize(("late", "of", "advised"), [(2, 2, False), (3, 3, True), (3, 15, True), (3, 16, False)])
@pytest.mark.parametrize("scorers", [["context_precision"], TWICE], ids=["one scorer", "two scorers"])
def test_useful_contexts_behind_useless_ones_are_advice_from_three_items_and_a_fifth_on(
    bench: Bench, late: int, of: int, advised: bool, scorers: list[object]
) -> None:
    rows = [item(number, *(LATE if number < late else EARLY)) for number in range(of)]
    advice = [line for line in summary(bench, *rows, scorers=scorers).advice if "behind useless" in line]
    assert [line.partition(" the first")[0] for line in advice] == ([f"in {late} of {of} items"] if advised else [])


@pytest.mark.parametrize(("useless", "of", "advised"), [(2, 2, False), (3, 3, True), (3, 15, True), (3, 16, False)])
def test_items_without_any_useful_context_are_advice_from_three_items_and_a_fifth_on(
    bench: Bench, useless: int, of: int, advised: bool
) -> None:
    rows = [item(number, *([NOISE] if number < useless else EARLY)) for number in range(of)]
    advice = [line for line in summary(bench, *rows).advice if "no context is useful" in line]
    assert [line.partition(" no context")[0] for line in advice] == ([f"in {useless} of {of} items"] if advised else [])


def unanswerable(number: int, *found: str) -> dict[str, object]:
    return item(number, *found, reference=None, answerable=False)


def test_items_that_cannot_be_answered_have_a_figure_of_their_own(bench: Bench) -> None:
    rows = [unanswerable(1, NOISE), unanswerable(2, NOISE, FACTS[0]), unanswerable(3)]
    judge = ScriptedJudge(relevant={FACTS[0]: True}, default=False)
    assert summary(bench, *rows, version="v1", judge=judge).unanswerable == (2, 3, 3)
    # The offline judge abstains without an expected answer; that nothing was retrieved is known all the same.
    assert summary(bench, *rows, version="v2").unanswerable == (1, 1, 3)
    assert summary(bench, *rows, version="v3", scorers=["context_recall"]).unanswerable == (0, 0, 3)
    assert summary(bench, item(1, *FACTS), version="v4").unanswerable is None


def test_the_worst_items_come_lowest_first_without_full_scores_and_name_what_is_missing(bench: Bench) -> None:
    made = summary(bench, item(1, *FACTS), item(2, *FACTS[:2]), item(3, NOISE), item(4, FACTS[0]), item(5))
    assert [(worst.item_id, worst.missing) for worst in made.worst] == [
        ("q3", list(FACTS)),
        ("q5", []),
        ("q4", list(FACTS[1:])),
    ]
    everything = summary_of(bench.history, made.run, worst=100).worst
    assert [worst.item_id for worst in everything] == ["q3", "q5", "q4", "q2"]


def test_items_that_are_excluded_from_means_are_not_among_the_worst(bench: Bench) -> None:
    rows = [item(1, *FACTS[:2]), item(2, NOISE, reference=None)]
    included = summary(bench, *rows, version="v1", scorers=["context_recall"])
    excluded = summary(bench, *rows, version="v2", scorers=["context_recall"], missing_reference="exclude")
    assert [worst.item_id for worst in included.worst] == ["q2", "q1"]
    assert [worst.item_id for worst in excluded.worst] == ["q1"]
    assert (included.scorers[0].n, excluded.scorers[0].n) == (2, 1)


def test_a_summary_is_json_and_holds_no_nan(bench: Bench) -> None:
    made = summary(bench, *failing(3), item("u", NOISE, reference=None, answerable=False))
    found = json.loads(json.dumps(made.as_dict(), allow_nan=False))
    assert found["scorers"][0]["by_status"] == {"target_error": 1, "unanswerable": 1, "ok": 2}
    assert found["faults"] == list(made.faults)
    assert set(found["latency_ms"]) == {"p50", "p95"}
    assert found["unanswerable"] == {"nothing_relevant": 0, "known": 0, "items": 1}
    assert [each["against"] for each in found["scorers"]] == ["reference", "reference"]


def test_a_run_of_failures_only_has_no_mean_and_no_latency(bench: Bench) -> None:
    made = summary(bench, item(1, *FACTS, input="raise"), item(2, *FACTS, input="raise again"))
    assert [each.mean for each in made.scorers] == [None, None]
    assert (made.latency, made.worst, made.advice) == (None, [], [])


@given(
    st.lists(st.builds(Fraction, st.integers(0, 7), st.just(7)) | st.builds(Fraction, st.integers(0, 20), st.just(20)))
)
def test_a_mean_reads_like_the_exact_one_although_it_comes_as_a_double(values: list[Fraction]) -> None:
    exact = mean(values)
    if exact is None:
        return
    double = sum(float(value) for value in values) / len(values)
    assert mean_shown(double, 10) == f"{rounded(exact, Fraction(10)):.2f} {band(exact)}"


@pytest.mark.parametrize(
    ("share", "shown"),
    [(1.0, "100%"), (0.9999, "99.9%"), (0.95, "95%"), (0.9499, "94.9%"), (2 / 3, "66.6%"), (0.29, "29%"), (0.0, "0%")],
)
def test_coverage_is_rounded_down_so_that_what_is_not_complete_never_reads_so(share: float, shown: str) -> None:
    assert coverage_shown(share) == shown
