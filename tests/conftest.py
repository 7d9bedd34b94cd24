"""Fixtures that every folder of tests may use."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent))  # `tests.workspace` for every test, however pytest is started

from hypothesis import HealthCheck, settings

from tests.workspace import Workspace, make_workspace

# Nothing may depend on time: a loaded machine is no fault of the code.
settings.register_profile("ragscore", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ragscore")


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """A user's folder in which `ragscore run suite.yaml` works."""
    return make_workspace(tmp_path)


@pytest.fixture
def shared_data() -> Path:
    """The human-labelled data beside the repository; skips where it is absent."""
    folder = Path(__file__).parent.parent.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the human-labelled data is not beside this repository")
    return folder
