"""Scorers, targets, dataset readers and judges of installed packages, found by their entry points.

The package is the one of docs/plugins.md, laid out as an installer would: a module and its `.dist-info`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
import yaml

from ragscore import plugins
from ragscore.api import evaluate, evaluate_sync
from ragscore.assembly import assemble, checked
from ragscore.errors import ConfigError
from ragscore.forecast import forecast
from ragscore.history import History
from ragscore.judges import setup as judge_setup_module
from ragscore.suite import JudgePart, Suite
from ragscore.suite_file import read_suite
from ragscore.suite_schema import suite_schema
from tests.documents import shown_files
from tests.workspace import Workspace

SHOWN = dict(shown_files("plugins.md"))


def install(site: Path, name: str, points: Mapping[str, Mapping[str, str]], module: str) -> Path:
    """What is left in a folder of packages when `name` was installed; `points` are entry points by group."""
    info = site / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", encoding="utf-8")
    lines = [
        f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in of.items()) for group, of in points.items()
    ]
    (info / "entry_points.txt").write_text("\n".join(lines), encoding="utf-8")
    (site / f"{name.replace('-', '_')}.py").write_text(module, encoding="utf-8")
    return site


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on the path that holds the package of the page."""
    project = tomllib.loads(SHOWN["pyproject.toml"])["project"]
    folder = install(tmp_path / "site", project["name"], project["entry-points"], SHOWN["acme_rag.py"])
    monkeypatch.syspath_prepend(str(folder))
    sys.modules.pop("acme_rag", None)
    yield folder
    sys.modules.pop("acme_rag", None)


@pytest.fixture
def acme(site: Path, workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """The suite of the page, beside the package."""
    monkeypatch.chdir(workspace.folder)
    for name in ("tickets.json", "suite.yaml"):
        (workspace.folder / name).write_text(SHOWN[name], encoding="utf-8")
    return workspace


def parts() -> dict[str, Any]:
    """The page's suite as a document."""
    document: dict[str, Any] = yaml.safe_load(SHOWN["suite.yaml"])
    return document


async def test_the_suite_of_the_page_runs_with_a_package_in_all_four_places(acme: Workspace) -> None:
    evaluation = await evaluate("suite.yaml")
    assert evaluation.scores == {"context_recall": 1.0, "context_precision": 1.0, "acme_cited": 1.0}
    assert acme.sql("select item_id from items") == [("17",)]
    assert acme.sql("select distinct judge from scores where judge <> ''") == [("acme-words-1",)]
    assert acme.sql("select target, dataset from runs") == [("plugin:acme", "tickets.json")]


@pytest.mark.parametrize("group", ["scorers", "targets", "datasets", "judges"])
async def test_each_group_works_without_the_others(group: str, acme: Workspace) -> None:
    (acme.folder / "tickets.py").write_text(
        "def rows():\n    return [{'id': '17', 'input': 'How long can I return a lamp?',"
        " 'reference': 'Lamps can be returned within 30 days.'}]\n"
        "def search(question):\n    return [{'id': 'lamps-1', 'text': 'Lamps can be returned within 30 days.'}]\n"
    )
    document = parts()
    ours: dict[str, Any] = {
        "scorers": ["context_recall"],
        "target": {"retriever": "r", "version": "1", "python": "tickets:search"},
        "dataset": {"python": "tickets:rows"},
        "judge": "offline",
    }
    key = {"targets": "target", "datasets": "dataset", "judges": "judge"}.get(group, group)
    acme.suite.write_text(yaml.safe_dump({**ours, "name": "one", key: document[key]}))
    sys.modules.pop("tickets", None)
    evaluation = await evaluate("suite.yaml")
    assert set(evaluation.scores.values()) == {1.0}


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ({"scorers": ["acme_sited"]}, "'acme_sited' is not known here — did you mean `acme_cited`?"),
        ({"target": {"plugin": "acmee"}}, "no installed package offers a target 'acmee' — did you mean `acme`?"),
        (
            {"dataset": {"plugin": "acme_ticket"}},
            "no installed package offers a dataset reader 'acme_ticket' — did you mean `acme_tickets`?",
        ),
        (
            {"judge": {"plugin": "zzz"}},
            "no installed package offers a judge 'zzz' — install the package; installed ones offer: acme",
        ),
        ({"target": {"plugin": {"acme": {"indx": 1}}}}, "acme cannot be made: TypeError"),
        ({"dataset": {"plugin": {"acme_tickets": {"path": 1}}}}, "plugin acme_tickets fails: "),
        ({"target": {"plugin": {"a": {}, "b": {}}}}, "names one plugin; write its name"),
        ({"target": {"plugin": "acme", "python": "a:b"}}, "a target is called in one way"),
        ({"dataset": {"plugin": "acme_tickets", "sql": "SELECT 1"}}, "`plugin` reads the rows itself"),
        ({"judge": {"plugin": "acme", "base_url": "http://x"}}, "`base_url` is not for a plugin"),
    ],
)
def test_what_is_wrong_with_a_plugin_is_told_by_validate(part: dict[str, Any], said: str, acme: Workspace) -> None:
    acme.suite.write_text(yaml.safe_dump({**parts(), **part}))
    faults, _ = checked(acme.suite)
    assert [fault for fault in map(str, faults) if said in fault], list(map(str, faults))
    assert all("suite.yaml" in str(fault) for fault in faults)


