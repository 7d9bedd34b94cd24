"""Imports point one way, heavy libraries stay in their rooms, and nothing optional is imported at start."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "ragscore"

#: A layer may import its own layer and those after it, never one before it.
LAYERS = [
    {"cli"},
    {"flows", "pytest_plugin"},
    {"api"},
    {"report", "demo", "foreign"},
    {"ending", "engine", "pipeline", "forecast", "rehearsal", "gathered", "noise", "calibration"},
    {"runs"},
    {"assembly"},
    {"suite_file"},
    {"suite_faults"},
    {"suite_schema"},
    {"datasets", "targets", "contexts", "judges", "scorers", "history", "gate", "stats"},
    {"suite", "home", "suite_yaml"},
    {"suite_parts"},
    {"items", "errors", "addresses", "counting", "expressions", "plugins", "scorer_kinds", "secrets"},
]
#: Which part may import a library that costs time or belongs to one place.
ROOMS = {
    "prefect": {"flows"},
    "duckdb": {"history", "datasets"},
    "litellm": {"judges/llm/client.py"},
    "bm25s": {"demo"},
    "rich": {"cli", "report"},
    "cyclopts": {"cli"},
}


def modules() -> Iterator[Path]:
    for folder in (PACKAGE, ROOT / "flows"):
        yield from (path for path in sorted(folder.rglob("*.py")) if "ragscore/flows" not in path.as_posix())


def imported(path: Path) -> Iterator[tuple[str, bool]]:
    """Names that a module imports, and whether it does so when it is imported itself."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    at_import = {id(node) for node in _outside_functions(tree)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, id(node) in at_import) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            yield node.module or "", id(node) in at_import
            if node.module == "ragscore":
                yield from ((f"ragscore.{alias.name}", id(node) in at_import) for alias in node.names)


def _outside_functions(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            continue
        yield child
        yield from _outside_functions(child)


def part_of(path: Path) -> str:
    if path.is_relative_to(ROOT / "flows"):
        return "flows"
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def rank(part: str) -> int | None:
    return next((number for number, layer in enumerate(LAYERS) if part in layer), None)


def test_every_part_has_its_layer() -> None:
    assert {part_of(path) for path in modules()} - {"__init__", "__main__"} <= set().union(*LAYERS)


def test_imports_point_one_way() -> None:
    wrong = []
    for path in modules():
        own = rank(part_of(path))
        for name, _ in imported(path):
            parts = name.split(".")
            other = rank(parts[1]) if parts[0] == "ragscore" and len(parts) > 1 else None
            if own is not None and other is not None and other < own:
                wrong.append(f"{path.relative_to(ROOT)} imports {name}")
    assert not wrong


def test_the_folder_flows_is_never_imported_by_its_bare_name() -> None:
    assert not [path for path in modules() for name, _ in imported(path) if name.split(".")[0] == "flows"]


@pytest.mark.parametrize("library", ROOMS)
def test_a_library_stays_in_its_room(library: str) -> None:
    outside = [
        path
        for path in modules()
        for name, _ in imported(path)
        if name.split(".")[0] == library
        and not any(part_of(path) == room or path.as_posix().endswith(f"ragscore/{room}") for room in ROOMS[library])
    ]
    assert not outside


@pytest.mark.parametrize("library", ["duckdb", "litellm", "bm25s"])
def test_a_heavy_library_is_imported_only_inside_functions(library: str) -> None:
    early = [path for path in modules() for name, now in imported(path) if now and name.split(".")[0] == library]
    assert not early


def left_over(statement: str, unwanted: set[str]) -> str:
    """Which of the modules `unwanted` a process has after `statement`; empty when there are none."""
    program = f"import sys; {statement}; sys.exit(str({unwanted} & set(sys.modules) or ''))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    return done.stderr.strip()


@pytest.mark.parametrize("statement", ["import ragscore", "import ragscore.cli", "import ragscore.pipeline"])
def test_starting_imports_no_heavy_library(statement: str) -> None:
    assert left_over(statement, {"prefect", "litellm", "duckdb", "numpy", "scipy", "bm25s", "pandas"}) == ""


@pytest.mark.parametrize("module", ["ragscore.report.terminal", "ragscore.history.trends", "ragscore.history.reading"])
def test_what_only_reads_a_history_imports_nothing_that_a_run_is_made_of(module: str) -> None:
    assert left_over(f"import {module}", {"pydantic", "ragscore.suite", "ragscore.assembly", "ragscore.targets"}) == ""
