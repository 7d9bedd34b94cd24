"""What `ragscore plan` says of each scorer, held against the calls that a server counts when the suite is run."""

from __future__ import annotations

import contextlib
import sys
from typing import Any

import pytest

from ragscore.assembly import assemble
from ragscore.forecast import Forecast, forecast
from ragscore.history import History
from ragscore.scorer_kinds import OPTIONS, WITHOUT_JUDGE
from ragscore.suite_file import read_suite
from tests.judges.judged_suites import JudgedSuite
from tests.judges.test_fused import SCORERS, answered_items

PROMPT = {"question": "Is it polite?", "reply": {"polite": "boolean", "why": "text"}, "score": "polite"}
JUDGED = [kind for kind in OPTIONS if kind not in WITHOUT_JUDGE and kind != "prompt"]
SUITES: dict[str, dict[str, Any]] = {
    **{kind: {"scorers": [kind]} for kind in JUDGED},
    "prompt": {"scorers": [{"prompt": PROMPT}]},
    "all of them": {"scorers": JUDGED},
    "rank metrics": {"scorers": ["mrr", "hit_rate"]},
    "fused": {"scorers": SCORERS, "fused": True},
    "fused without output": {"scorers": SCORERS[:2], "fused": True},
    "in parts": {"scorers": ["context_precision"], "judge": {"max_contexts_per_call": 2}},
    "a jury": {"scorers": ["context_recall", "context_precision"], "judge": {"repeats": 2}},
}
PRICE = {"input_per_million": 1.0, "output_per_million": 1.0}


def planned(suite: JudgedSuite) -> Forecast:
    with contextlib.chdir(suite.folder):
        return forecast(assemble(read_suite(suite.workspace.suite)), History(suite.workspace.history))


@pytest.mark.parametrize("name", SUITES)
def test_the_calls_of_a_plan_are_the_calls_that_a_run_makes(name: str, suite: JudgedSuite) -> None:
    changes = dict(SUITES[name])
    rows = answered_items(3)
    rows.append({**rows[0], "id": "again"})  # the same questions are asked once
    judge = {"price": PRICE, **changes.pop("judge", {})}
    suite.write(rows, judge=judge, target="none", gate={"coverage": 0}, **changes)
    expected = planned(suite)
    before = suite.requests()
    run = suite.run()
    asked = suite.requests() - before
    assert expected.calls == asked - 1 + skipped(suite, run.run_id)  # one is the probe
    scorers = [share.what for share in expected.shares if share.what != "claims"]
    assert len(set(scorers)) == len(scorers)
    for share in expected.shares:
        assert share.calls
        assert share.prompt_tokens
        assert share.completion_tokens
        assert share.cost_usd == pytest.approx((share.prompt_tokens + share.completion_tokens) / 1e6)
    if name in JUDGED:
        assert name in scorers
    sent = f"select sum(prompt_tokens) from judge_calls where run_id = '{run.run_id}' and item_id <> ''"
    ((tokens,),) = suite.workspace.sql(sent)
    if expected.shares:  # the server, too, counts four characters a token
        assert expected.prompt_tokens == pytest.approx(tokens, rel=0.25)


def skipped(suite: JudgedSuite, run_id: str) -> int:
    """Questions that a run left out since nothing was found: a plan counts every claim as found."""
    query = (
        "select count(*) from scores where run_id = '{}' and scorer = 'context_utilization' and status = 'no_claims'"
        " and prompt_version <> 'cross_claims.v1'"
    )
    ((count,),) = suite.workspace.sql(query.format(run_id))
    return int(count)


def test_after_a_run_a_plan_rests_on_its_contexts_and_outputs(suite: JudgedSuite) -> None:
    (suite.folder / "drinks.py").write_text(
        "def retrieve(question):\n    return {'output': 'y' * 60, 'contexts': ['a' * 100, 'b' * 100, 'c' * 100]}\n"
    )
    sys.modules.pop("drinks", None)
    suite.write(scorers=["faithfulness"], contexts={"response": True})
    assert "an output of 73 characters per item, as long as the references" in " ".join(planned(suite).assumed)
    suite.run()
    told = " ".join(planned(suite).assumed)
    assert "3.0 contexts of 100 characters per item, as in run" in told
    assert "an output of 60 characters per item, as in run" in told


def test_what_a_scorer_of_ones_own_asks_is_unknown_and_never_0(suite: JudgedSuite) -> None:
    (suite.folder / "my_scorers.py").write_text(
        "class Asks:\n    async def judge(self, sample, *, judge, claims): raise RuntimeError('run by a plan')\n"
        "    def score(self, sample, judged): return 1\n"
        "def counts(item, response): return 1\n"
    )
    sys.modules.pop("my_scorers", None)
    own = [{"python": "my_scorers:Asks"}, {"python": "my_scorers:counts"}]
    suite.write(judge={"price": PRICE}, scorers=["context_recall", *own])
    expected = planned(suite)
    (share,) = (share for share in expected.shares if share.what == "Asks")
    assert (share.calls, share.prompt_tokens, share.completion_tokens, share.cost_usd) == (None, None, None, None)
    assert not [share for share in expected.shares if share.what == "counts"]  # it is given no judge
    assert (expected.calls, expected.cost_usd, expected.remembered_calls) == (None, None, None)
    assert any("what Asks asks the judge is not known" in line for line in expected.assumed)
    shown = suite.workspace.ragscore("plan", "suite.yaml")
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.count("unknown") >= 8