@pytest.mark.parametrize("group", ["scorers", "targets", "datasets", "judges"])
def test_a_package_that_cannot_be_imported_is_named_with_the_reason(
    group: plugins.Group, acme: Workspace, site: Path
) -> None:
    install(site, "broken-pack", {f"ragscore.{group}": {"broken": "broken_pack:thing"}}, "import no_such_module_here\n")
    key = {"targets": "target", "datasets": "dataset", "judges": "judge"}.get(group, group)
    named: Any = ["broken"] if group == "scorers" else {"plugin": "broken"}
    acme.suite.write_text(yaml.safe_dump({**parts(), key: named}))
    (fault,) = checked(acme.suite)[0]
    called = plugins.CALLED[group]
    assert f"the {called} 'broken' of the package broken-pack cannot be imported: ModuleNotFoundError" in str(fault)
    assert "no_such_module_here" in str(fault)


def test_two_packages_that_offer_the_same_name_are_both_named(acme: Workspace, site: Path) -> None:
    install(site, "other-pack", {"ragscore.targets": {"acme": "other_pack:thing"}}, "thing = print\n")
    (fault,) = checked(acme.suite)[0]
    assert "several packages offer a target 'acme': acme-rag, other-pack" in str(fault)


def test_nothing_of_a_package_is_imported_unless_a_suite_names_it(workspace: Workspace, tmp_path: Path) -> None:
    groups = ("scorers", "targets", "datasets", "judges")
    site = install(
        tmp_path / "site",
        "loud-pack",
        {f"ragscore.{group}": {"loud": "loud_pack:thing"} for group in groups},
        "raise SystemExit('imported')\n",
    )
    for command in (("validate", "suite.yaml"), ("run", "suite.yaml"), ("schema",)):
        done = workspace.ragscore(*command, PYTHONPATH=str(site))
        assert done.returncode == 0, done.stderr
    workspace.write_suite(scorers=["loud"])
    done = workspace.ragscore("validate", "suite.yaml", PYTHONPATH=str(site))
    assert done.returncode == 2
    assert "cannot be imported: SystemExit: imported" in done.stderr


def test_the_schema_takes_the_suite_of_the_page_and_its_package_s_scorers(site: Path) -> None:
    schema = suite_schema()
    jsonschema.validate(parts(), schema)
    jsonschema.validate({**parts(), "scorers": ["acme_cited"]}, schema)
    wrongs: list[dict[str, Any]] = [
        {"scorers": ["no_such"]},
        {"target": {"plugin": 3}},
        {"judge": {"plugin": {"a": {}, "b": {}}}},
        {"dataset": {"plugin": []}},
    ]
    for wrong in wrongs:
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**parts(), **wrong}, schema)


