"""Python targets: every way to write one, everything it may raise, and how `module:callable` is found."""

from __future__ import annotations

import asyncio
import functools
import sys
import tempfile
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ragscore.assembly import assemble
from ragscore.engine import evaluate_locally
from ragscore.errors import ConfigError
from ragscore.history import History
from ragscore.items import Context, Item
from ragscore.runs import begin
from ragscore.suite_file import read_suite
from ragscore.targets import PythonTarget, TargetFailure
from ragscore.targets.python import load_callable
from tests.workspace import Workspace

ITEM = Item("q1", "why?")


def plain(text: str) -> str:
    return f"{text} in {threading.current_thread().name}"


async def asynchronous(text: str) -> str:
    return f"{text} in {threading.current_thread().name}"


async def two_arguments(prefix: str, text: str) -> str:
    return f"{prefix}{text} in {threading.current_thread().name}"


class Assistant:
    def __call__(self, text: str) -> str:
        return plain(text)

    async def method(self, text: str) -> str:
        return await asynchronous(text)


class AsyncAssistant:
    async def __call__(self, text: str) -> str:
        return await asynchronous(text)


def returns_awaitable(text: str) -> Awaitable[str]:
    return asynchronous(text)


@pytest.mark.parametrize(
    ("function", "output"),
    [
        (plain, "why? in ragscore-target"),
        (Assistant(), "why? in ragscore-target"),
        (asynchronous, "why? in MainThread"),
        (AsyncAssistant(), "why? in MainThread"),
        (Assistant().method, "why? in MainThread"),
        (functools.partial(two_arguments, "> "), "> why? in MainThread"),
        (returns_awaitable, "why? in MainThread"),
        (lambda text: asynchronous(text), "why? in MainThread"),
    ],
)
async def test_blocking_callables_run_in_threads_and_coroutines_in_the_loop(
    function: Callable[[str], Any], output: str
) -> None:
    response = await PythonTarget(function).invoke(ITEM)
    assert (response.output, response.error) == (output, None)
    assert response.latency_ms is not None
    assert response.latency_ms >= 0


def both(error: BaseException) -> list[Callable[[str], Any]]:
    def blocking(text: str) -> None:
        raise error

    async def coroutine(text: str) -> None:
        raise error

    return [blocking, coroutine]


@pytest.mark.parametrize("way", [0, 1], ids=["blocking", "async"])
@pytest.mark.parametrize(
    ("error", "said", "passing"),
    [
        (ValueError("no index"), "ValueError: no index", False),
        (KeyError("k"), "KeyError: 'k'", False),
        (ValueError(), "ValueError", False),
        (ConnectionError("refused"), "ConnectionError: refused", True),
        (ConnectionResetError("reset"), "ConnectionResetError: reset", True),
        (TimeoutError("read timed out"), "TimeoutError: read timed out", True),
        (RecursionError("deep"), "RecursionError: deep", False),
        (SystemExit(3), "SystemExit: 3", False),
        (asyncio.CancelledError("inner"), "CancelledError: inner", False),
        (StopIteration("end"), "StopIteration", False),
        (TargetFailure("said by itself", passing=True), "said by itself", True),
    ],
    ids=str,
)
async def test_whatever_a_target_raises_is_a_failure_of_that_item(
    way: int, error: BaseException, said: str, passing: bool
) -> None:
    with pytest.raises(TargetFailure) as caught:
        await PythonTarget(both(error)[way]).invoke(ITEM)
    assert said in str(caught.value)
    assert caught.value.passing is passing


async def test_a_target_that_is_called_wrongly_is_a_failure_too() -> None:
    with pytest.raises(TargetFailure, match=r"TypeError: .*positional argument"):
        await PythonTarget(lambda: "takes nothing").invoke(ITEM)


class Trap:
    @property
    def output(self) -> str:
        raise OSError("read lazily, and gone")


def cyclic() -> list[Any]:
    inner: list[Any] = []
    inner.append(inner)
    return inner


@pytest.mark.parametrize(("value", "said"), [(Trap(), "OSError: read lazily"), (cyclic(), "ValueError: Circular")])
async def test_a_response_that_fails_when_it_is_read_is_a_failure_of_that_item(value: Any, said: str) -> None:
    with pytest.raises(TargetFailure, match=said):
        await PythonTarget(lambda text: value).invoke(ITEM)


async def test_a_target_that_takes_too_long_is_a_passing_failure() -> None:
    never, release = asyncio.Event(), threading.Event()

    async def coroutine(text: str) -> None:
        await never.wait()

    try:
        for function in (coroutine, lambda text: release.wait(60)):
            with pytest.raises(TargetFailure, match=r"^no answer within 0\.02 s$") as caught:
                await PythonTarget(function, timeout_s=0.02).invoke(ITEM)
            assert caught.value.passing
    finally:
        release.set()


