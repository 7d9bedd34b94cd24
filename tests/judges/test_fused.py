"""`fused: true` over HTTP through LiteLLM: what it costs, and that it gives the scores of separate judging."""

from __future__ import annotations

from typing import Any

import pytest

from ragscore.gate import evaluate_gate
from ragscore.history import History, RunRow
from ragscore.suite_file import read_suite
from tests.judges.judged_suites import JudgedSuite, port_items

SCORERS = ["context_recall", "context_precision", "context_utilization", "noise_sensitivity"]
#: Requests per item when each scorer asks its own questions: support of the reference's claims (shared by two), each
#: context, what the output says of them; the output's claims, their truth, their support.
SEPARATE = 6


def answered_items(count: int) -> list[dict[str, Any]]:
    """`port_items` with an output of one or two sentences; every fifth adds one that only a useless context says."""
    rows = port_items(count)
    for n, row in enumerate(rows):
        said = [f"The lighthouse of Port {n} was lit in {1700 + n}."] if n % 4 else []
        said += [f"Its keeper sold lamps to ships in {1700 + n}."] if n % 2 else []
        said += [f"Herrings were salted in barrels beside quay {5000 + n}."] if n % 5 == 0 else []
        said += [f"Nobody was ever drowned in bay {9500 + n}."] if not said or n % 7 == 0 else []
        row["output"] = " ".join(said)
    return rows


@pytest.fixture
def both(suite: JudgedSuite) -> tuple[JudgedSuite, RunRow, RunRow, int, int]:
    """A suite judged separately, then fused, with the requests that each took; claims are frozen before."""
    suite.write(answered_items(20), scorers=["context_recall"], target="none")
    suite.run()
    runs, requests = [], []
    for fused in (False, True):
        suite.write(scorers=SCORERS, fused=fused, target="none")
        suite.forget()
        before = suite.requests()
        runs.append(suite.run())
        requests.append(suite.requests() - before - 1)  # one is the probe
    return suite, runs[0], runs[1], requests[0], requests[1]


def test_one_call_an_item_feeds_recall_precision_utilization_and_noise_with_the_same_scores(
    both: tuple[JudgedSuite, RunRow, RunRow, int, int],
) -> None:
    suite, separate, fused, calls_separate, calls_fused = both
    assert (calls_separate, calls_fused) == (SEPARATE * 20 - no_use(suite, separate), 20)
    query = "select item_id, scorer, status, exact_fraction from scores where run_id = '{}' order by 1, 2"
    one, other = (suite.workspace.sql(query.format(run.run_id)) for run in (separate, fused))
    assert len(one) == len(other) == 80
    assert one == other
    noisy = [row for row in other if row[1] == "noise_sensitivity" and row[3] not in ("0/1", None)]
    assert noisy  # there is something to agree on
    assert {row[3] for row in other if row[1] == "context_utilization"} > {"0/1", "1/1"}
    assert suite.workspace.sql(
        f"select distinct prompt_version from scores where run_id = '{fused.run_id}' and status = 'ok'"
    ) == [("cross_claims.v1",)]


def no_use(suite: JudgedSuite, run: RunRow) -> int:
    """Calls that separate judging does without: with nothing found, nobody asks whether the output says it."""
    query = "select count(*) from scores where run_id = '{}' and scorer = 'context_utilization' and status <> 'ok'"
    ((count,),) = suite.workspace.sql(query.format(run.run_id))
    return int(count)


def test_each_call_is_on_one_bill_and_a_second_run_makes_none(
    both: tuple[JudgedSuite, RunRow, RunRow, int, int],
) -> None:
    suite, _, fused, *_ = both
    billed = f"select sum(calls)::bigint from scores where run_id = '{fused.run_id}'"
    assert suite.workspace.sql(billed) == [(20,)]
    before = suite.requests()
    again = suite.run()
    assert suite.requests() == before
    assert suite.scores(again) == suite.scores(fused)