def test_a_value_of_the_environment_stays_out_of_what_a_target_says(acme: Workspace, site: Path) -> None:
    module = """
class Secretive:
    def __init__(self, key): self.key = key
    def retrieve(self, question): raise PermissionError(f"not with {self.key}")
"""
    install(site, "secret-pack", {"ragscore.targets": {"secretive": "secret_pack:Secretive"}}, module)
    target = {"retriever": "r", "version": "1", "plugin": {"secretive": {"key": "${ACME_KEY}"}}}
    acme.suite.write_text(yaml.safe_dump({**parts(), "target": target, "retries": 0}))
    done = subprocess.run(
        acme.command("run", "suite.yaml"),
        cwd=acme.folder,
        env=acme.environment(PYTHONPATH=str(site), ACME_KEY="hunter2-hunter2"),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 3
    assert acme.sql("select error from items") == [("PermissionError: not with ${ACME_KEY}",)]
    assert b"hunter2" not in acme.history.read_bytes()


SECRET = "hunter2-hunter2"
TELLING = """
from ragscore.items import Call, Judgement, Status
from acme_rag import WordJudge
class Telling(WordJudge):
    def __init__(self, key): self.key = key
    async def ask(self, task): raise PermissionError(f"not with {self.key}")
class Returning(Telling):
    async def ask(self, task):
        said = f"not with {self.key}"
        call = Call(task.name, "m", "text", "malformed", error=said, reply=said)
        return Judgement(self.name, Status.JUDGE_ERROR, error=said, raw=said, calls=(call,))
class Scored:
    def __init__(self, key): self.key = key
    def score(self, sample, judged): raise PermissionError(f"not with {self.key}")
class Unmade:
    def __init__(self, key): raise PermissionError(f"not with {key}")
def rows(key):
    raise PermissionError(f"not with {key}")
"""
TELLING_POINTS = {
    "ragscore.judges": {
        "telling": "telling_pack:Telling",
        "returning": "telling_pack:Returning",
        "unmade": "telling_pack:Unmade",
    },
    "ragscore.scorers": {"telling": "telling_pack:Scored", "unmade_scorer": "telling_pack:Unmade"},
    "ragscore.targets": {"unmade": "telling_pack:Unmade"},
    "ragscore.datasets": {"telling": "telling_pack:rows"},
}
KEY = {"key": "${ACME_KEY}"}


@pytest.fixture
def telling(acme: Workspace, site: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """Beside the package of the page, one whose every part tells its key when it fails."""
    install(site, "telling-pack", TELLING_POINTS, TELLING)
    sys.modules.pop("telling_pack", None)
    monkeypatch.setenv("ACME_KEY", SECRET)
    return acme


async def test_a_value_of_the_environment_stays_out_of_what_judges_and_scorers_say_and_of_the_history(
    telling: Workspace,
) -> None:
    (telling.folder / "own.py").write_text(TELLING)
    own = {"call": "own:Scored", "options": {"key": "key ${ACME_KEY}"}, "name": "own", "scale": 10}
    scorers: list[Any] = ["context_recall", {"telling": {**KEY, "name": "theirs"}}, {"python": own}]
    document = {**parts(), "judge": {"plugin": {"telling": KEY}}, "scorers": scorers}
    telling.suite.write_text(yaml.safe_dump(document))
    await evaluate("suite.yaml")
    assert telling.sql("select distinct scorer, reason, error from scores order by 1") == [
        (scorer, f"the scorer failed: {said}", said)
        for scorer, said in (
            ("context_recall", "PermissionError: not with ${ACME_KEY}"),
            ("own", "PermissionError: not with key ${ACME_KEY}"),
            ("theirs", "PermissionError: not with ${ACME_KEY}"),
        )
    ]
    ((stored,),) = telling.sql("select scorers::varchar from runs")
    of = {each["name"]: each for each in json.loads(stored)}
    assert list(of) == ["context_recall", "theirs", "own"]
    assert (of["context_recall"]["kind"], of["theirs"]["kind"], of["own"]["kind"]) == (
        "context_recall",
        "plugin",
        "python",
    )
    assert (of["context_recall"]["scale"], of["own"]["scale"]) == (1.0, 10.0)
    assert (of["theirs"]["options"], of["own"]["options"]) == (KEY, own["options"])
    assert SECRET.encode() not in telling.history.read_bytes()


async def test_a_value_of_the_environment_stays_out_of_the_errors_that_a_judge_returns(telling: Workspace) -> None:
    document = {**parts(), "judge": {"plugin": {"returning": KEY}}, "scorers": ["context_precision"]}
    telling.suite.write_text(yaml.safe_dump(document))
    await evaluate("suite.yaml")
    said = "not with ${ACME_KEY}"
    assert telling.sql("select distinct status, error, raw from scores") == [("judge_error", said, said)]
    assert telling.sql("select distinct error, reply from judge_calls") == [(said, said)]
    ((reason,),) = telling.sql("select distinct reason from scores")
    assert said in reason
    assert SECRET.encode() not in telling.history.read_bytes()


@pytest.mark.parametrize(
    "part",
    [
        {"judge": {"plugin": {"unmade": KEY}}},
        {"judge": {"jury": ["offline", {"plugin": {"unmade": KEY}}]}},
        {"scorers": [{"unmade_scorer": KEY}]},
        {"target": {"plugin": {"unmade": KEY}}},
        {"dataset": {"plugin": {"telling": KEY}}},
    ],
)
def test_a_value_of_the_environment_stays_out_of_what_is_told_of_a_part_that_cannot_be_made(
    part: dict[str, Any], telling: Workspace
) -> None:
    telling.suite.write_text(yaml.safe_dump({**parts(), **part}))
    (fault,) = checked(telling.suite)[0]
    assert "PermissionError: not with ${ACME_KEY}" in str(fault)


async def test_what_a_plugin_holds_is_let_go_of_when_the_run_ends(acme: Workspace, site: Path) -> None:
    module = """
from acme_rag import Search, WordJudge
closed = []
class OpenSearch(Search):
    async def aclose(self): closed.append("target")
class OpenJudge(WordJudge):
    async def aclose(self): closed.append("judge")
"""
    points = {"ragscore.targets": {"open": "open_pack:OpenSearch"}, "ragscore.judges": {"open": "open_pack:OpenJudge"}}
    install(site, "open-pack", points, module)
    target = {"retriever": "r", "version": "1", "plugin": "open"}
    acme.suite.write_text(yaml.safe_dump({**parts(), "target": target, "judge": {"plugin": "open"}}))
    await evaluate("suite.yaml")
    assert set(sys.modules["open_pack"].closed) == {"target", "judge"}


async def test_a_judge_that_says_what_its_answers_depend_on_is_remembered(acme: Workspace, site: Path) -> None:
    module = """
from acme_rag import WordJudge
asked = []
class Known(WordJudge):
    identity = '{"words": 1}'
    async def prepare(self): asked.append("prepare")
    def prompt_version(self, task): return "1"
    async def ask(self, task):
        asked.append(task.name)
        return await super().ask(task)
"""
    install(site, "known-pack", {"ragscore.judges": {"known": "known_pack:Known"}}, module)
    acme.suite.write_text(yaml.safe_dump({**parts(), "judge": {"plugin": "known"}}))
    first = await evaluate("suite.yaml")
    asked: list[str] = sys.modules["known_pack"].asked
    assert sorted(asked) == ["attribute_claims", "extract_claims", "prepare", "rate_contexts"]
    asked.clear()
    assert (await evaluate("suite.yaml")).scores == first.scores
    assert asked == ["prepare"]


async def test_a_judge_that_knows_what_it_depends_on_after_prepare_only_is_remembered(
    acme: Workspace, site: Path
) -> None:
    module = """
from acme_rag import WordJudge
asked = []
class Late(WordJudge):
    version = None
    @property
    def identity(self):
        if self.version is None: raise RuntimeError("known after prepare")
        return self.version
    async def prepare(self): self.version = '{"words": 2}'
    def prompt_version(self, task): return "1"
    async def ask(self, task):
        asked.append(task.name)
        return await super().ask(task)
"""
    install(site, "late-pack", {"ragscore.judges": {"late": "late_pack:Late"}}, module)
    acme.suite.write_text(yaml.safe_dump({**parts(), "judge": {"plugin": "late"}}))
    first = await evaluate("suite.yaml")
    asked: list[str] = sys.modules["late_pack"].asked
    assert asked
    asked.clear()
    assert (await evaluate("suite.yaml")).scores == first.scores
    assert asked == []


COUNTING = """
from ragscore.judges.offline import OfflineJudge
asked = []
class Forgetful:
    name = "forgetful"
    async def ask(self, task):
        asked.append(task.name)
        return await OfflineJudge().ask(task)
class Remembering(Forgetful):
    name = "remembering"
    identity = "{}"
    async def prepare(self): pass
    def prompt_version(self, task): return "1"
"""


@pytest.mark.parametrize(
    ("judge", "remembered"),
    [
        ({"plugin": "forgetful"}, None),
        ({"plugin": "remembering"}, 0),
        ({"jury": [{"plugin": "remembering"}, {"plugin": "forgetful"}]}, None),
        ({"jury": ["offline", {"plugin": "forgetful"}]}, None),
    ],
)
@pytest.mark.parametrize("fused", [False, True])
def test_a_plan_counts_equal_questions_again_for_a_judge_without_a_memory(
    judge: dict[str, Any], remembered: int | None, fused: bool, acme: Workspace, site: Path
) -> None:
    points = {"ragscore.judges": {"forgetful": "counting_pack:Forgetful", "remembering": "counting_pack:Remembering"}}
    install(site, "counting-pack", points, COUNTING)
    sys.modules.pop("counting_pack", None)
    rows = [
        {"id": f"q{n}", "input": "?", "reference": said, "contexts": [said, "Rain fell."], "output": f"{said} So."}
        for n, said in enumerate(("Lamp 0 can be returned.", "Lamp 1 can be returned."))
    ]
    rows.append({**rows[0], "id": "again"})
    acme.write_items(rows)
    scorers = ["context_recall", "context_utilization", "context_precision"]
    acme.write_suite(judge=judge, scorers=scorers, fused=fused, target="none", contexts={"item": True})
    expected = forecast(assemble(read_suite(acme.suite)), History(acme.history))
    assert expected.remembered_calls == remembered
    sys.modules["counting_pack"].asked.clear()
    evaluate_sync("suite.yaml")
    assert expected.calls == len(sys.modules["counting_pack"].asked)


def test_a_plugin_may_sit_in_a_jury_beside_models(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(site)
    part = JudgePart.model_validate({"jury": [{"plugin": "acme"}, {"model": "offline"}]})
    setup = judge_setup_module.judge_setup(part, dataset=site / "d.jsonl")
    assert setup.judge.name == "jury(acme-words-1,offline-lexical-1)/majority"


def test_a_judge_without_a_name_or_ask_is_refused(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(site)
    install(site, "odd-pack", {"ragscore.judges": {"odd": "odd_pack:thing"}}, "thing = 3\n")
    with pytest.raises(ConfigError, match="'odd' has no `name` and `async ask"):
        judge_setup_module.judge_setup(JudgePart.model_validate({"plugin": "odd"}), dataset=site / "d.jsonl")


def test_the_page_names_every_group() -> None:
    groups = tomllib.loads(SHOWN["pyproject.toml"])["project"]["entry-points"]
    assert set(groups) == {plugins.entry_point_group(group) for group in plugins.CALLED}
    assert {"dataset", "target", "judge", "scorers"} <= set(Suite.model_fields)
