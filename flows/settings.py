"""Whether a Prefect API is configured, found out without importing Prefect."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def configured_api(environment: Mapping[str, str] | None = None) -> str | None:
    """The address of the Prefect API that is configured, or None."""
    return configured("url", environment)


def configured(setting: str, environment: Mapping[str, str] | None = None) -> str | None:
    """A setting of Prefect's `api` part (`url`, `key`, `auth_string`), or None.

    Looks where Prefect looks (environment, `.env`, `prefect.toml`, `pyproject.toml`, the active profile), without
    importing it: that takes longer than a small run.
    """
    env = os.environ if environment is None else environment
    name = f"PREFECT_API_{setting.upper()}"
    if env.get(name):
        return env[name]
    for found in (
        _dotenv(Path(".env")).get(name),
        _at(_toml(Path("prefect.toml")), "api", setting),
        _at(_toml(Path("pyproject.toml")), "tool", "prefect", "api", setting),
        _profile(env, name),
    ):
        if found:
            return str(found)
    return None


def _profile(env: Mapping[str, str], setting: str) -> str | None:
    prefect_home = Path(env.get("PREFECT_HOME") or Path.home() / ".prefect")
    document = _toml(Path(env.get("PREFECT_PROFILES_PATH") or prefect_home / "profiles.toml"))
    name = env.get("PREFECT_PROFILE") or document.get("active")
    found = _at(document, "profiles", str(name), setting)
    return str(found) if found else None


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError):
        return {}  # Prefect itself will say what is wrong with it


def _dotenv(path: Path) -> dict[str, str]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return {}
    pairs = (line.split("=", 1) for line in lines if "=" in line and not line.lstrip().startswith("#"))
    return {key.strip().removeprefix("export "): value.strip().strip("'\"") for key, value in pairs}


def _at(document: Any, *keys: str) -> Any:
    for key in keys:
        document = document.get(key) if isinstance(document, dict) else None
    return document
