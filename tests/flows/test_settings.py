"""Whether a Prefect API is configured is found out where Prefect looks, without importing Prefect."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ragscore.errors import EngineError
from ragscore.flows.engine import choose
from ragscore.flows.settings import configured_api

URL = "http://127.0.0.1:9/api"


@pytest.fixture(autouse=True)
def _nothing_configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("PREFECT_API_URL", "PREFECT_PROFILE", "PREFECT_PROFILES_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path / "home"))


def test_without_any_setting_there_is_no_api() -> None:
    assert configured_api() is None
    assert choose("auto").name == "local"
    assert "no Prefect API is configured" in choose("auto").said


@pytest.mark.parametrize(
    ("file", "text"),
    [
        (".env", f"# local\nexport PREFECT_API_URL='{URL}'\n"),
        ("prefect.toml", f'[api]\nurl = "{URL}"\n'),
        ("pyproject.toml", f'[tool.prefect.api]\nurl = "{URL}"\n'),
        ("home/profiles.toml", f'active = "mine"\n[profiles.mine]\nPREFECT_API_URL = "{URL}"\n'),
    ],
)
def test_an_api_is_found_where_prefect_finds_it(tmp_path: Path, file: str, text: str) -> None:
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text(text)
    assert configured_api() == URL
    probe = "from prefect.settings import get_current_settings as s; print(s().api.url)"
    said = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == URL  # Prefect itself agrees


def test_a_configured_api_that_does_not_answer_is_an_error_and_never_a_fallback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PREFECT_API_URL", URL)
    for engine in ("auto", "prefect"):
        with pytest.raises(EngineError, match="does not answer"):
            choose(engine)
    assert choose("local").name == "local"


def test_who_asks_an_api_stands_in_no_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PREFECT_API_URL", URL.replace("//", "//bob:s3cret@"))
    with pytest.raises(EngineError, match="does not answer") as raised:
        choose("auto")
    assert URL in str(raised.value)
    assert "s3cret" not in str(raised.value)
