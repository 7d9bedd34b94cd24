"""What must hold of a judge that is a model, through the whole path: LiteLLM, HTTP, memory, claims, history."""

from __future__ import annotations

import asyncio
import io
import json
import re
from collections import Counter
from pathlib import Path

import pytest
from rich.console import Console

from ragscore.assembly import assemble
from ragscore.errors import DatasetError
from ragscore.history import History
from ragscore.judges.judgement_store import JudgementStore
from ragscore.judges.llm.declared import llm_judge
from ragscore.judges.llm.prompts import VERSIONS
from ragscore.judges.llm.quotes import DEMOTED, NOT_FOUND
from ragscore.judges.memory import RememberingJudge
from ragscore.judges.setup import judge_setup
from ragscore.judges.tasks import AttributeClaims, Claim, ExtractClaims, Passage, RateContexts
from ragscore.report.comparison import compare_runs
from ragscore.report.summary import summary_of
from ragscore.report.terminal import print_summary
from ragscore.suite_file import read_suite
from tests.judges.judged_suites import JudgedSuite, command, port_items
from tests.judges.llm.test_injection import CORPUS
from tests.llm_server.faults import PASSING, REJECTING, SPOILT

#: Faults after which the same thing has to be asked once more.
COSTING = (*PASSING, *SPOILT, *REJECTING)


def all_scored(rows: list[tuple[object, ...]]) -> bool:
    return {row[2] for row in rows} == {"ok"}


@pytest.mark.e2e
def test_with_a_fifth_of_replies_faulty_200_items_get_the_scores_that_they_get_without_faults(
    suite: JudgedSuite, tmp_path: Path
) -> None:
    suite.judge = {"timeout_s": 3, "concurrency": 24, "max_retries": 8}
    suite.write(port_items(200))
    honest = suite.run()
    expected = suite.scores(honest)
    assert len(expected) == 400
    assert all_scored(expected)
    assert {row[3] for row in expected} >= {"1/1", "1/2"}
    # Claims, attribution, relevance: three distinct questions per item, each asked once, and the probe.
    assert suite.requests() == 601
    assert suite.bill(honest) == (600, 0, 600)

    suite.server.control(reset=True, share=0.2)
    other = suite.elsewhere(tmp_path / "faulty")
    other.claims_file.unlink()
    faulty = other.run()
    assert other.scores(faulty) == expected
    assert other.verdicts(faulty) == suite.verdicts(honest)
    stats = suite.server.stats()
    assert set(stats["per_fault"]) >= set(COSTING) - set(REJECTING)
    made_necessary = sum(stats["per_fault"].get(fault, 0) for fault in COSTING) + stats["abandoned"]
    assert stats["requests"] == 601 + made_necessary
    # The bill names every one of them, the probe too, with what came of it.
    outcomes = Counter(dict(other.workspace.sql("select outcome, count(*) from judge_calls group by 1")))
    assert outcomes["ok"] == 601
    assert outcomes.total() == stats["requests"]
    assert outcomes["throttled"] + outcomes["timeout"] + outcomes["malformed"] + outcomes["truncated"] > 0


def test_a_first_run_takes_three_calls_per_item_with_frozen_claims_two_and_again_none(suite: JudgedSuite) -> None:
    first = suite.run()
    assert suite.bill(first) == (36, 0, 36)
    again = suite.run()
    assert suite.bill(again) == (0, 12 * (2 + 5), 0)
    suite.forget()
    suite.server.control(reset=True)
    frozen = suite.run()
    assert suite.bill(frozen) == (24, 0, 24)
    assert suite.server.stats()["per_task"].get("extraction") is None
    assert suite.scores(first) == suite.scores(again) == suite.scores(frozen)
    assert suite.verdicts(first) == suite.verdicts(again)


