"""`evaluate`: a suite from Python goes into the same history as `ragscore run`."""

from __future__ import annotations

from typing import Any

import pytest

from ragscore import ContextRecall, evaluate
from ragscore.errors import ConfigError
from tests.workspace import TOPICS, Workspace, items


@pytest.fixture(autouse=True)
def _inside(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(workspace.folder)


async def test_a_suite_file_a_mapping_and_rows_are_runs_in_the_history(workspace: Workspace) -> None:
    from_file = await evaluate("suite.yaml", version="v2")
    document: dict[str, Any] = {"name": "drinks", "dataset": "questions.jsonl", "target": {"python": "drinks:retrieve"}}
    from_mapping = await evaluate(document, version="v3", scorers=["context_recall"])
    from_rows = await evaluate(items(), target=lambda question: list(TOPICS.values()), name="drinks", version="v4")
    assert from_file.scores == {"context_recall": 1.0, "context_precision": 1.0}
    assert from_mapping.scores == {"context_recall": 1.0}
    assert from_rows.scores["context_recall"] == 1.0
    rows = workspace.sql("select version, trigger, status, run_id from runs order by version")
    assert [row[:3] for row in rows] == [(version, "api", "complete") for version in ("v2", "v3", "v4")]
    assert [row[3] for row in rows] == [from_file.run_id, from_mapping.run_id, from_rows.run_id]
    assert all(each.passed and each.exit_code == 0 for each in (from_file, from_mapping, from_rows))


async def test_another_target_is_called_as_the_suite_says(workspace: Workspace) -> None:
    def found(question: str) -> list[dict[str, str]]:
        return [{"id": each, "text": each} for each in ("x", "a")]

    target = {"python": "drinks:retrieve", "version": "v7", "top_k": 1, "rps": 100}
    workspace.write_items([{"id": "one", "input": "?", "reference_context_ids": ["a"]}])
    workspace.write_suite(target=target, scorers=["hit_rate"])
    assert (await evaluate("suite.yaml", target=found)).scores == {"hit_rate": 0.0}
    assert workspace.sql("select version from runs") == [("v7",)]
    assert workspace.sql("select count(*) from contexts") == [(1,)]


async def test_a_gate_that_fails_and_low_coverage_are_told_by_assert_passes(workspace: Workspace) -> None:
    workspace.order(**{"What_about_tea?": "nothing"})
    failed = await evaluate("suite.yaml", name="strict")
    assert failed.passed
    workspace.write_suite(gate={"context_recall": {"min": 0.9}})
    failed = await evaluate("suite.yaml")
    assert failed.exit_code == 1
    with pytest.raises(AssertionError, match=r"context_recall.*0\.75(.|\n)*ragscore show"):
        failed.assert_passes()
    workspace.order(all_="raise")
    with pytest.raises(AssertionError, match="coverage"):
        (await evaluate("suite.yaml")).assert_passes()


async def test_what_is_wrong_is_told_before_anything_is_asked(workspace: Workspace) -> None:
    with pytest.raises(ConfigError, match="recal"):
        await evaluate("suite.yaml", scorers=["context_recal"])
    with pytest.raises(ConfigError, match=r"scorers\[0\]: is a ContextRecall; evaluate takes .* run_evals"):
        await evaluate("suite.yaml", scorers=[ContextRecall(context=["Tea."])])  # type: ignore[list-item]
    with pytest.raises(ConfigError, match="'context_recal' is not known"):
        await evaluate("suite.yaml", scorers="context_recal")
    with pytest.raises(ConfigError, match="no such file"):
        await evaluate("nothing.yaml")
    assert workspace.calls() == []
    assert not workspace.history.exists()


async def test_a_run_of_objects_of_python_says_so_when_it_is_resumed(workspace: Workspace) -> None:
    def failing(question: str) -> list[str]:
        raise ValueError("not now")

    evaluation = await evaluate(items(), target=failing, name="notebook")
    resumed = workspace.ragscore("resume", evaluation.run_id)
    assert resumed.returncode == 2
    assert f"run {evaluation.run_id} was made by evaluate(…) in Python" in resumed.stderr
