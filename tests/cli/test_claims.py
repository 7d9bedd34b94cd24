"""`ragscore claims`, as a user meets it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator

import pytest

from tests.judges.judged_suites import JudgedSuite, command, port_items
from tests.llm_server.running import running
from tests.workspace import Workspace, items


@pytest.fixture
def suite(workspace: Workspace) -> Iterator[JudgedSuite]:
    with running() as server:
        made = JudgedSuite(workspace, server, {"price": {"input_per_million": 1, "output_per_million": 1}})
        made.write(port_items(3))
        yield made


def claims(suite: JudgedSuite, *arguments: str) -> subprocess.CompletedProcess[str]:
    return command(suite.workspace, "claims", *arguments)


def edit(suite: JudgedSuite, place: int, claims: list[str]) -> None:
    lines = suite.frozen()
    lines[place]["claims"] = claims
    suite.claims_file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def test_what_is_missing_is_frozen_once_then_listed_and_shown(suite: JudgedSuite) -> None:
    listed = json.loads(claims(suite, "list", "suite.yaml", "--json").stdout)
    assert {row["origin"] for row in listed["claims"]} == {"missing"}
    assert suite.requests() == 0
    done = claims(suite, "refresh", "suite.yaml", "--missing")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("questions.claims.jsonl: 3 of 3 references changed (3 calls, $0.0")
    asked = suite.requests()
    assert "0 of 0 references changed" in claims(suite, "refresh", "suite.yaml", "--missing").stdout
    assert suite.requests() == asked
    assert "3 of 3 references have claims" in claims(suite, "list", "suite.yaml").stdout
    shown = claims(suite, "show", "suite.yaml", "i001").stdout
    assert "frozen from openai/lexical" in shown
    assert "  2. Its keeper sold lamps to ships." in shown
    assert command(suite.workspace, "run", "suite.yaml", "--frozen").returncode == 0


def test_diff_asks_the_judge_without_memory_and_refresh_keeps_a_persons_edits(suite: JudgedSuite) -> None:
    assert claims(suite, "refresh", "suite.yaml").returncode == 0
    edit(suite, 0, ["The lighthouse was lit.", "In 1700."])
    suite.server.control(reset=True, always=["fewer_claims"])
    different = json.loads(claims(suite, "diff", "suite.yaml", "--json").stdout)
    assert [row["item_id"] for row in different["differences"]] == ["i000", "i001", "i002"]
    assert different["differences"][0]["origin"] == "edited"
    assert different["differences"][1]["removed"] == ["Its keeper sold lamps to ships."]
    assert different["calls"] == 3
    one = claims(suite, "diff", "suite.yaml", "--item", "i002").stdout
    assert "  - Its keeper sold lamps to ships." in one
    assert "1 of 1 references would have other claims (1 call, $0.0" in one
    before = suite.frozen()
    done = claims(suite, "refresh", "suite.yaml")
    assert "kept as a person edited them: i000 (--force replaces them)" in done.stdout
    after = suite.frozen()
    assert after[0] == before[0]
    assert [len(line["claims"]) for line in after] == [2, 1, 1]
    forced = json.loads(claims(suite, "refresh", "suite.yaml", "--force", "--item", "i000", "--json").stdout)
    assert (forced["changed"], forced["kept_edits"]) == (["i000"], [])
    assert [len(line["claims"]) for line in suite.frozen()] == [1, 1, 1]


def test_an_extraction_that_fails_changes_nothing_and_is_exit_3(suite: JudgedSuite) -> None:
    assert claims(suite, "refresh", "suite.yaml").returncode == 0
    before = suite.frozen()
    suite.server.control(always=["malformed"])
    done = claims(suite, "refresh", "suite.yaml")
    assert done.returncode == 3
    assert "error: i000: the claims could not be extracted: malformed" in done.stderr
    assert suite.frozen() == before


def test_the_offline_judge_freezes_claims_when_asked_to(workspace: Workspace) -> None:
    workspace.write_items([*items(["tea", "mate"]), {"id": "own", "input": "?", "reference": "x", "claims": ["Own."]}])
    assert command(workspace, "claims", "refresh", "suite.yaml").returncode == 0
    listed = json.loads(command(workspace, "claims", "list", "suite.yaml", "--json").stdout)
    assert [(row["item_id"], row["origin"], row["judge"]) for row in listed["claims"]] == [
        ("tea", "frozen", "offline-lexical-1"),
        ("mate", "frozen", "offline-lexical-1"),
        ("own", "item", None),
    ]
    workspace.write_items(items(["tea"]))
    left = json.loads(command(workspace, "claims", "list", "suite.yaml", "--json").stdout)
    assert [row["input"] for row in left["unused"]] == ["What about mate?"]


def test_looking_at_claims_needs_no_key(suite: JudgedSuite) -> None:
    suite.write(judge={"api_key_env": "NO_SUCH_KEY"})
    assert claims(suite, "list", "suite.yaml").returncode == 0
    refused = claims(suite, "diff", "suite.yaml")
    assert (refused.returncode, "NO_SUCH_KEY is not set" in refused.stderr) == (2, True)
    unknown = claims(suite, "show", "suite.yaml", "i9")
    assert (unknown.returncode, "'i9'" in unknown.stderr) == (2, True)
