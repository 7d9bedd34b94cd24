"""What there is to deploy, as files: keys that somebody reads, and paths that are there."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import yaml
from prefect import Flow
from prefect.client.schemas.actions import DeploymentCreate

from ragscore.errors import ConfigError, UsageError
from ragscore.flows import deployments
from ragscore.flows.suites import chosen

ROOT = Path(__file__).parent.parent.parent
FOLDER = ROOT / "deployments"


def test_every_deployment_names_a_flow_by_its_module_and_parameters_that_it_has() -> None:
    found = deployments.declared()
    assert len({each.entrypoint for each in found}) == 5
    for each in found:
        module, _, name = each.entrypoint.rpartition(".")
        flow = getattr(importlib.import_module(module), name)
        assert isinstance(flow, Flow)
        known = set(flow.parameters.properties)
        assert set(each.parameters) <= known
        for trigger in each.triggers:
            assert set(trigger.parameters) <= known


def test_a_key_that_nobody_reads_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (FOLDER / "prefect.yaml").read_text(encoding="utf-8")
    slipped = yaml.safe_load(text.replace("concurrency_limit:", "concurency_limit:", 1))
    with pytest.raises(ValueError, match="concurency_limit"):
        deployments._Declaration.model_validate(slipped)
    monkeypatch.setattr("yaml.safe_load", lambda _: slipped)
    with pytest.raises(ConfigError, match="concurency_limit"):
        deployments.declared()


def written(folder: Path, file: str, **changes: Any) -> Path:
    suite = {"dataset": "questions.jsonl", "target": {"retriever": "docs", "python": "app:ask"}, **changes}
    (folder / file).write_text(yaml.safe_dump(suite), encoding="utf-8")
    return folder / file


def test_each_of_several_targets_is_evaluated_by_a_deployment_that_chooses_it(tmp_path: Path) -> None:
    several = written(
        tmp_path,
        "several.yaml",
        name="several",
        targets=[
            {"retriever": "docs", "version": "1"},
            {"retriever": "docs", "version": "2"},
            {"retriever": "chat", "version": "1"},
        ],
    )
    one = written(tmp_path, "one.yaml", name="one")
    found = deployments.evaluations([several, one])
    assert [each.name for each in found] == ["several docs 1", "several docs 2", "several chat", "one"]
    assert [each.suite for each in found] == ["several", "several", "several", "one"]
    for each in found[:3]:
        chosen(each.path, **each.target)  # one target fits
    assert [each.target for each in found[2:]] == [{"retriever": "chat"}, {}]


def test_a_deployment_has_a_name_that_prefect_allows_and_no_two_have_the_same(tmp_path: Path) -> None:
    first = written(tmp_path, "first.yaml", name="docs/search & <50%>")
    (found,) = deployments.evaluations([first])
    assert (found.name, found.suite) == ("docs-search - -50--", "docs/search & <50%>")
    DeploymentCreate(name=found.name, flow_id=uuid4())
    for name in ("docs/search & <50%>", "docs-search - -50--"):
        with pytest.raises(UsageError, match="two suites are named"):
            deployments.evaluations([first, written(tmp_path, "second.yaml", name=name)])


def test_the_file_for_prefect_deploy_is_the_one_that_is_installed() -> None:
    assert (FOLDER / "prefect.yaml").resolve() == (ROOT / "flows" / "prefect.yaml").resolve()


def test_compose_names_files_volumes_and_services_that_are_there() -> None:
    compose = yaml.safe_load((FOLDER / "compose.yaml").read_text(encoding="utf-8"))
    services: dict[str, Any] = compose["services"]
    assert set(services) == {"database", "server", "worker"}
    for service in services.values():
        if "build" in service:
            context = (FOLDER / service["build"]["context"]).resolve()
            assert context == ROOT
            assert (context / service["build"]["dockerfile"]).is_file()
        assert set(service.get("depends_on", {})) <= set(services)
        for volume in service.get("volumes", ()):
            source = re.sub(r"\$\{[^}]*\}", "./x", volume).split(":")[0]
            assert source.startswith(".") or source in compose["volumes"]
    home = "/srv/ragscore/.ragscore"
    assert any(volume.endswith(f":{home}") for volume in services["worker"]["volumes"])
    assert f"RAGSCORE_HOME={home}" in (FOLDER / "Dockerfile").read_text(encoding="utf-8")


def test_the_dockerfile_copies_what_is_there() -> None:
    for line in (FOLDER / "Dockerfile").read_text(encoding="utf-8").splitlines():
        if line.startswith("COPY ") and "--from" not in line:
            for source in line.split()[1:-1]:
                assert (ROOT / source).exists(), line


@pytest.mark.parametrize("file", sorted((FOLDER / "cd").glob("*.yaml")), ids=lambda path: path.name)
def test_the_snippets_for_cd_are_yaml(file: Path) -> None:
    assert yaml.safe_load(file.read_text(encoding="utf-8"))
