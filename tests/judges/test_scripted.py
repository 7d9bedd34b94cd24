"""The public judge for tests."""

from __future__ import annotations

import asyncio

import pytest

from ragscore.errors import JudgeUnavailable
from ragscore.items import Judgement, Status
from ragscore.judges.protocol import PreparedJudge
from ragscore.judges.scripted import ScriptedJudge
from ragscore.judges.tasks import AttributeClaims, Claim, ExtractClaims, Passage, RateContexts, Task

ATTRIBUTE = AttributeClaims("?", (Claim("c1", "wet"), Claim("c2", "dry")), (Passage("p1", "text"),))
RATE = RateContexts("?", "wet", "reference", (Passage("p1", "good"), Passage("p2", "bad")))


def ask(judge: ScriptedJudge, task: Task) -> Judgement:
    return asyncio.run(judge.ask(task))


def verdicts(judgement: Judgement) -> dict[str, bool]:
    return {verdict.id: verdict.positive for verdict in judgement.verdicts}


def test_it_answers_from_tables() -> None:
    judge = ScriptedJudge(claims={"ref": ["a", "b"]}, supported={"wet": True}, relevant={"good": True})
    assert ask(judge, ExtractClaims("?", "ref")).claims == ("a", "b")
    assert ask(judge, ExtractClaims("?", "other")).claims == ("other",)
    assert verdicts(ask(judge, ATTRIBUTE)) == {"c1": True, "c2": False}
    assert verdicts(ask(judge, RATE)) == {"p1": True, "p2": False}
    assert judge.asked == {"extract_claims": 2, "attribute_claims": 1, "rate_contexts": 1}
    prepared: PreparedJudge = judge
    assert prepared is judge


def test_it_answers_from_functions() -> None:
    judge = ScriptedJudge(supported=lambda text, task: "e" in text, relevant=lambda text, task: True)
    assert verdicts(ask(judge, ATTRIBUTE)) == {"c1": True, "c2": False}
    assert verdicts(ask(judge, RATE)) == {"p1": True, "p2": True}


def test_a_verdict_left_out_is_a_judge_error_that_keeps_the_others() -> None:
    judgement = ask(ScriptedJudge(supported={"wet": None}, default=True), ATTRIBUTE)
    assert (judgement.status, judgement.error) == (Status.JUDGE_ERROR, "no verdict for c1")
    assert verdicts(judgement) == {"c2": True}


def test_it_fails_abstains_and_raises_as_told() -> None:
    assert ask(ScriptedJudge(failing={"rate_contexts": Status.ABSTAINED}), RATE).status is Status.ABSTAINED
    failing = ScriptedJudge(failing=lambda task: Status.JUDGE_ERROR if task.name == "rate_contexts" else None)
    assert ask(failing, RATE).status is Status.JUDGE_ERROR
    assert ask(failing, ATTRIBUTE).status is Status.OK
    with pytest.raises(JudgeUnavailable):
        ask(ScriptedJudge(raises=JudgeUnavailable("gone")), RATE)
