"""Every kind of scorer in a suite: through files, history and command line, without a key."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
import yaml

from ragscore.api import evaluate
from ragscore.errors import ConfigError, UsageError
from ragscore.gate import pair_runs
from ragscore.history import History
from ragscore.scorer_kinds import OPTIONS
from ragscore.scorers import ContextPrecision
from ragscore.suite_file import check_suite
from tests.workspace import TOPICS, Workspace, items

DOCS = Path(__file__).parent.parent.parent / "docs" / "scorers.md"
MINE = """
class Mentions:
    def __init__(self, word):
        self.word = word
    def score(self, sample, judged):
        return any(self.word in context.text for context in sample.contexts.contexts)

def cites_a_source(item, response):
    if item.id == "tea":
        raise LookupError("no tea")
    return "[" in (response.output or "")
"""


@pytest.fixture(autouse=True)
def _inside(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(workspace.folder)
    (workspace.folder / "my_scorers.py").write_text(MINE, encoding="utf-8")
    sys.modules.pop("my_scorers", None)


async def test_every_kind_gives_a_row_per_item_and_the_offline_judge_abstains_where_it_must(
    workspace: Workspace,
) -> None:
    rows = [
        {**row, "output": TOPICS[row["id"]], "reference_context_ids": [row["id"]], "contexts": [
            {"id": "x", "text": "The harbour was closed."}, {"id": row["id"], "text": TOPICS[row["id"]]}
        ]}
        for row in items()
    ]  # fmt: skip
    workspace.write_items(rows)
    kinds = [kind for kind in OPTIONS if kind not in ("python", "prompt", "plugin")]
    workspace.write_suite(
        target="none", scorers=[{kind: {"k": 2}} if kind == "precision_at_k" else kind for kind in kinds]
    )
    evaluation = await evaluate("suite.yaml")
    abstaining = {
        "hallucination", "answer_relevancy", "context_relevance", "context_entities_recall"
    }  # fmt: skip
    expected = {kind: None if kind in abstaining else 1.0 for kind in kinds}
    expected |= {
        "noise_sensitivity": 0.0, "context_precision": 0.5, "mrr": 0.5, "average_precision": 0.5, "precision_at_k": 0.5,
        "ndcg_at_k": 0.6309,
    }  # fmt: skip
    assert evaluation.scores == expected
    by_status = dict(workspace.sql("select status, count(*) from scores group by 1"))
    assert by_status == {"ok": 4 * (len(kinds) - 4), "abstained": 16}
    assert workspace.ragscore("show", "last", "--item", "tea").returncode == 0
    assert workspace.ragscore("validate", "suite.yaml").returncode == 0


async def test_answers_are_scored_where_the_target_returns_no_contexts(workspace: Workspace) -> None:
    workspace.write_suite(
        target={"python": "drinks:text_only"}, scorers=["answer_correctness", {"python": "my_scorers:cites_a_source"}]
    )
    evaluation = await evaluate("suite.yaml")
    assert evaluation.scores == {"answer_correctness": 0.0, "cites_a_source": 0.0}
    assert workspace.sql("select item_id, error from scores where status = 'scorer_error'") == [
        ("tea", "LookupError: no tea")
    ]


async def test_the_yaml_of_the_page_is_a_suite_and_its_python_scorers_run(workspace: Workspace) -> None:
    (text,) = re.findall(r"^```yaml\n(.*?)^```$", DOCS.read_text(encoding="utf-8"), re.M | re.S)
    workspace.write_suite(**yaml.safe_load(text))
    evaluation = await evaluate("suite.yaml")
    assert evaluation.scores == {"cites_a_source": 0.0, "mentions_tea": 0.25, "politeness": None}
    assert dict(workspace.sql("select scorer, any_value(status) from scores where item_id = 'mate' group by 1")) == {
        "cites_a_source": "ok", "mentions_tea": "ok", "politeness": "abstained"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("scorer", "said"),
    [
        ({"mrr": {"against": "output"}}, "`against` is no option of mrr"),
        ({"context_recall": {"k": 3}}, "`k` is no option of context_recall"),
        ({"python": {}}, "needs `call`"),
        ({"python": "my_scorers"}, "not of the form module:name"),
        ({"python": "my_scorers:cites"}, "my_scorers has no 'cites' — it has: Mentions, cites_a_source"),
        ({"python": "my_scorers:Mentions"}, "my_scorers:Mentions cannot be made: TypeError"),
        ({"python": {"call": "my_scorers:MINE"}}, "my_scorers has no 'MINE'"),
        (
            {"prompt": {"question": "?", "reply": {"a": "number"}, "score": "b"}},
            "the expression names 'b'; known are a",
        ),
        ({"prompt": {"question": "?", "reply": {"a": "number"}, "score": "a +"}}, "'a +' is not an expression"),
        ({"prompt": {"question": "?", "reply": {"a": "number"}}}, "needs `score`"),
        ({"context_relevance": {"weights": {"high": 2}}}, "a weight is a number in 0..1"),
        ("recal", "is not known here"),
    ],
)
async def test_a_scorer_that_is_written_wrong_is_told_before_anything_runs(
    workspace: Workspace, scorer: object, said: str
) -> None:
    workspace.write_suite(scorers=[scorer])
    with pytest.raises(ConfigError) as error:
        await evaluate("suite.yaml")
    assert said in str(error.value)
    assert workspace.calls() == []


async def test_a_scorer_of_ones_own_brings_its_scale_along_and_the_gate_reads_its_limits_in_it(
    workspace: Workspace,
) -> None:
    (workspace.folder / "scaled.py").write_text(
        "from ragscore import scorer\n"
        "@scorer(scale=10)\ndef by_function(item, response): return 7\n"
        "class ByClass:\n    scale = 5\n    def score(self, sample, judged): return 4\n"
    )
    scorers = [{"python": "scaled:by_function"}, {"python": "scaled:ByClass"}]
    limits = {"by_function": {"min": 6.5, "max_drop": 1}, "ByClass": {"min": 4}}
    for _ in range(2):
        workspace.write_suite(scorers=scorers, gate=limits)
        evaluation = await evaluate("suite.yaml")
    assert evaluation.scores == {"by_function": 7.0, "ByClass": 4.0}
    assert evaluation.passed
    told = {row["name"]: row["scale"] for row in evaluation.summary.run.scorers}
    assert told == {"by_function": 10.0, "ByClass": 5.0}
    workspace.write_suite(scorers=scorers, gate=limits | {"by_function": {"min": 7.5}})
    assert (await evaluate("suite.yaml")).exit_code == 1
    workspace.write_suite(scorers=scorers, gate=limits | {"by_function": {"min": 11}})
    with pytest.raises(ConfigError, match="by_function cannot reach 11: its scale ends at 10"):
        await evaluate("suite.yaml")


def test_a_gate_does_not_take_scorers_of_which_less_is_better() -> None:
    document = {"name": "x", "dataset": "d", "target": {"python": "a:b"}, "scorers": ["hallucination"]}
    with pytest.raises(ConfigError, match="less is better"):
        check_suite({**document, "gate": {"hallucination": {"min": 0.5}}})


async def test_an_installed_package_offers_scorers_by_an_entry_point(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = workspace.folder / "cites_pack-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: cites-pack\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[ragscore.scorers]\nmentions_it = my_scorers:Mentions\n")
    monkeypatch.syspath_prepend(str(workspace.folder))
    workspace.write_suite(scorers=[{"mentions_it": {"word": "straw", "scale": 2}}])
    evaluation = await evaluate("suite.yaml")
    assert evaluation.scores == {"mentions_it": 0.5}
    assert workspace.sql("select distinct kind, scorer from scores") == [("plugin", "mentions_it")]


async def test_fused_judging_gives_the_same_scores_where_relevance_is_stating_a_fact(workspace: Workspace) -> None:
    separate = await evaluate("suite.yaml")
    workspace.write_suite(fused=True, scorers=["context_recall", "context_precision"])
    fused = await evaluate("suite.yaml")
    assert fused.scores == separate.scores
    whys = workspace.sql(
        "select distinct why from verdicts where kind = 'context' and positive and why like 'states: %'"
    )
    assert whys
    assert json.loads(workspace.ragscore("schema").stdout)


FAMILY = ["context_recall", "context_precision", "context_utilization", "noise_sensitivity"]


async def test_separate_and_fused_runs_are_not_compared_whatever_the_judge_says_of_its_version(
    workspace: Workspace,
) -> None:
    rows = [
        {"id": f"q{n}", "input": "?", "reference": fact, "contexts": [fact, "Rain fell."], "output": fact}
        for n, fact in enumerate(f"Lamp {n} can be returned within {30 + n} days." for n in range(6))
    ]
    workspace.write_items(rows)
    runs = []
    for fused, scorers in ((False, FAMILY), (True, FAMILY[:2]), (True, FAMILY)):
        workspace.write_suite(fused=fused, scorers=scorers, target="none", judge="offline", contexts={"item": True})
        runs.append((await evaluate("suite.yaml")).run_id)
    versions = "select run_id, scorer, scorer_version from scores group by all"
    assert set(workspace.sql(versions)) == {
        *((runs[0], scorer, "1") for scorer in FAMILY),
        *((runs[1], scorer, "1-fused") for scorer in FAMILY[:2]),
        *((runs[2], scorer, "1-fused-answer") for scorer in FAMILY),
    }
    history = History(workspace.history)
    for before, after in ((0, 1), (0, 2), (1, 2)):
        with pytest.raises(UsageError, match="scorer version differs"):
            pair_runs(history, history.run(runs[before]), history.run(runs[after]))


def test_precision_against_the_output_is_never_fused_and_keeps_its_version() -> None:
    assert ContextPrecision(against="output", fused=True).version == ContextPrecision().version == "1"