@pytest.mark.parametrize("nothing", [None, "", " \n"])
def test_an_item_without_an_output_is_asked_in_the_same_words_and_keeps_its_recall_and_precision(
    nothing: str | None, suite: JudgedSuite
) -> None:
    rows = answered_items(4)
    suite.write(rows, scorers=SCORERS, fused=True, target="none")
    before = suite.run()
    rows[0]["output"] = nothing
    suite.write(rows, scorers=SCORERS, fused=True, target="none")
    later = suite.run()
    versions = "select distinct prompt_version from scores where scorer in ('context_recall', 'context_precision')"
    assert suite.workspace.sql(versions) == [("cross_claims.v1",)]
    of_item = "select scorer, status, exact_fraction from scores where run_id = '{}' and item_id = 'i000' order by 1"
    was, now = (suite.workspace.sql(of_item.format(run.run_id)) for run in (before, later))
    assert now[:2] == was[:2]
    assert [row[:2] for row in now] == [
        ("context_precision", "ok"),
        ("context_recall", "ok"),
        ("context_utilization", "no_claims"),
        ("noise_sensitivity", "no_claims"),
    ]


def test_one_output_that_is_lost_does_not_keep_a_gate_from_failing(suite: JudgedSuite) -> None:
    rows = answered_items(20)
    gate = {"context_recall": {"max_drop": 0.05}, "baseline": "version:baseline"}
    target = {"none": True, "version": "baseline"}
    suite.write(rows, scorers=["context_recall", "noise_sensitivity"], fused=True, target=target, gate=gate)
    suite.run()
    for row in rows:
        row["contexts"] = ["Berlin is old."]
    rows[3]["output"] = ""
    target["version"] = "later"
    suite.write(rows, scorers=["context_recall", "noise_sensitivity"], fused=True, target=target, gate=gate)
    later = suite.run()
    result = evaluate_gate(History(suite.workspace.history), later, read_suite(suite.workspace.suite).suite)
    assert result.verdict == "fail", result.checks


def test_without_scorers_of_the_output_it_is_not_asked_about(suite: JudgedSuite) -> None:
    suite.write(answered_items(4), scorers=["context_recall", "context_precision"], fused=True, target="none")
    run = suite.run()
    versions = f"select distinct prompt_version from scores where run_id = '{run.run_id}'"
    assert suite.workspace.sql(versions) == [("map_claims.v1",)]


def test_a_small_window_splits_the_one_question_and_the_scores_stay(suite: JudgedSuite) -> None:
    suite.write(answered_items(6), scorers=SCORERS, fused=True, target="none")
    whole = suite.run()
    suite.forget()
    suite.write(judge={"max_contexts_per_call": 2}, scorers=SCORERS, fused=True, target="none")
    split = suite.run()
    assert suite.scores(split) == suite.scores(whole)


@pytest.mark.parametrize("scorers", [SCORERS[:2], SCORERS])
def test_contexts_asked_one_by_one_that_state_the_same_all_count_as_useful(
    scorers: list[str], suite: JudgedSuite
) -> None:
    fact = "The lighthouse of Port 1 was lit in 1701."
    contexts = [
        "In 1701 the lighthouse of Port 1 was lit for the first time.",
        "Herrings were salted in barrels beside quay 5001.",
        f"Crowds saw it: {fact}",
    ]
    item = {"id": "i", "input": "What is known of Port 1?", "reference": fact, "output": fact, "contexts": contexts}
    for fused, most in ((True, None), (True, 1), (False, 1)):
        judge = {"max_contexts_per_call": most} if most is not None else {}
        suite.write([item], scorers=scorers, fused=fused, target="none", judge=judge)
        suite.forget()
        suite.run()
    found = "select distinct exact_fraction from scores where scorer = 'context_precision'"
    assert suite.workspace.sql(found) == [("5/6",)]  # ranks 1 and 3: (1/1 + 2/3) / 2


def test_a_reply_that_leaves_rows_out_is_completed(suite: JudgedSuite) -> None:
    suite.write(answered_items(6), scorers=SCORERS, fused=True, target="none")
    honest = suite.run()
    suite.forget()
    suite.server.control(share=0.5, faults=["omitted"], seed=3)
    spoilt = suite.run()
    assert suite.scores(spoilt) == suite.scores(honest)
