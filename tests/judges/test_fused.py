"""`fused: true` over HTTP through LiteLLM: what it costs, and that it gives the scores of separate judging."""

from __future__ import annotations

from typing import Any

import pytest

from ragscore.history import RunRow
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


def test_without_an_output_or_its_scorers_the_output_is_not_asked_about(suite: JudgedSuite) -> None:
    rows = answered_items(4)
    rows[0]["output"] = None
    suite.write(rows, scorers=SCORERS, fused=True, target="none")
    suite.run()
    versions = "select item_id = 'i000', prompt_version from scores where scorer = 'context_recall' group by all"
    assert set(suite.workspace.sql(versions)) == {(True, "map_claims.v1"), (False, "cross_claims.v1")}
    statuses = "select scorer, status from scores where item_id = 'i000' order by 1"
    assert suite.workspace.sql(statuses) == [
        ("context_precision", "ok"),
        ("context_recall", "ok"),
        ("context_utilization", "no_claims"),
        ("noise_sensitivity", "no_claims"),
    ]
    suite.write(scorers=["context_recall", "context_precision"], fused=True, target="none")
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


def test_a_reply_that_leaves_rows_out_is_completed(suite: JudgedSuite) -> None:
    suite.write(answered_items(6), scorers=SCORERS, fused=True, target="none")
    honest = suite.run()
    suite.forget()
    suite.server.control(share=0.5, faults=["omitted"], seed=3)
    spoilt = suite.run()
    assert suite.scores(spoilt) == suite.scores(honest)