async def test_cancelling_the_run_is_not_mistaken_for_a_failure_of_the_target() -> None:
    entered = asyncio.Event()

    async def coroutine(text: str) -> None:
        entered.set()
        await asyncio.Event().wait()

    task = asyncio.ensure_future(PythonTarget(coroutine).invoke(ITEM))
    await entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_shape_that_cannot_be_read_matters_only_when_contexts_are_taken_from_it() -> None:
    def function(text: str) -> dict[str, Any]:
        return {"hits": [{"t": "a"}]}

    with pytest.raises(TargetFailure, match="dict with the keys hits"):
        await PythonTarget(function).invoke(ITEM)
    response = await PythonTarget(function, need_contexts=False).invoke(ITEM)
    assert response.raw == {"hits": [{"t": "a"}]}


async def test_contexts_and_output_come_through() -> None:
    response = await PythonTarget(lambda text: {"answer": text, "contexts": [{"id": 1, "text": "t"}]}).invoke(ITEM)
    assert (response.output, response.contexts) == ("why?", (Context("t", id="1"),))


BADLY = """
import asyncio, sys
def retrieve(question):
    if "tea" in question:
        sys.exit(1)
    if "coffee" in question:
        cyclic = []
        cyclic.append(cyclic)
        return cyclic
    if "cocoa" in question:
        raise asyncio.CancelledError("inner")
    return ["Mate is steeped from leaves of Ilex paraguariensis. It is drunk through a metal straw."]
async def retrieve_async(question):
    return retrieve(question)
"""


@pytest.mark.parametrize("name", ["retrieve", "retrieve_async"])
def test_nothing_that_a_target_does_on_one_item_takes_the_run_down(workspace: Workspace, name: str) -> None:
    (workspace.folder / "drinks.py").write_text(BADLY, encoding="utf-8")
    workspace.write_suite(target={"python": f"drinks:{name}"}, scorers=["context_recall"])
    run = begin(assemble(read_suite(workspace.suite)), History(workspace.history))
    asyncio.run(evaluate_locally(run))
    assert run.history.finish_run(run.run_id, status="complete").ok
    found = dict(workspace.sql("select item_id, status from latest_scores"))
    assert found == {"tea": "target_error", "coffee": "target_error", "cocoa": "target_error", "mate": "ok"}


@pytest.fixture(autouse=True)
def clean_imports() -> Iterator[None]:
    """What a test writes, imports and puts on the path goes with it; what is installed stays, it may not load twice."""
    modules, path = dict(sys.modules), list(sys.path)
    yield
    for name in set(sys.modules) - set(modules):
        if str(getattr(sys.modules[name], "__file__", None) or tempfile.gettempdir()).startswith(tempfile.gettempdir()):
            del sys.modules[name]
    sys.path[:] = path


def module(folder: Path, name: str, source: str) -> Path:
    file = folder / f"{name}.py"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(source, encoding="utf-8")
    return folder


def loaded(reference: str, folder: Path) -> Callable[..., Any]:
    return load_callable(reference, base_dir=folder, where="suite.yaml: target.python")


