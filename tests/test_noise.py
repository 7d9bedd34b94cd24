"""The noise of a judge: the same stored retrievals judged again, the target never asked."""

from __future__ import annotations

import asyncio
import json
import math
import random
from collections.abc import Callable

import pytest

from ragscore.assembly import Parts, assemble
from ragscore.engine import evaluate_locally
from ragscore.errors import UsageError
from ragscore.gate import noise_floors
from ragscore.history import History, RunRow
from ragscore.judges import Judge
from ragscore.judges.scripted import ScriptedJudge
from ragscore.judges.tasks import Task
from ragscore.noise import Noise, measure_noise
from ragscore.runs import begin
from ragscore.suite_file import read_suite
from tests.workspace import Workspace, numbered_items

FACTS = 2  # claims per item


def two_claims(text: str, task: Task) -> list[str]:
    return [f"{text} one", f"{text} two"]


def judge_of(supported: Callable[[str, Task], bool | None]) -> ScriptedJudge:
    return ScriptedJudge(claims=two_claims, supported=supported, default=True)


def evaluated(workspace: Workspace, judge: Judge, count: int = 40) -> tuple[History, RunRow]:
    workspace.write_items(numbered_items(count))
    workspace.write_suite(scorers=["context_recall"])
    history = History(workspace.history)
    run = begin(assemble(read_suite(workspace.suite), judge=judge), history)
    asyncio.run(evaluate_locally(run))
    history.finish_run(run.run_id, status="complete")
    return history, history.run(run.run_id)


def measured(workspace: Workspace, judges: list[ScriptedJudge], count: int = 40) -> tuple[Noise, History]:
    history, row = evaluated(workspace, judge_of(lambda text, task: True), count)
    parts: list[Parts] = [assemble(read_suite(workspace.suite), judge=judge) for judge in judges]
    return asyncio.run(measure_noise(history, row, parts)), history


def flaky(seed: int, rate: float) -> ScriptedJudge:
    rng = random.Random(seed)
    return judge_of(lambda text, task: rng.random() >= rate)


def test_a_judge_that_never_changes_its_mind_has_no_noise(workspace: Workspace) -> None:
    noise, _ = measured(workspace, [judge_of(lambda text, task: True) for _ in range(3)])
    (recall,) = noise.scorers
    assert (recall.n, recall.flipped, recall.verdicts, recall.floor, recall.spread) == (40, 0, 80, 0.0, 0.0)


def test_flips_spread_and_floor_of_a_judge_that_flips_one_verdict_in_ten(workspace: Workspace) -> None:
    noise, _ = measured(workspace, [flaky(seed, 0.1) for seed in range(8)], count=100)
    (recall,) = noise.scorers
    assert recall.flip_rate == pytest.approx(1 - 0.9**8 - 0.1**8, abs=0.08)
    # One item: two verdicts, each .1 * .9 of variance, halved by the mean of two; one run: 100 items.
    expected = 1.96 * math.sqrt(2 * 100 * 0.09 / FACTS) / 100
    assert recall.floor == pytest.approx(expected, rel=0.15)
    assert recall.spread == pytest.approx(max(recall.means) - min(recall.means))
    assert len(recall.flipping) > 50


def test_the_target_is_not_asked_again_and_the_floor_is_kept_for_the_gate(workspace: Workspace) -> None:
    noise, history = measured(workspace, [flaky(seed, 0.2) for seed in range(3)])
    assert len(workspace.calls()) == 40
    history.store_noise(noise.rows("n1"))
    row = noise.run
    floors = noise_floors(history, row)
    assert floors["context_recall"].floor == noise.scorers[0].floor
    assert floors["context_recall"].n == 40


def test_items_that_a_repeat_could_not_score_are_left_out_and_counted(workspace: Workspace) -> None:
    silent = judge_of(lambda text, task: None if "Mate" in text else True)
    noise, _ = measured(workspace, [judge_of(lambda text, task: True), silent])
    (recall,) = noise.scorers
    assert (recall.n, recall.left_out) == (30, 10)


def test_one_repeat_is_refused(workspace: Workspace) -> None:
    with pytest.raises(UsageError, match="one repeat cannot differ from itself"):
        measured(workspace, [flaky(1, 0.1)])


def test_the_command_says_that_the_offline_judge_has_none(workspace: Workspace) -> None:
    assert workspace.ragscore("noise", "suite.yaml").returncode == 2
    workspace.ragscore("run", "suite.yaml")
    done = workspace.ragscore("noise", "suite.yaml", "--repeats", "2")
    assert done.returncode == 0, done.stderr
    assert "the offline judge decides by words alone: it has no noise by construction" in done.stdout
    shown = json.loads(workspace.ragscore("noise", "suite.yaml", "--repeats", "2", "--json").stdout)
    assert [each["floor"] for each in shown["scorers"]] == [0.0, 0.0]
    assert shown["deterministic"] is True
    assert workspace.sql("select count(*), max(floor) from noise") == [(4, 0.0)]
    assert len(workspace.calls()) == 4
