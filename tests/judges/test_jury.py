"""A jury: votes, what happens when members fail, agreement, and the suite's `jury` and `repeats`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ragscore.api import evaluate
from ragscore.errors import ConfigError
from ragscore.items import Status
from ragscore.judges import AttributeClaims, Claim, CrossClaims, ExtractClaims, MapClaims, Passage, RateStatements
from ragscore.judges.agreement import krippendorff_alpha
from ragscore.judges.jury import Jury
from ragscore.judges.scripted import ScriptedJudge
from ragscore.suite import JudgePart
from ragscore.suite_file import check_suite
from tests.workspace import Workspace

TASK = AttributeClaims("?", (Claim("c1", "all"), Claim("c2", "two"), Claim("c3", "one")), (Passage("p1", "x"),))


def member(name: str, *yes: str, **options: Any) -> ScriptedJudge:
    return ScriptedJudge(name=name, supported=dict.fromkeys(yes, True), **options)


def jury(**options: Any) -> Jury:
    return Jury([member("a", "all", "two", "one"), member("b", "all", "two"), member("c", "all")], **options)


@pytest.mark.parametrize(("rule", "expected"), [("majority", [True, True, False]), ("unanimous", [True, False, False])])
async def test_the_rule_makes_the_verdict_and_the_agreement_is_recorded(rule: Any, expected: list[bool]) -> None:
    judgement = await jury(rule=rule).ask(TASK)
    assert [v.positive for v in judgement.verdicts] == expected
    assert judgement.status is Status.OK
    assert judgement.usage.calls == 3
    assert judgement.judge == f"jury(a,b,c)/{rule}"
    first, second, _ = judgement.verdicts
    assert (first.confidence, first.warnings) == (1.0, ())
    agreeing = 2 if rule == "majority" else 1
    assert second.confidence == pytest.approx(agreeing / 3)
    assert second.warnings == (f"{agreeing} of 3 judges agree",)


async def test_a_tie_is_a_no_and_of_labels_with_as_many_votes_the_least_favourable_stands() -> None:
    tie = Jury([member("a", "all"), member("b")])
    assert [v.positive for v in (await tie.ask(TASK)).verdicts] == [False, False, False]
    graded = Jury([ScriptedJudge(name=each, answers={"all": each}) for each in ("yes", "unsure")])
    (verdict,) = (await graded.ask(RateStatements("?", (Claim("c1", "all"),)))).verdicts
    assert (verdict.label, verdict.positive, verdict.confidence) == ("unsure", False, 0.5)


async def test_a_member_that_fails_does_not_vote_and_too_few_votes_are_no_verdict() -> None:
    broken = member("broken", failing={"attribute_claims": Status.JUDGE_ERROR})
    two_of_three = await Jury([member("a", "all"), member("b", "all"), broken]).ask(TASK)
    assert two_of_three.status is Status.OK
    assert two_of_three.verdicts[0].positive
    assert two_of_three.verdicts[0].warnings == ("2 of 3 judges voted",)
    one_of_three = await Jury([member("a", "all"), broken, broken]).ask(TASK)
    assert (one_of_three.status, one_of_three.verdicts) == (Status.JUDGE_ERROR, ())
    assert "2 of 3 judges gave no verdicts" in str(one_of_three.error)


async def test_claims_are_extracted_by_the_first_member_alone() -> None:
    members = [member("a"), member("b")]
    await Jury(members).ask(ExtractClaims("?", "fact"))
    assert [len(each.tasks) for each in members] == [1, 0]


@given(st.lists(st.lists(st.booleans(), min_size=0, max_size=4), max_size=12))
def test_alpha_is_that_of_the_package_krippendorff(units: list[list[bool]]) -> None:
    package, numpy = pytest.importorskip("krippendorff"), pytest.importorskip("numpy")
    ours = krippendorff_alpha(units)
    assert ours is None or ours <= 1
    if ours is None:
        return
    judges = max(map(len, units))
    columns = [[float(each) for each in unit] + [numpy.nan] * (judges - len(unit)) for unit in units]
    table = numpy.array(columns).T
    assert float(ours) == pytest.approx(package.alpha(table, level_of_measurement="nominal"))


def test_members_have_what_the_whole_has_besides_and_repeats_are_remembered_apart() -> None:
    part = JudgePart.model_validate({
        "jury": ["openai/a", {"model": "openai/b", "temperature": 0.5}], "rule": "unanimous", "concurrency": 3
    })  # fmt: skip
    assert [(judge.model, judge.temperature, judge.concurrency, mark) for judge, mark in part.seats("run")] == [
        ("openai/a", 0.0, 3, "run"),
        ("openai/b", 0.5, 3, "run"),
    ]
    repeated = JudgePart(model="openai/a", repeats=3).seats()
    assert [mark for _, mark in repeated] == ["", "#2", "#3"]
    assert all(judge.jury is None and judge.repeats == 1 for judge, _ in repeated)


def test_the_jury_of_the_page_is_one() -> None:
    page = Path(__file__).parent.parent.parent / "docs" / "suite.md"
    (text,) = re.findall(r"^```yaml\n(judge:\n  jury:.*?)^```$", page.read_text(encoding="utf-8"), re.M | re.S)
    file = check_suite({"name": "x", "dataset": "d", "target": {"python": "a:b"}, **yaml.safe_load(text)})
    assert [judge.temperature for judge, _ in file.suite.judge.seats()] == [0.0, 0.2, 0.0]


@pytest.mark.parametrize("jury", [["offline"], [{"jury": ["offline", "offline"]}, "offline"]])
def test_a_jury_of_one_and_a_jury_in_a_jury_are_errors(jury: list[Any]) -> None:
    with pytest.raises(ConfigError):
        check_suite({"name": "x", "dataset": "d", "target": {"python": "a:b"}, "judge": {"jury": jury}})


async def test_a_suite_with_a_jury_keeps_agreement_with_every_verdict_and_shows_alpha(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(workspace.folder)
    workspace.write_suite(judge={"jury": ["offline", "offline"]})
    evaluation = await evaluate("suite.yaml")
    assert evaluation.scores == {"context_recall": 1.0, "context_precision": 1.0}
    assert workspace.sql("select distinct confidence from verdicts") == [(1.0,)]
    ((judge, params),) = workspace.sql("select judge, judge_params from runs")
    assert judge == "jury(offline-lexical-1×2)/majority"
    assert len(json.loads(params)["jury"]) == 2
    assert "the 2 judges agree by Krippendorff's alpha 1.00 over 16 verdicts" in evaluation.summary.advice
    assert not Path("questions.claims.jsonl").exists()  # nothing is frozen that a better judge would be held to


@pytest.mark.parametrize(("rule", "expected"), [("majority", "elsewhere"), ("unanimous", "only here")])
async def test_the_other_text_of_a_crossed_claim_is_a_vote_of_its_own(rule: Any, expected: str) -> None:
    task = CrossClaims("?", (Claim("c1", "all"),), (Passage("p1", "x"),), reference="all", output="y")
    members = [
        ScriptedJudge(name=name, mapped={"all": ["x"]}, supported={"all": there})
        for name, there in (("a", True), ("b", True), ("c", False))
    ]
    (verdict,) = (await Jury(members, rule=rule).ask(task)).verdicts
    assert (verdict.positive, verdict.label, verdict.confidence) == (True, expected, 1.0)


@pytest.mark.parametrize(("rule", "expected"), [("majority", ["p1", "p2"]), ("unanimous", ["p1"])])
async def test_a_context_that_one_member_alone_names_for_a_claim_does_not_state_it(
    rule: Any, expected: list[str]
) -> None:
    passages = tuple(Passage(f"p{number}", text) for number, text in enumerate(["one", "two", "three"], start=1))
    members = [
        ScriptedJudge(name=name, mapped={"all": texts})
        for name, texts in (("a", ["one"]), ("b", ["one", "two"]), ("c", ["one", "two", "three"]))
    ]
    judgement = await Jury(members, rule=rule).ask(MapClaims("?", (Claim("c1", "all"),), passages))
    (verdict,) = judgement.verdicts
    assert verdict.positive
    assert [each.passage for each in verdict.evidence] == expected