def complaint(reference: str, folder: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        loaded(reference, folder)
    return str(caught.value)


def test_a_callable_beside_the_suite_is_found_with_dots_on_both_sides(tmp_path: Path) -> None:
    (tmp_path / "rs_package").mkdir()
    module(tmp_path, "rs_package/search", "class A:\n    class B:\n        @staticmethod\n        def f(t): return t\n")
    assert loaded("rs_package.search:A.B.f", tmp_path)("x") == "x"


def test_a_module_in_the_working_directory_is_found_after_the_suites(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = module(tmp_path / "here", "rs_both", "def f(t): return 'working directory'\n")
    module(here, "rs_only_here", "def f(t): return 'only here'\n")
    beside = module(tmp_path / "beside", "rs_both", "def f(t): return 'beside'\n")
    monkeypatch.chdir(here)
    assert loaded("rs_both:f", beside)("") == "beside"
    assert loaded("rs_only_here:f", beside)("") == "only here"


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("rs_aps:search", "no module named rs_aps — did you mean 'rs_app'?"),
        ("rs_nowhere_at_all:f", "no module named rs_nowhere_at_all — looked beside the suite"),
        ("rs_app.deep:f", "no module named rs_app.deep"),
        ("rs_app:serch", "rs_app has no 'serch' — did you mean 'search'?"),
        ("rs_app:zzz", "rs_app has no 'zzz' — it has: search"),
        ("rs_app:search.deeper", "rs_app has no 'deeper'"),
        ("rs_app:NUMBER", "rs_app:NUMBER is not callable — name a function"),
    ],
)
def test_what_is_not_there_is_one_line_with_the_nearest_name(tmp_path: Path, reference: str, said: str) -> None:
    module(tmp_path, "rs_app", "NUMBER = 3\ndef search(t): return t\n")
    complained = complaint(reference, tmp_path)
    assert complained.startswith(f"suite.yaml: target.python: {said}")
    assert "\n" not in complained


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("import rs_not_installed\n", "importing rs_broken fails: no module named rs_not_installed — install it"),
        ("import rs\n", "importing rs_broken fails: no module named rs — install it"),
        ("1 / 0\n", "importing rs_broken fails: ZeroDivisionError: division by zero — mend the module"),
        ("def f(:\n", "importing rs_broken fails: SyntaxError: invalid syntax (rs_broken.py, line 1)"),
        ("from os import nothing\n", "importing rs_broken fails: ImportError: cannot import name 'nothing'"),
        ("import sys; sys.exit(0)\n", "importing rs_broken fails: SystemExit: 0 — mend the module"),
        ("raise RuntimeError('two\\nlines')\n", "importing rs_broken fails: RuntimeError: two lines"),
    ],
)
def test_a_module_that_fails_at_import_is_one_line(tmp_path: Path, source: str, said: str) -> None:
    complained = complaint("rs_broken:f", module(tmp_path, "rs_broken", source))
    assert complained.startswith(f"suite.yaml: target.python: {said}")
    assert "\n" not in complained


def test_suites_in_two_folders_each_get_their_own_module_of_the_same_name(tmp_path: Path) -> None:
    for name in ("one", "two"):
        folder = module(tmp_path / name, "my_target", "import my_helper\ndef f(t): return my_helper.NAME\n")
        module(folder, "my_helper", f"NAME = {name!r}\n")
        (folder / "my_package").mkdir()
        module(folder / "my_package", "__init__", f"NAME = {name!r}\n")
        module(folder / "my_package", "part", "from my_package import NAME\ndef f(t): return NAME\n")
    first = loaded("my_target:f", tmp_path / "one")
    second = loaded("my_target:f", tmp_path / "two")
    assert (first(""), second(""), loaded("my_target:f", tmp_path / "one")("")) == ("one", "two", "one")
    assert [loaded("my_package.part:f", tmp_path / name)("") for name in ("one", "two", "one")] == ["one", "two", "one"]


def test_folders_without_init_are_kept_apart_too(tmp_path: Path) -> None:
    for name in ("one", "two"):
        module(tmp_path / name, "my_folder/search", f"def f(t): return {name!r}\n")
    assert [loaded("my_folder.search:f", tmp_path / name)("") for name in ("one", "two", "one")] == [
        "one",
        "two",
        "one",
    ]


def test_a_suite_in_a_folder_below_another_suites_gets_its_own_module(tmp_path: Path) -> None:
    below = module(module(tmp_path, "my_nested", "def f(t): return 'above'\n") / "sub", "my_nested", "f = str.upper\n")
    assert [loaded("my_nested:f", folder)("x") for folder in (tmp_path, below, tmp_path)] == ["above", "X", "above"]


def test_what_two_suites_share_is_loaded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shared = module(tmp_path / "shared", "my_shared", "LIST = []\ndef f(t): return LIST\n")
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    monkeypatch.chdir(shared)
    assert loaded("my_shared:f", tmp_path / "a")("") is loaded("my_shared:f", tmp_path / "b")("")


def test_a_module_of_one_suite_is_loaded_once(tmp_path: Path) -> None:
    module(tmp_path, "my_index", "BUILT = []\ndef f(t): return BUILT\n")
    assert loaded("my_index:f", tmp_path)("") is loaded("my_index:f", tmp_path)("")


def test_a_module_that_is_hidden_by_another_is_refused_rather_than_taken_for_it(tmp_path: Path) -> None:
    module(tmp_path, "json", "def loads(t): return 'mine'\n")
    complained = complaint("json:loads", tmp_path)
    assert complained.startswith("suite.yaml: target.python: json beside the suite is hidden by ")
    assert complained.endswith(" — rename it")


def test_a_folder_that_is_gone_is_no_more_than_a_missing_module(tmp_path: Path) -> None:
    assert "no module named rs_gone" in complaint("rs_gone:f", tmp_path / "gone")


def test_what_is_installed_is_found_too(tmp_path: Path) -> None:
    assert loaded("json:loads", tmp_path)("3") == 3
