"""`ragscore doctor`, as a user meets it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from filelock import FileLock

from ragscore.addresses import without_secrets
from ragscore.cli.checkup import holder_of, litellm_release
from tests.judges.judged_suites import command
from tests.llm_server.running import running
from tests.workspace import Workspace


def test_all_is_well_without_a_suite_and_nothing_is_asked_or_made(workspace: Workspace) -> None:
    done = command(workspace, "doctor")
    assert done.returncode == 0, done.stdout
    for said in ("✓ python", "✓ litellm", "✓ prefect api    none is configured", "history.duckdb: not there yet"):
        assert said in done.stdout
    assert not (workspace.folder / ".ragscore").exists()


def test_a_judge_is_asked_one_small_thing_and_no_key_is_shown(workspace: Workspace) -> None:
    with running(api_key="sk-secret") as server:
        address = server.url.replace("http://", "http://user:password@")
        workspace.write_suite(judge={"model": "openai/lexical", "base_url": address, "api_key_env": "JUDGE_KEY"})
        done = command(workspace, "doctor", "suite.yaml", JUDGE_KEY="sk-secret")
        assert "✗ judge answers  judge.base_url: holds a user or a password" in done.stdout
        assert "user:password" not in done.stdout + done.stderr
        workspace.write_suite(judge={"model": "openai/lexical", "base_url": server.url, "api_key_env": "JUDGE_KEY"})
        before = server.stats()["requests"]
        done = command(workspace, "doctor", "suite.yaml", "--json", JUDGE_KEY="sk-secret")
        assert done.returncode == 0, done.stdout
        assert server.stats()["requests"] == before + 1
        said = {check["about"]: check["said"] for check in json.loads(done.stdout)["checks"]}
        assert said["judge"] == f"openai/lexical at {server.url}"
        assert said["key"] == "JUDGE_KEY is set"
        assert "asked for json_schema, with temperature 0.0" in said["judge answers"]
        refused = command(workspace, "doctor", "suite.yaml", JUDGE_KEY="sk-wrong")
        assert refused.returncode == 3
        assert "✗ judge answers  " in refused.stdout
        assert "sk-" not in done.stdout + refused.stdout + refused.stderr
        missing = command(workspace, "doctor", "suite.yaml")
        assert "! key            JUDGE_KEY is not set" in missing.stdout
        assert missing.returncode == 3


def test_what_is_broken_is_said_and_is_exit_3(workspace: Workspace) -> None:
    workspace.history.parent.mkdir()
    workspace.history.write_text("no database")
    (workspace.history.parent / "judgements.sqlite").write_text("no database either")
    workspace.write_suite(scorers=["context_recal"])
    done = command(workspace, "doctor", "suite.yaml", PREFECT_API_URL="http://user:password@127.0.0.1:9/api")
    assert done.returncode == 3
    for said in ("✗ suite", "✗ prefect api", "✗ history", "! judgements"):
        assert said in done.stdout
    assert "Traceback" not in done.stderr


def test_the_history_and_runs_that_were_left_unfinished_are_named(workspace: Workspace) -> None:
    from ragscore.assembly import assemble
    from ragscore.history import History
    from ragscore.runs import begin
    from ragscore.suite_file import read_suite

    begin(assemble(read_suite(workspace.suite)), History(workspace.history), run_id="20260101-000000-abcdef")
    said = workspace.ragscore("doctor").stdout
    assert "1 run" in said
    assert "20260101-000000-abcdef is being written by process" in said


def test_who_holds_a_lock_is_named(workspace: Workspace) -> None:
    lock = workspace.folder / ".ragscore" / "judgements.sqlite.lock"
    lock.parent.mkdir()
    program = f"""
import sys
from filelock import FileLock
lock = FileLock({str(lock)!r})
lock.acquire()
print(flush=True)
sys.stdin.read()
"""
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    process.stdout.readline()
    said = workspace.ragscore("doctor")
    assert said.returncode == 0
    assert f"{Path('.ragscore') / lock.name} is held by " in said.stdout
    if sys.platform == "linux" and holder_of(lock) is not None:
        assert f"is held by process {process.pid}" in said.stdout
    process.communicate("")
    assert "is held by" not in workspace.ragscore("doctor").stdout
    with FileLock(lock):
        pass


@pytest.mark.parametrize("release", ["1.82.7", "1.82.8", "1.107.0", "1.107.3"])
def test_malicious_releases_are_named(release: str) -> None:
    check = litellm_release(release)
    assert check.state == "failed"
    assert "malicious" in check.said


@pytest.mark.parametrize("release", ["1.82.70", "1.110.2", "1.108.0"])
def test_other_releases_are_fine(release: str) -> None:
    assert litellm_release(release).state == "ok"


def test_addresses_are_shown_without_credentials() -> None:
    assert without_secrets("https://me:secret@host:1/v1?key=secret#x") == "https://host:1/v1"


def test_each_judge_of_a_jury_is_asked(workspace: Workspace) -> None:
    with running() as server:
        models = [{"model": "openai/one"}, {"model": "openai/two"}, "offline"]
        workspace.write_suite(judge={"base_url": server.url, "jury": models})
        said = command(workspace, "doctor", "suite.yaml")
        assert said.returncode == 0, said.stdout
        assert said.stdout.count("judge answers  yes") == server.stats()["requests"] == 2
