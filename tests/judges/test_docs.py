"""What docs/judges.md and docs/claims.md show is what happens."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
import yaml

from ragscore.judges.llm.addresses import key_variable
from ragscore.judges.llm.declared import llm_judge
from ragscore.suite import JudgePart
from ragscore.suite_file import check_suite
from tests.judges.judged_suites import JudgedSuite, command

DOCS = Path(__file__).parent.parent.parent / "docs"


def blocks(name: str, kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", (DOCS / name).read_text(encoding="utf-8"), re.M | re.S)


@pytest.fixture
def lamps(suite: JudgedSuite) -> JudgedSuite:
    row = {
        "id": "refund-window",
        "input": "How long can I return a lamp?",
        "reference": "Lamps can be returned within 30 days. The receipt is needed for a return.",
        "contexts": ["Lamps can be returned within 30 days of purchase.", "We sell lamps."],
    }
    suite.write([row])
    return suite


@pytest.mark.parametrize("text", blocks("judges.md", "yaml"))
def test_each_judge_shown_can_be_declared(text: str) -> None:
    document = {"name": "s", "dataset": "d.jsonl", "target": {"python": "a:b"}, **yaml.safe_load(text)}
    part = check_suite(document, environment={}).suite.judge
    variable = key_variable(part)
    judge = llm_judge(part, environment={} if variable is None else {variable: "a key"})
    assert judge.name == part.model


def test_the_table_of_options_has_them_all_with_their_defaults() -> None:
    table = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| (.*?) \|", (DOCS / "judges.md").read_text(encoding="utf-8"), re.M)
    told = {name.strip("`"): default for names, default in table for name in names.split(", ")}
    options = JudgePart.model_fields
    shown = set(told) & set(options)
    # Judges of several models have a page of their own.
    assert {"model", "base_url", "evidence", "budget_usd", "max_contexts_per_call"} <= shown
    for name in shown:
        default = options[name].default
        if isinstance(default, (int, float)) and not isinstance(default, bool):
            assert float(told[name]) == default, name


def test_the_commands_work_in_their_order(lamps: JudgedSuite) -> None:
    for text in (*blocks("claims.md", "sh"), *blocks("judges.md", "sh")):
        for line in text.splitlines():
            program, *arguments = shlex.split(line)
            assert program == "ragscore"
            done = command(lamps.workspace, *arguments)
            assert done.returncode == 0, (line, done.stdout, done.stderr)
    (example,) = (json.loads(line) for line in blocks("claims.md", "json"))
    (frozen,) = lamps.frozen()
    assert list(frozen) == list(example)
    assert frozen["claims"] == example["claims"]
    assert frozen["prompt"] == example["prompt"]


def test_the_queries_work(lamps: JudgedSuite) -> None:
    lamps.server.control(always=["yes_to_all"])
    lamps.run()
    for query in blocks("judges.md", "sql"):
        assert lamps.workspace.sql(query)