def test_the_request_before_the_first_item_is_in_the_bill_once_and_another_process_need_not_repeat_it(
    suite: JudgedSuite, tmp_path: Path
) -> None:
    suite.write(port_items(2), judge={"price": {"input_per_million": 1.0, "output_per_million": 1.0}})
    run = suite.run()
    kept = "select task, scorer, attempt, number, outcome, cost_usd > 0 from judge_calls where item_id = ''"
    assert suite.workspace.sql(kept) == [("probe", "", 1, 1, "ok", True)]
    history = History(suite.workspace.history)
    summary = summary_of(history, run)
    assert summary.as_dict()["probe"] == {"calls": 1, "cost_usd": summary.probe.cost_usd}
    out = io.StringIO()
    print_summary(summary, Console(file=out, width=120))
    assert "judge: 7 calls (1 before the first item), 0 remembered, cost $" in out.getvalue()
    again = suite.resume(run)
    assert summary_of(history, again).probe == summary.probe
    spent = suite.workspace.sql("select calls, cost_usd from judge_spend")
    assert spent == suite.workspace.sql("select count(*), sum(cost_usd) from judge_calls")
    assert suite.requests() == 7

    asyncio.run(_told_in_another_process(suite, tmp_path))


async def _told_in_another_process(suite: JudgedSuite, tmp_path: Path) -> None:
    """As a Dask worker of another host is told: it has no memory of the model."""
    part = read_suite(suite.workspace.suite).suite.judge
    jury = part.model_copy(update={"repeats": 2, "model": "openai/other"})
    for declared, models in ((part, 1), (jury, 2)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("RAGSCORE_HOME", str(tmp_path / f"here-{models}"))
            here = judge_setup(declared, dataset=tmp_path / "a.jsonl")
            patch.setenv("RAGSCORE_HOME", str(tmp_path / f"there-{models}"))
            there = judge_setup(declared, dataset=tmp_path / "a.jsonl")
        await here.prepare()
        before = suite.requests()
        there.tell(json.loads(json.dumps(here.learnt)))
        await there.prepare()
        assert (len(here.probe_calls), len(there.models), there.probe_calls) == (1, models, ())
        assert there.params == here.params
        assert suite.requests() == before
        await here.aclose()
        await there.aclose()


def test_a_swapped_context_costs_two_calls_per_item_and_alone_is_sent_for_relevance(suite: JudgedSuite) -> None:
    suite.run()
    suite.server.control(reset=True)
    suite.write(port_items(12, swapped=True))
    swapped = suite.run()
    calls, remembered, _ = suite.bill(swapped)
    assert (calls, remembered) == (24, 12 * 4)
    rated = [
        re.findall(r"^<<<\w+ context \S+>>>\n(.*)$", last["body"]["messages"][1]["content"], re.M)
        for last in suite.server.stats()["last"]
        if "expected>>>" in last["body"]["messages"][1]["content"]
    ]
    assert sorted(rated) == sorted([f"Sails were sewn in street {9000 + n}."] for n in range(12))


def test_contexts_in_another_order_cost_nothing(suite: JudgedSuite) -> None:
    first = suite.run()
    rows = port_items(12)
    for row in rows:
        row["contexts"] = row["contexts"][::-1]
    suite.write(rows)
    turned = suite.run()
    assert suite.bill(turned)[0] == 0
    recall = [row for row in suite.scores(first) if row[1] == "context_recall"]
    assert [row for row in suite.scores(turned) if row[1] == "context_recall"] == recall


def test_a_fresh_machine_with_dataset_and_claims_gets_the_same_denominators(suite: JudgedSuite, tmp_path: Path) -> None:
    first = suite.run()
    suite.server.control(reset=True, always=["fewer_claims"])  # what would be extracted now is something else
    other = suite.elsewhere(tmp_path / "machine")
    there = other.run()
    assert other.scores(there) == suite.scores(first)
    assert {row[4] for row in other.scores(there) if row[1] == "context_recall"} == {2}
    assert other.server.stats()["per_task"].get("extraction") is None


def test_frozen_with_a_missing_line_names_the_items_before_anything_is_asked(suite: JudgedSuite) -> None:
    suite.run()
    lines = suite.claims_file.read_text(encoding="utf-8").splitlines(keepends=True)
    suite.claims_file.write_text("".join(lines[:9]), encoding="utf-8")
    frozen = {line["input"] for line in suite.frozen()}
    missing = sorted(row["id"] for row in port_items(12) if row["input"] not in frozen)
    done = command(suite.workspace, "run", "suite.yaml", "--frozen")
    assert done.returncode == 2
    for item in missing:
        assert repr(item) in done.stderr
    assert "questions.claims.jsonl" in done.stderr
    suite.write(frozen_claims=True)
    with pytest.raises(DatasetError, match=missing[0]):
        assemble(read_suite(suite.workspace.suite))


@pytest.mark.parametrize("always", [[], ["yes_to_all"]], ids=["honest", "obedient"])
def test_injected_contexts_change_neither_number_nor_ids_and_false_evidence_is_flagged(
    suite: JudgedSuite, always: list[str]
) -> None:
    suite.server.control(always=always)
    reference = "The tower was completed in 1889. Gustave Eiffel's company built it."
    contexts = [text.replace("\x00", "") for text in CORPUS.values()]
    rows = [
        {"id": f"x{n}", "input": f"When, {n}?", "reference": reference, "contexts": [text, f"Bananas {n}."]}
        for n, text in enumerate(contexts)
    ]
    suite.write([*rows, {"id": "all", "input": "When?", "reference": reference, "contexts": contexts}])
    run = suite.run()
    assert all_scored(suite.scores(run))
    asked = Counter((item, scorer) for item, scorer, *_ in suite.verdicts(run))
    for row in rows:
        assert asked[row["id"], "context_recall"] == asked[row["id"], "context_precision"] == 2
    assert asked["all", "context_precision"] == len(contexts)
    ids = {verdict for item, _, verdict, *_ in suite.verdicts(run) if item != "all"}
    assert ids == {"c1", "c2", "1", "2"}  # claims, and contexts by rank
    if always:
        flagged = suite.workspace.sql("select positive, verified, warnings from verdicts where kind = 'claim'")
        assert set(map(str, flagged)) == {str((True, False, [NOT_FOUND]))}


@pytest.mark.parametrize(
    "change",
    [{"model": "openai/other"}, {"temperature": 0.5}, {"params": {"top_p": 0.5}}, {"base_url": "localhost"}],
    ids=["model", "temperature", "parameter", "address"],
)
def test_another_model_temperature_or_address_shares_no_judgement(
    suite: JudgedSuite, change: dict[str, object]
) -> None:
    suite.run()
    if "base_url" in change:
        change = {"base_url": suite.server.url.replace("127.0.0.1", "localhost")}
    suite.write(judge=change)
    assert suite.bill(suite.run()) == (24, 0, 24)  # the claims belong to the dataset
    assert suite.bill(suite.run()) == (0, 12 * 7, 0)


async def test_another_version_of_a_prompt_shares_no_judgement(
    suite: JudgedSuite, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = read_suite(suite.workspace.suite).suite.judge
    passages = (Passage("1", "Water is wet."),)
    tasks = (
        ExtractClaims("Is it?", "Water is wet."),
        AttributeClaims("Is it?", (Claim("c1", "Water is wet."),), passages),
        RateContexts("Is it?", "Water is wet.", "reference", passages),
    )
    with JudgementStore(suite.folder / "judgements.sqlite") as store:
        model = llm_judge(part, environment={})
        await model.prepare()
        judge = RememberingJudge(model, store)
        before = [judge.keys(task) for task in tasks]
        for task in tasks:
            monkeypatch.setitem(VERSIONS, task.name, "v0")
        assert not {key for keys in before for key in keys} & {key for task in tasks for key in judge.keys(task)}
        await model.aclose()


def test_a_persons_edit_of_the_claims_is_kept_marked_and_not_compared(suite: JudgedSuite) -> None:
    before = suite.run()
    lines = suite.frozen()
    lines[0]["claims"] = [lines[0]["claims"][0]]
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    suite.claims_file.write_text(text, encoding="utf-8")
    after = suite.run()
    assert suite.claims_file.read_text(encoding="utf-8") == text
    edited = next(row["id"] for row in port_items(12) if row["input"] == lines[0]["input"])
    ((n,),) = suite.workspace.sql(
        f"select n from scores where run_id = '{after.run_id}' and scorer = 'context_recall' and item_id = '{edited}'"
    )
    assert n == 1
    compared = {each.scorer: each for each in compare_runs(History(suite.workspace.history), before, after).scorers}
    assert list(compared["context_recall"].changed) == [edited]
    assert len(compared["context_recall"].pairs) == 11
    assert suite.bill(after)[0] == 1  # the attribution of the other claim set
    listed = json.loads(command(suite.workspace, "claims", "list", "suite.yaml", "--json").stdout)
    assert [row["item_id"] for row in listed["claims"] if row["origin"] == "edited"] == [edited]


def test_evidence_require_counts_only_what_a_verified_quote_supports(suite: JudgedSuite) -> None:
    suite.server.control(always=["yes_to_all"])
    flagged = suite.run()
    recall = "select distinct exact_fraction from scores where scorer = 'context_recall' and run_id = '{0}'"
    assert suite.workspace.sql(recall.format(flagged.run_id)) == [("1/1",)]
    suite.write(judge={"evidence": "require"})
    required = suite.run()
    assert suite.bill(required)[0] == 0  # the same judgements, read more strictly
    assert suite.workspace.sql(recall.format(required.run_id)) == [("0/1",)]
    assert required.judge == "openai/lexical+evidence"
    ((warnings,),) = suite.workspace.sql(
        f"select distinct warnings from verdicts where kind = 'claim' and run_id = '{required.run_id}'"
    )
    assert DEMOTED in warnings
    suite.write(judge={"evidence": "off"})
    silent = suite.run()
    assert suite.workspace.sql(
        f"select distinct warnings, verified from verdicts where kind = 'claim' and run_id = '{silent.run_id}'"
    ) == [([], False)]


def test_fresh_judges_again_under_its_own_run_and_leaves_the_claims_alone(suite: JudgedSuite) -> None:
    suite.run()
    suite.server.control(reset=True)
    fresh = suite.run(fresh=True)
    assert suite.bill(fresh) == (24, 0, 24)
    assert suite.server.stats()["per_task"].get("extraction") is None
    assert suite.bill(suite.run()) == (0, 12 * 7, 0)


def test_items_in_thai_arabic_and_chinese_are_judged_in_their_own_words(suite: JudgedSuite) -> None:
    rows = [
        {
            "id": "th",
            "input": "ชาเขียวทำจากอะไร",
            "reference": "ชาเขียวทำจากใบชาที่ไม่ผ่านการหมัก",
            "contexts": ["โดยทั่วไปชาเขียวทำจากใบชาที่ไม่ผ่านการหมัก", "ท่าเรือปิดเพราะหมอก"],
        },
        {
            "id": "ar",
            "input": "متى اكتمل برج إيفل؟",
            "reference": "اكتمل برج إيفل عام 1889.",
            "contexts": ["اكتمل برج إيفل الشهير عام 1889.", "أغلق الميناء بسبب الضباب."],
        },
        {
            "id": "zh",
            "input": "绿茶是什么？",
            "reference": "绿茶是不经发酵的茶。",
            "contexts": ["绿茶是不经发酵的茶，产于中国。", "港口因大雾关闭。"],
        },
    ]
    suite.write(rows)
    run = suite.run()
    assert {row[3] for row in suite.scores(run)} == {"1/1"}
    claims = {line["input"]: line["claims"] for line in suite.frozen()}
    assert claims == {row["input"]: [row["reference"]] for row in rows}
    evidence = [row for row in suite.verdicts(run) if row[1] == "context_recall"]
    assert [(item, verified) for item, _, _, _, verified, _ in evidence] == [("ar", True), ("th", True), ("zh", True)]
    assert suite.bill(suite.run())[0] == 0


def test_a_key_that_is_refused_is_exit_3_before_the_first_item_with_nothing_in_the_history(suite: JudgedSuite) -> None:
    suite.server.control(api_key="another")
    done = command(suite.workspace, "run", "suite.yaml")
    assert done.returncode == 3
    assert "the judge refuses" in done.stderr
    assert suite.server.url in done.stderr
    assert "Traceback" not in done.stderr
    assert not suite.workspace.history.exists()
    assert suite.workspace.calls() == []
    assert suite.requests() == 1


@pytest.mark.parametrize(
    ("limit", "small", "large"),
    [("budget_tokens", "6000", "1000000"), ("budget_usd", "0.006", "10")],
    ids=["tokens", "dollars"],
)
def test_a_spent_budget_is_a_status_and_a_resume_with_a_larger_one_does_the_rest(
    suite: JudgedSuite, monkeypatch: pytest.MonkeyPatch, limit: str, small: str, large: str
) -> None:
    price = {"input_per_million": 1, "output_per_million": 1}
    monkeypatch.setenv("BUDGET", small)
    suite.write(judge={limit: "${BUDGET}", "price": price, "max_tokens": 200, "concurrency": 4})
    run = suite.run()
    assert run.status == "complete"
    counts = dict(suite.workspace.sql("select status, count(*) from scores group by 1"))
    assert set(counts) == {"ok", "budget"}
    spent = suite.workspace.sql("select sum(prompt_tokens + completion_tokens)::bigint, sum(cost_usd) from judge_calls")
    assert (spent[0][0] if limit == "budget_tokens" else spent[0][1]) <= float(small) * 1.1
    faults = summary_of(History(suite.workspace.history), run).faults  # of which there being any is exit 3
    assert "budget" in faults[0]
    monkeypatch.setenv("BUDGET", large)
    resumed = suite.resume(run)
    assert all_scored(suite.scores(resumed))
    assert summary_of(History(suite.workspace.history), resumed).faults == []
    assert max(suite.server.stats()["honest"].values()) == 1


def test_a_resume_of_a_fresh_run_repeats_nothing_that_the_run_has_judged(
    suite: JudgedSuite, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite.run()
    monkeypatch.setenv("BUDGET", "4000")
    suite.write(judge={"budget_tokens": "${BUDGET}", "max_tokens": 200, "fresh": True})
    suite.server.control(reset=True)
    run = suite.run()
    monkeypatch.setenv("BUDGET", "1000000")
    assert all_scored(suite.scores(suite.resume(run)))
    stats = suite.server.stats()
    assert (stats["requests"], max(stats["honest"].values())) == (24, 1)


def test_what_is_wrong_with_the_memory_is_said_once_and_costs_money_not_results(suite: JudgedSuite) -> None:
    expected = suite.scores(suite.run())
    memory = suite.workspace.history.parent / "judgements.sqlite"
    for log in memory.parent.glob("judgements.sqlite-*"):
        log.unlink()
    memory.write_bytes(b"no database" * 1000)
    done = suite.workspace.ragscore("run", "suite.yaml")
    assert done.returncode == 0, done.stderr
    assert (done.stdout + done.stderr).count("was damaged and is now judgements.sqlite.damaged-1") == 1
    ((last,),) = suite.workspace.sql("select run_id from runs order by started_at desc limit 1")
    assert suite.scores(last) == expected
