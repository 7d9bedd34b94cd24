"""Targets that are programs: real processes that answer, fail, hang, chatter and die."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ragscore.assembly import assemble
from ragscore.engine import evaluate_locally
from ragscore.errors import ConfigError
from ragscore.history import History
from ragscore.items import Context, Item
from ragscore.runs import begin
from ragscore.suite_file import check_suite, read_suite
from ragscore.targets import Target, TargetFailure, close, make_target
from tests.workspace import Workspace

#: Answers as the question says; notes its process id with each answer.
PROGRAM = """
import json, os, sys, time
print("loading the index", file=sys.stderr)
for line in sys.stdin:
    request = json.loads(line)
    question = request["input"]
    if question == "fail":
        reply = {"error": "no index for " + request["id"]}
    elif question == "die":
        print("out of memory, key", os.environ.get("KEY"), file=sys.stderr)
        sys.exit(3)
    elif question == "hang":
        time.sleep(60)
    elif question == "chatter":
        print("Loading weights...")
        reply = {"output": "late"}
    elif question == "other id":
        reply = {"id": "another", "output": "not yours"}
    elif question == "twice":
        print(json.dumps({"output": "one"}))
        reply = {"output": "two"}
    elif question == "long":
        reply = {"output": "x" * 1_000_000}
    elif question == "shape":
        reply = {"foo": 1}
    elif question == "request":
        reply = {"output": line}
    else:
        reply = {"id": request["id"], "output": question, "contexts": [{"text": question, "pid": os.getpid()}]}
    reply["pid"] = os.getpid()
    print(json.dumps(reply))
