"""The examples in docstrings run, and every public name says what it takes, gives and raises, and where it is from."""

from __future__ import annotations

import ast
import dataclasses
import doctest
import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

import ragscore
from ragscore.api.scoring import RunnableScorer

MODULES = [
    "ragscore",
    "ragscore.judges.scripted",
    "ragscore.judges.offline.judge",
    "ragscore.scorers.custom",
    "ragscore.scorers.rank_metrics",
    "ragscore.api.context_scorers",
]


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0
    assert result.failed == 0


#: Parameters that say nothing that a docstring could add to.
UNSAID = {"self", "cls"}
SECTION = r"^{}:\n((?:^(?: +.*)?\n?)+)"
NAMED = re.compile(r"^ {4}(\*{0,2}\w+(?:, \*{0,2}\w+)*):", re.M)


def public() -> Iterator[tuple[str, Any]]:
    """Every public name, and every public method and property of the public classes that is ours, each once."""
    seen: set[int] = set()
    for name in ragscore.__all__:
        found = getattr(ragscore, name)
        yield name, found
        if not inspect.isclass(found) or issubclass(found, Enum):
            continue
        for method, held in inspect.getmembers_static(found):
            function = unwrapped(held)
            ours = (getattr(function, "__module__", None) or "").startswith("ragscore")
            if ours and not method.startswith("_") and id(function) not in seen:
                seen.add(id(function))
                yield f"{name}.{method}", held


def unwrapped(held: Any) -> Any:
    return held.fget if isinstance(held, property) else getattr(held, "__func__", held)


def section(doc: str, *titles: str) -> str:
    """The text of a section, empty where there is none."""
    found = [match[1] for title in titles for match in re.finditer(SECTION.format(title), doc, re.M)]
    return "\n".join(found)


def named_in(text: str) -> set[str]:
    return {name.strip("* ") for match in NAMED.finditer(text) for name in match[1].split(",")}


def doc_of(held: Any) -> str:
    return inspect.cleandoc(unwrapped(held).__doc__ or "")


def parameters(held: Any) -> set[str]:
    """What is given when it is called or made; of a record, its fields."""
    if inspect.isclass(held) and issubclass(held, Enum):
        return set()
    if inspect.isclass(held) and dataclasses.is_dataclass(held):
        return {field.name for field in dataclasses.fields(held)}
    if isinstance(held, property):
        return set()
    try:
        signature = inspect.signature(unwrapped(held))
    except ValueError:
        return set()
    return {name for name in signature.parameters if name not in UNSAID}


def raised_in(held: Any) -> set[str]:
    """The errors that a function itself raises, by name."""
    function = unwrapped(held)
    function = function.__init__ if inspect.isclass(function) else function
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError):
        return set()
    calls = [node.exc for node in ast.walk(tree) if isinstance(node, ast.Raise)]
    names = [call.func for call in calls if isinstance(call, ast.Call)]
    return {name.id for name in names if isinstance(name, ast.Name) and name.id[:1].isupper()}


PUBLIC = dict(public())


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_is_documented_with_what_it_takes_gives_and_raises(name: str) -> None:
    held = PUBLIC[name]
    doc = doc_of(held)
    assert doc, "no docstring"
    undocumented = parameters(held) - named_in(section(doc, "Args", "Attributes"))
    assert not undocumented, "Args or Attributes"
    assert not {error for error in raised_in(held) if error not in section(doc, "Raises")}, "Raises"
    function = unwrapped(held)
    if inspect.isroutine(function) and not isinstance(held, property) and parameters(held):
        given = function.__annotations__.get("return")
        assert given in (None, "None") or section(doc, "Returns"), "Returns"


SCORERS = [
    name
    for name, held in PUBLIC.items()
    if inspect.isclass(held) and issubclass(held, RunnableScorer) and name != "PromptScorer"
]


@pytest.mark.parametrize("name", SCORERS)
def test_a_scorer_says_where_its_definition_comes_from_and_what_no_score_means(name: str) -> None:
    doc = doc_of(PUBLIC[name])
    source = re.search(r"Source: .+", doc)
    assert source
    assert re.search(r"https?://|§|trec_eval|20\d\d", doc[source.start() :])
    assert "scale" in named_in(section(doc, "Args"))
