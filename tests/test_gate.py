"""The gate: real runs in a real history, held against thresholds, baselines, anchors and slices."""

from __future__ import annotations

import asyncio
import json
import warnings
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from ragscore.assembly import assemble
from ragscore.engine import evaluate_locally
from ragscore.errors import SuiteError, UsageError
from ragscore.gate import (
    ALPHA,
    Answer,
    Check,
    GateResult,
    Question,
    Verdict,
    answers,
    evaluate_gate,
    find_baseline,
    kept_exit_code,
    require_baselines,
)
from ragscore.history import History, RunRow, select
from ragscore.judges.scripted import ScriptedJudge
from ragscore.runs import begin
from ragscore.stats import Interval, sign_patterns
from ragscore.suite_file import SuiteFile, check_suite
from tests.benchmarked import benchmark
from tests.workspace import Workspace

RECALL, PRECISION = "context_recall", "context_precision"
FACTS = ("Lamps are lit at dusk.", "Boats wait for the tide.", "Ropes are coiled by hand.", "Nets dry on the wall.")
GATE = {RECALL: {"max_drop": 0.03}}


class Nightly:
    """Runs of one suite in one history; the score of an item is given as how many of its four facts are found."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.history = History(workspace.history, lock_timeout_s=20)

    def file(self, version: str, gate: Any, **suite: Any) -> SuiteFile:
        return check_suite(
            {
                "name": "harbour",
                "dataset": "questions.jsonl",
                "target": {"retriever": "search", "version": version, "python": "drinks:text_only"},
                "contexts": {"item": True},
                "scorers": [RECALL],
                "retries": 0,
                "gate": gate,
                **suite,
            },
            base_dir=self.workspace.folder,
        )

    def run(
        self,
        found: Sequence[int | None],
        *,
        version: str = "v1",
        gate: Any = None,
        metadata: Sequence[Mapping[str, Any]] | None = None,
        judge: ScriptedJudge | None = None,
        **suite: Any,
    ) -> GateResult:
        """One run; an item of None cannot be scored."""
        self.workspace.write_items(
            [
                {
                    "id": f"q{number}",
                    "input": f"What of the harbour, {number}?",
                    "reference": " ".join(FACTS),
                    **({} if facts is None else {"contexts": list(FACTS[:facts]) or ["Fog."]}),
                    **(metadata[number] if metadata else {}),
                }
                for number, facts in enumerate(found)
            ]
        )
        file = self.file(version, GATE if gate is None else gate, **suite)
        run = begin(assemble(file, judge=judge), self.history)
        asyncio.run(evaluate_locally(run))
        self.history.finish_run(run.run_id, status="complete")
        return evaluate_gate(self.history, self.history.run(run.run_id), file.suite)

    def row(self, result: GateResult) -> RunRow:
        return self.history.run(result.run_id)


@pytest.fixture
def nightly(workspace: Workspace) -> Nightly:
    return Nightly(workspace)


def of(result: GateResult, what: str, **about: Any) -> Check:
    (found,) = (
        check
        for check in result.checks
        if check.what == what and all(getattr(check, name) == value for name, value in about.items())
    )
    return found


GOOD: Sequence[int] = [4] * 30
BAD: Sequence[int] = [4] * 18 + [0] * 12


# --- the rule -----------------------------------------------------------------------------------------------------


def asked(before: Sequence[float], after: Sequence[float], limit: float = 0.03) -> Answer:
    (answer,) = answers(
        [Question([Fraction(str(b)) for b in before], [Fraction(str(a)) for a in after], Fraction(str(limit)))]
    )
    return answer


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        ([], [], Verdict.INCONCLUSIVE),
        ([1], [0], Verdict.INCONCLUSIVE),
        ([0.5], [0.5], Verdict.INCONCLUSIVE),
        ([1, 1], [1, 1], Verdict.PASS),
        ([0] * 20, [0] * 20, Verdict.PASS),
        ([1] * 20, [0.5] * 20, Verdict.FAIL),
        ([1] * 20, [0.98] * 20, Verdict.PASS),
        ([0] * 20, [1] * 20, Verdict.PASS),
        ([1, 0] * 10, [0, 1] * 10, Verdict.INCONCLUSIVE),
        ([1] * 4, [0] * 4, Verdict.INCONCLUSIVE),
        ([1] * 6, [0] * 6, Verdict.FAIL),
    ],
)
def test_the_rule_on_plain_and_degenerate_pairs_without_a_warning(
    before: list[float], after: list[float], verdict: Verdict
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        answer = asked(before, after)
    assert answer.verdict is verdict
    assert "NaN" not in json.dumps(answer.as_dict())


def test_a_drop_of_exactly_the_limit_is_tolerated() -> None:
    assert asked([0.8] * 30, [0.77] * 30, 0.03).verdict is Verdict.PASS
    assert asked([0.8] * 30, [0.769] * 30, 0.03).verdict is Verdict.FAIL


def test_where_less_is_better_a_rise_is_what_fails() -> None:
    low, high = [Fraction(0)] * 20, [Fraction(1, 2)] * 20
    (rise,) = answers([Question(low, high, Fraction(0), less_is_better=True)])
    (fall,) = answers([Question(high, low, Fraction(0), less_is_better=True)])
    assert (rise.verdict, fall.verdict) == (Verdict.FAIL, Verdict.PASS)
    assert (rise.mean_before, rise.mean_after, rise.difference) == (Fraction(0), Fraction(1, 2), Fraction(1, 2))
    assert rise.interval == Interval(0.5, 0.5)


def test_several_drops_are_tested_together() -> None:
    def question(worse: int) -> Question:
        return Question([Fraction(1)] * 40, [Fraction(0)] * worse + [Fraction(1)] * (40 - worse), Fraction(0))

    (alone,) = answers([question(6)])
    first, second, third = answers([question(6), question(0), question(0)])
    assert (alone.p, alone.p_adjusted, alone.verdict) == (1 / 64, 1 / 64, Verdict.FAIL)
    assert (first.p, first.p_adjusted, first.verdict) == (1 / 64, 3 / 64, Verdict.INCONCLUSIVE)
    assert first.detectable is not None
    assert alone.detectable is not None
    assert first.detectable > alone.detectable
    assert {second.verdict, third.verdict} == {Verdict.PASS}


def test_an_inconclusive_answer_says_how_many_items_would_tell() -> None:
    answer = asked([1, 0.5] * 10, [0.5, 1] * 10)
    assert answer.verdict is Verdict.INCONCLUSIVE
    assert answer.needed is not None
    assert answer.needed > 20


def test_what_is_plainly_worse_is_not_taken_for_chance() -> None:
    answer = asked([1] * 40, [0] * 12 + [1] * 28)
    assert answer.detectable is not None
    assert answer.difference is not None
    assert answer.detectable < -answer.difference


@pytest.fixture(scope="module")
def benchmark_module() -> ModuleType:
    return benchmark("gate")


def test_the_benchmark_simulates_this_very_rule(benchmark_module: ModuleType) -> None:
    rng = np.random.default_rng(3)
    world = benchmark_module.World.of("redrawn", 20, 25, rng)
    before, after = world.night(rng), world.night(rng, fact_loss=np.full(25, 0.4))
    simulated = benchmark_module.fails(after - before, sign_patterns(20, 9_999)[0])
    decided = [
        asked(list(b.round(6)), list(a.round(6)), benchmark_module.LIMIT).verdict is Verdict.FAIL
        for b, a in zip(before, after, strict=True)
    ]
    assert 3 < sum(decided) < 25
    assert sum(decided != simulated) <= 1  # p near the level, by chance of the patterns


def test_unchanged_systems_seldom_fail_and_slides_meet_the_anchor(benchmark_module: ModuleType) -> None:
    assert benchmark_module.unchanged_pairs("judge 15 %", 50, 400) <= 0.05
    assert benchmark_module.unchanged_nights("redrawn", 50, 1_000) <= 0.05
    assert benchmark_module.slide(20, 0.02, 50, 50)[1] == 1.0


# --- the gate of a suite ------------------------------------------------------------------------------------------


def test_a_suite_that_asks_for_nothing_has_no_verdict(nightly: Nightly) -> None:
    result = nightly.run(GOOD, gate={"coverage": 0.5})
    assert (result.verdict, result.checks, result.exit_code) == (None, (), 0)
    assert nightly.row(result).gate is None


def test_without_a_baseline_only_min_is_checked_and_that_is_said(nightly: Nightly) -> None:
    first = nightly.run(GOOD, gate={RECALL: {"min": 0.8, "max_drop": 0.03}})
    assert first.verdict is Verdict.PASS
    assert [check.what for check in first.checks] == ["mean"]
    assert "there is no baseline yet (last-passing): drops are not checked" in first.notes


def test_with_nothing_to_check_yet_the_first_run_becomes_the_baseline(nightly: Nightly) -> None:
    nightly.run(GOOD)
    second = nightly.run(GOOD, version="v2")
    assert second.verdict is Verdict.PASS
    assert second.baseline is not None
    assert second.baseline.startswith("v1 (run ")


@pytest.mark.parametrize(("least", "verdict"), [(0.6, Verdict.PASS), (0.61, Verdict.FAIL), (0.59, Verdict.PASS)])
def test_min_is_exact(nightly: Nightly, least: float, verdict: Verdict) -> None:
    assert nightly.run(BAD, gate={RECALL: {"min": least}}).verdict is verdict


def test_thresholds_are_in_the_scale_of_the_scorer(nightly: Nightly) -> None:
    scorers = [{RECALL: {"scale": 10}}]
    gate = {RECALL: {"min": 6, "max_drop": 0.5}}
    assert nightly.run(GOOD, gate=gate, scorers=scorers).verdict is Verdict.PASS
    worse = nightly.run(BAD, gate=gate, scorers=scorers)
    assert of(worse, "mean").numbers["mean"] == 6.0
    assert of(worse, "drop").numbers["difference"] == -4.0
    assert (of(worse, "mean").verdict, of(worse, "drop").verdict) == (Verdict.PASS, Verdict.FAIL)


def test_verdict_and_numbers_are_kept_with_the_run_and_the_comparison_in_its_table(nightly: Nightly) -> None:
    first = nightly.run(GOOD)
    second = nightly.run(BAD, version="v2")
    row = nightly.row(second)
    assert (row.gate_verdict, kept_exit_code(row.gate)) == ("fail", 1)
    assert row.gate == json.loads(json.dumps(second.as_dict()))
    assert select(
        nightly.history.path, "select baseline_run_id, run_id, scorer, n, difference, verdict, forced from comparisons"
    ).rows == [(first.run_id, second.run_id, RECALL, 30, -0.4, "fail", False)]


def test_last_passing_is_the_latest_run_that_did_not_fail(nightly: Nightly) -> None:
    first = nightly.run(GOOD)
    assert nightly.run(BAD, version="v2").verdict is Verdict.FAIL
    third = nightly.run([4] * 29 + [0], version="v3")
    assert of(third, "drop").numbers["baseline"] == first.run_id
    assert third.verdict is Verdict.INCONCLUSIVE
    assert of(nightly.run(GOOD, version="v4"), "drop").numbers["baseline"] == third.run_id


def test_a_pinned_version_and_a_pinned_run(nightly: Nightly) -> None:
    first = nightly.run(GOOD)
    nightly.run(BAD, version="v2", gate={RECALL: {"min": 0.5}})
    for pinned in ("version:v1", f"run:{first.run_id}"):
        result = nightly.run(BAD, version="v3", gate={"baseline": pinned, **GATE})
        assert of(result, "drop").numbers["baseline"] == first.run_id
        assert result.verdict is Verdict.FAIL


def test_a_baseline_in_another_history(nightly: Nightly, tmp_path: Path) -> None:
    first = nightly.run(GOOD)
    (tmp_path / "main").mkdir()
    nightly.history.path.rename(tmp_path / "main" / "history.duckdb")
    result = nightly.run(BAD, version="pr-7", gate={"baseline": "file:main/history.duckdb", **GATE})
    assert of(result, "drop").numbers["baseline"] == first.run_id
    assert result.verdict is Verdict.FAIL
    assert result.baseline == f"v1 (run {first.run_id} in main/history.duckdb)"


def test_another_history_that_is_not_there_yet_is_no_baseline_yet(nightly: Nightly) -> None:
    result = nightly.run(GOOD, gate={"baseline": "file:main/history.duckdb", **GATE})
    assert result.verdict is Verdict.PASS
    assert result.notes == ["there is no baseline yet (file:main/history.duckdb): drops are not checked"]


def test_a_pinned_baseline_that_is_not_there_is_found_before_anything_runs(nightly: Nightly) -> None:
    nightly.run(GOOD)
    for pinned in ("version:v0", "run:nothing"):
        suite = nightly.file("v2", {"baseline": pinned, **GATE}).suite
        with pytest.raises(UsageError):
            require_baselines(nightly.history, suite, base_dir=nightly.workspace.folder)
    for pinned in ("version:v2", "version:v1", "last-passing", "file:nowhere.duckdb"):  # v2 is run for the first time
        require_baselines(nightly.history, nightly.file("v2", {"baseline": pinned, **GATE}).suite)


def test_an_anchor_catches_what_each_night_tolerates(nightly: Nightly) -> None:
    gate = {"anchor": "version:v0", **GATE}
    results = [nightly.run([4] * 100, version="v0", gate=gate)]
    for deploy in range(1, 21):  # each loses two points: one fact in 8 items of 100
        lost = 8 * deploy
        facts = [4 - (lost // 100 + (number < lost % 100)) for number in range(100)]
        results.append(nightly.run(facts, version=f"v{deploy}", gate=gate))
        if results[-1].verdict is Verdict.FAIL:
            break
    assert len(results) == 3
    last = results[-1]
    assert of(last, "drop", against="anchor").verdict is Verdict.FAIL
    assert of(last, "drop", against="baseline").numbers["difference"] == pytest.approx(-0.02)
    assert of(last, "drop", against="baseline").verdict is not Verdict.FAIL


def test_runs_under_different_judges_are_not_compared_and_both_are_named(nightly: Nightly) -> None:
    nightly.run(GOOD)
    result = nightly.run(BAD, version="v2", judge=ScriptedJudge(default=True))
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "their judge differs (offline-lexical-1, scripted)" in of(result, "drop").said


def test_a_mean_over_survivors_is_no_improvement_and_no_verdict(nightly: Nightly) -> None:
    gate = {RECALL: {"min": 0.95, "max_drop": 0.03}}
    hard = [4] * 9 + [0]
    nightly.run(hard, gate={RECALL: {"max_drop": 0.03}})
    result = nightly.run([*hard[:9], None], version="v2", gate=gate)
    assert of(result, "drop").numbers["difference"] == 0.0
    assert of(result, "mean").numbers["mean"] == 1.0
    assert result.verdict is None
    assert result.notes[0].startswith("no verdict: coverage of context_recall is 0.9, below 0.95")
    assert any("1 item scored on one side only" in note for note in result.notes)
    assert nightly.row(result).gate_verdict is None
    again = nightly.run(hard, version="v3", gate=GATE)
    assert again.baseline is not None
    assert again.baseline.startswith("v1 ")  # what was not evaluated is no baseline


@pytest.mark.parametrize("found", [[4], [None, None, None], [2] * 12, [0] * 12])
def test_one_item_all_errors_and_constant_scores_have_a_sensible_end(nightly: Nightly, found: list[int | None]) -> None:
    gate = {"coverage": 0, RECALL: {"min": 0, "max_drop": 0.1}}
    nightly.run(found, gate=gate)
    result = nightly.run(found, version="v2", gate=gate)
    assert result.verdict is (Verdict.PASS if len(found) == 12 else Verdict.INCONCLUSIVE)
    assert "NaN" not in json.dumps(result.as_dict())


def test_error_rate_and_latency(nightly: Nightly) -> None:
    gate = {"coverage": 0, "max_error_rate": 0.1, "latency_p95_ms": 10_000}
    found = [4] * 9 + [None]
    result = nightly.run(found, gate=gate)
    assert (of(result, "error_rate").verdict, of(result, "latency_p95_ms").verdict) == (Verdict.PASS, Verdict.PASS)
    result = nightly.run([*found, None], gate={**gate, "latency_p95_ms": 1e-6})
    assert of(result, "error_rate").said == "2 of 11 items failed, more than 0.1"
    assert (of(result, "error_rate").verdict, of(result, "latency_p95_ms").verdict) == (Verdict.FAIL, Verdict.FAIL)


def test_a_slice_fails_although_the_whole_does_not(nightly: Nightly) -> None:
    langs = [{"lang": "de" if number < 10 else "en"} for number in range(100)]
    langs[99] = {"lang": "fr"}
    gate = {"slices": {"by": "metadata.lang"}, RECALL: {"min": 0.8, "max_drop": 0.2}}
    nightly.run([4] * 100, gate=gate, metadata=langs)
    result = nightly.run([0] * 9 + [4] * 91, version="v2", gate=gate, metadata=langs)
    assert of(result, "drop", slice=None).verdict is Verdict.PASS
    assert of(result, "mean", slice="lang=de").verdict is Verdict.FAIL
    assert of(result, "drop", slice="lang=de").verdict is Verdict.FAIL
    assert of(result, "drop", slice="lang=en").verdict is Verdict.PASS
    assert result.verdict is Verdict.FAIL
    assert "slice lang=fr has fewer than 10 items and is not gated" in result.notes


def test_a_slice_may_have_thresholds_of_its_own_and_never_makes_the_gate_inconclusive(nightly: Nightly) -> None:
    langs = [{"lang": "de" if number < 10 else "en"} for number in range(60)]
    gate = {"slices": {"by": "metadata.lang", "min_items": 5, RECALL: {"max_drop": 0.0}}, RECALL: {"max_drop": 0.3}}
    nightly.run([4] * 60, gate=gate, metadata=langs)
    result = nightly.run([3] + [4] * 59, version="v2", gate=gate, metadata=langs)
    assert of(result, "drop", slice="lang=de").verdict is Verdict.INCONCLUSIVE
    assert result.verdict is Verdict.PASS


def test_items_of_a_cluster_count_as_one(nightly: Nightly) -> None:
    shared = [{"cluster": "manual" if number < 12 else None} for number in range(60)]
    after = [0] * 12 + [4] * 48
    nightly.run([4] * 60, metadata=shared)
    assert nightly.run(after, version="v2", metadata=shared).verdict is Verdict.INCONCLUSIVE
    alone = [{"cluster": None}] * 60
    assert nightly.run(after, version="v3", metadata=alone, gate={"baseline": "version:v1", **GATE}).verdict is (
        Verdict.FAIL
    )


def test_the_noise_of_the_judge_is_tolerated(nightly: Nightly) -> None:
    first = nightly.run(GOOD)
    row = nightly.row(first)
    floor = {"noise_id": "n1", "run_id": row.run_id, "suite": row.suite, "scorer": RECALL, "judge": row.judge}
    nightly.history.store_noise([{**floor, "judge_params": row.judge_params, "repeats": 5, "n": 30, "floor": 0.5}])
    result = nightly.run(BAD, version="v2")
    assert of(result, "drop").numbers["max_drop"] == 0.5
    assert of(result, "drop").numbers["noise_floor"] == 0.5
    assert of(result, "drop").verdict is not Verdict.FAIL


@pytest.mark.parametrize(("setting", "code"), [("warn", 0), ("exit", 4), ("fail", 1)])
def test_what_an_inconclusive_gate_exits_with(setting: str, code: int) -> None:
    result = GateResult("r", Verdict.INCONCLUSIVE, on_inconclusive=setting)
    assert result.exit_code == kept_exit_code(result.as_dict()) == code
    assert kept_exit_code(None) == 0


def test_a_run_is_not_its_own_baseline_and_other_suites_are_none(nightly: Nightly) -> None:
    first = nightly.run(GOOD)
    row = nightly.row(first)
    found = find_baseline("last-passing", nightly.history, suite="harbour", retriever="search", than=row)
    assert found is None
    assert find_baseline("last-passing", nightly.history, suite="other", retriever="search") is None
    assert find_baseline("last-passing", nightly.history, suite="harbour", retriever="another") is None


@pytest.mark.parametrize(
    ("gate", "said"),
    [
        ({"coverge": 0.9}, "gate.coverge: unknown key `coverge` — did you mean `coverage`?"),
        ({"context_recal": {"min": 1}}, "no scorer is named `context_recal`; did you mean `context_recall`?"),
        ({RECALL: {"mim": 1}}, "gate.context_recall.mim: unknown key `mim` — did you mean `min`?"),
        ({RECALL: {}}, "gate.context_recall: asks for nothing; write `min` or `max_drop`"),
        ({RECALL: {"min": 1.5}}, "context_recall cannot reach 1.5: its scale ends at 1"),
        ({RECALL: {"min": True}}, "gate.context_recall.min: is true or false; write a number"),
        ({"baseline": "yesterday", **GATE}, "'yesterday' names no run; write last-passing, version:X"),
        ({"baseline": "version:v1", RECALL: {"min": 0.5}}, "`baseline` is not used; write `max_drop`"),
        ({"anchor": "last-passing", **GATE}, "gate.anchor: an anchor stays where it is"),
        ({"slices": "lang", **GATE}, "'lang' does not name metadata; write e.g. metadata.lang"),
    ],
)
def test_a_slip_in_the_gate_is_named_with_its_mend(nightly: Nightly, gate: Any, said: str) -> None:
    with pytest.raises(SuiteError) as caught:
        nightly.file("v1", gate)
    assert said in str(caught.value)


def test_the_level_is_that_of_the_interval() -> None:
    assert ALPHA == 0.025