"""
Make = Callable[..., Target]


@pytest.fixture
async def make(tmp_path: Path) -> AsyncIterator[Make]:
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    made: list[Target] = []

    def making(run: Any = (sys.executable, "program.py"), **part: Any) -> Target:
        own: dict[str, Any] = {key: part.pop(key) for key in ("env", "start_s") if key in part}
        command: dict[str, Any] = {"run": list(run) if isinstance(run, tuple) else run, **own}
        written: dict[str, Any] = {"command": command, "timeout_s": 20, **part}
        file = check_suite(
            {"name": "n", "dataset": "d", "target": written}, base_dir=tmp_path, environment={"KEY": "sesame99"}
        )
        target = make_target(file.suite.target, written=written, base_dir=tmp_path, where=partial(file.where, "target"))
        made.append(target)
        return target

    yield making
    for target in made:
        await close(target)


def item(question: str, number: int = 1, **metadata: Any) -> Item:
    return Item(f"q{number}", question, metadata=metadata)


async def failure(target: Target, question: str) -> TargetFailure:
    with pytest.raises(TargetFailure) as caught:
        await target.invoke(item(question))
    return caught.value


async def test_one_process_answers_one_question_after_the_other(make: Make) -> None:
    target = make()
    responses = [await target.invoke(item(f"größe {n}\nline two", n)) for n in range(3)]
    assert [response.output for response in responses] == [f"größe {n}\nline two" for n in range(3)]
    assert responses[0].contexts == (Context("größe 0\nline two"),)
    assert len({response.raw["pid"] for response in responses}) == 1
    assert responses[0].latency_ms is not None


async def test_the_request_is_one_line_with_the_item_and_never_its_reference(make: Make) -> None:
    asked = Item("q", "request", reference="secret answer", metadata={"lang": "de"})
    response = await make().invoke(asked)
    assert response.output == (
        '{"id": "q", "input": "request", "metadata": {"lang": "de"}, '
        '"messages": [{"role": "user", "content": "request"}]}\n'
    )


async def test_calls_in_flight_have_a_process_each_which_is_used_again(make: Make) -> None:
    target = make()
    both = await asyncio.gather(target.invoke(item("a", 1)), target.invoke(item("b", 2)))
    again = await asyncio.gather(target.invoke(item("c", 3)), target.invoke(item("d", 4)))
    assert [response.output for response in both + again] == ["a", "b", "c", "d"]
    assert len({response.raw["pid"] for response in both}) == 2
    assert {response.raw["pid"] for response in both} == {response.raw["pid"] for response in again}


async def test_an_error_reply_is_a_failure_of_its_item_and_the_process_goes_on(make: Make) -> None:
    target = make()
    before = (await target.invoke(item("x"))).raw["pid"]
    assert str(await failure(target, "fail")) == "no index for q1"
    assert (await target.invoke(item("x"))).raw["pid"] == before


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("die", "ended with code 3 before it answered; it said: loading the index | out of memory, key ${KEY}"),
        ("chatter", "wrote a line that is no JSON: 'Loading weights...'; write replies alone to stdout"),
        ("other id", "answered 'another' when 'q1' was asked"),
        ("shape", "returned dict with the keys foo, pid; expected text"),
    ],
)
async def test_a_process_that_fails_is_replaced_by_a_new_one(make: Make, question: str, said: str) -> None:
    target = make(env={"KEY": "${KEY}"})
    before = (await target.invoke(item("x"))).raw["pid"]
    fault = await failure(target, question)
    assert str(fault).startswith(said)
    assert "sesame99" not in str(fault)
    assert not fault.passing
    after = await target.invoke(item("y"))
    assert after.output == "y"
    assert after.raw["pid"] != before


async def test_a_late_answer_ends_its_process_and_may_pass(make: Make) -> None:
    target = make(timeout_s=0.2, start_s=20)
    pid = (await target.invoke(item("x"))).raw["pid"]
    fault = await failure(target, "hang")
    assert (str(fault), fault.passing) == ("no answer within 0.2 s; it said: loading the index", True)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_what_nobody_asked_for_is_not_taken_for_the_next_answer(make: Make) -> None:
    target = make()
    assert (await target.invoke(item("twice"))).output == "one"
    for _ in range(500):  # until the second line has come
        if not target._idle[0].is_quiet:  # type: ignore[attr-defined]
            break
        await asyncio.sleep(0.01)
    assert (await target.invoke(item("x"))).output == "x"


async def test_a_long_reply_comes_through(make: Make) -> None:
    assert len((await make().invoke(item("long"))).output or "") == 1_000_000


async def test_a_program_that_ends_at_once_is_a_target_that_is_down(make: Make) -> None:
    fault = await failure(make((sys.executable, "-c", "import sys; sys.exit('no such index')")), "x")
    assert (str(fault), fault.passing) == ("ended with code 1 before it answered; it said: no such index", True)


async def test_closing_ends_the_processes_by_the_end_of_their_input(make: Make, tmp_path: Path) -> None:
    program = "import pathlib, sys\nfor line in sys.stdin: print('\"x\"')\npathlib.Path('ended').touch()"
    target = make((sys.executable, "-c", program))
    await target.invoke(item("x"))
    await close(target)
    assert (tmp_path / "ended").exists()
    assert (await target.invoke(item("x"))).output == "x"  # and may be asked again


async def test_a_process_that_does_not_end_is_killed_with_what_it_began(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ragscore.targets.command.GRACE_S", 0.05)
    program = (
        "import os, subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        'for line in sys.stdin: print(\'{"output": "x", "child": %d}\' % child.pid)\n'
        "time.sleep(60)"
    )
    target = make((sys.executable, "-c", program))
    child = (await target.invoke(item("x"))).raw["child"]
    await close(target)
    for _ in range(500):
        if not _runs(child):
            break
        await asyncio.sleep(0.01)
    assert not _runs(child)


def _runs(pid: int) -> bool:
    """Whether a process runs; one that ended and waits to be reaped by whoever adopted it does not."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (("no-such-program-anywhere",), "there is no program 'no-such-program-anywhere' — name one on the PATH"),
        (("./missing.sh",), "there is no program './missing.sh'"),
    ],
)
def test_a_program_that_is_not_there_is_found_before_anything_runs(
    tmp_path: Path, run: tuple[str, ...], said: str
) -> None:
    written = {"command": list(run)}
    file = check_suite({"name": "n", "dataset": "d", "target": written}, base_dir=tmp_path)
    with pytest.raises(ConfigError) as caught:
        make_target(file.suite.target, written=written, base_dir=tmp_path, where=partial(file.where, "target"))
    assert str(caught.value).startswith(f"suite: target.command.run: {said}")


RETRIEVER = """
import json, sys
topics = json.load(open("topics.json", encoding="utf-8"))
for line in sys.stdin:
    question = json.loads(line)["input"]
    found = [text for name, text in topics.items() if name in question]
    print(json.dumps({"contexts": found + ["The harbour was closed."]}))
"""


def test_a_suite_runs_its_command_in_its_folder_and_ends_it_afterwards(workspace: Workspace) -> None:
    (workspace.folder / "retriever.py").write_text(RETRIEVER, encoding="utf-8")
    target = {"version": "v1", "command": f"{sys.executable} retriever.py", "concurrency": 2, "top_k": 1}
    workspace.write_suite(target=target)
    run = begin(assemble(read_suite(workspace.suite)), History(workspace.history))
    asyncio.run(evaluate_locally(run))
    assert run.history.finish_run(run.run_id, status="complete").ok
    assert workspace.sql("select distinct status, score from scores") == [("ok", 1.0)]
    assert workspace.sql("select distinct returned_contexts from items") == [(1,)]
    assert workspace.sql("select target from runs") == [(f"command:{sys.executable} retriever.py",)]
