"""A target that is a Python function or object, `module:callable`, sync or async."""

from __future__ import annotations

import asyncio
import difflib
import importlib
import inspect
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from ragscore.errors import ConfigError
from ragscore.items import Item, Response
from ragscore.secrets import Secrets
from ragscore.targets.pacing import Pace
from ragscore.targets.protocol import TargetFailure
from ragscore.targets.shapes import response_of
from ragscore.targets.threads import in_thread


def _input_of(item: Item) -> str:
    return item.input


class PythonTarget:
    """Calls `function(argument(item))` once per item; a blocking function runs in threads.

    Args:
        function: What is called.
        argument: What it is called with; the item's input when left out. See `calling.way_to_call`.
        timeout_s: Seconds that one call may take.
        need_contexts: Whether a shape that cannot be read matters; see `shapes.response_of`.
        pace: When calls may begin.
        secrets: What is kept out of messages.
        closing: Awaited when the target is let go of; it may be asked again afterwards.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        argument: Callable[[Item], Any] = _input_of,
        timeout_s: float = 60.0,
        need_contexts: bool = True,
        pace: Pace | None = None,
        secrets: Secrets | None = None,
        closing: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._function = function
        self._secrets = secrets or Secrets()
        self._closing = closing
        self._argument = argument
        self._pace = pace or Pace()
        self._timeout_s = timeout_s
        self._need_contexts = need_contexts
        self._is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)

    async def invoke(self, item: Item) -> Response:
        """Answer one item; whatever the function raises becomes a `TargetFailure`."""
        clock = asyncio.get_running_loop().time
        await self._pace.turn()
        began = clock()
        try:
            async with asyncio.timeout(self._timeout_s) as limit:
                value = await self._call(self._argument(item))
            latency_ms = (clock() - began) * 1000
            response = response_of(value, need_contexts=self._need_contexts)
        except TargetFailure:
            raise
        except (Exception, SystemExit, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and _is_cancelled():
                raise
            if isinstance(error, TimeoutError) and limit.expired():
                raise TargetFailure(f"no answer within {self._timeout_s:g} s", passing=True) from error
            said = f"{type(error).__name__}: {error}".removesuffix(": ")
            raise TargetFailure(self._secrets.hidden(said), passing=_may_pass(error)) from error
        return Response(
            output=response.output, contexts=response.contexts, raw=response.raw, latency_ms=round(latency_ms, 3)
        )

    async def aclose(self) -> None:
        """Let go of what the function's object holds, where it says how."""
        if self._closing is not None:
            await self._closing()

    async def _call(self, argument: Any) -> Any:
        if self._is_async:
            return await self._function(argument)
        value = await in_thread(lambda: self._function(argument))
        return await value if inspect.isawaitable(value) else value


#: Names under which the usual clients raise what may pass; their classes are not the built-in ones.
_PASSING = frozenset(
    {"ConnectError", "ConnectTimeout", "ReadTimeout", "RemoteProtocolError", "ConnectionError", "Timeout"}
)


def _may_pass(error: BaseException) -> bool:
    """Whether a connection failed or timed out, at whatever depth: clients wrap it (URLError, httpx, requests)."""
    seen: list[BaseException] = []
    found: object = error
    while isinstance(found, BaseException) and found not in seen:
        if isinstance(found, (ConnectionError, TimeoutError)) or type(found).__name__ in _PASSING:
            return True
        seen.append(found)
        reason = getattr(found, "reason", None)
        found = reason if isinstance(reason, BaseException) else found.__cause__ or found.__context__
    return False


def _is_cancelled() -> bool:
    """Whether it is we who are cancelled, rather than the target that gave up by itself."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


#: The folders that `load_callable` has put on the path: their modules may make way for those of another suite.
_folders: set[str] = set()


def load_callable(reference: str, *, base_dir: Path, where: str) -> Callable[..., Any]:
    """The callable that `module:callable` names, found as `load_object` finds it.

    Raises:
        ConfigError: there is no such module or callable, or importing it fails; with the nearest name.
    """
    found = load_object(reference, base_dir=base_dir, where=where)
    if not callable(found):
        raise ConfigError(f"{reference} is not callable", where=where, mend="name a function")
    return found  # type: ignore[no-any-return]


def load_object(reference: str, *, base_dir: Path, where: str) -> Any:
    """The object that `module:name` names; modules beside the suite file and in the working directory are found.

    Suites in several folders may have modules of the same name: each gets its own.

    Raises:
        ConfigError: there is no such module or name, or importing it fails; with the nearest name.
    """
    _look_first_in(base_dir)
    module_name, _, path = reference.partition(":")
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        missing = error.name or module_name
        if module_name != missing and not module_name.startswith(f"{missing}."):
            raise ConfigError(
                f"importing {module_name} fails: no module named {missing}", where=where, mend="install it"
            ) from error
        near = difflib.get_close_matches(module_name, [file.stem for file in base_dir.glob("*.py")], n=1)
        looked = f"looked beside the suite ({base_dir}), in the working directory and among installed packages"
        raise ConfigError(
            f"no module named {missing}", where=where, mend=f"did you mean {near[0]!r}?" if near else looked
        ) from error
    except (Exception, SystemExit) as error:
        raise ConfigError(
            f"importing {module_name} fails: {type(error).__name__}: {error}", where=where, mend="mend the module"
        ) from error
    beside = base_dir.joinpath(*module_name.split("."))
    is_beside = beside.with_suffix(".py").is_file() or (beside / "__init__.py").is_file()
    if is_beside and _root(found, module_name) != os.path.realpath(base_dir):
        raise ConfigError(
            f"{module_name} beside the suite is hidden by {getattr(found, '__file__', None) or 'a built-in module'}",
            where=where,
            mend="rename it",
        )
    for part in path.split("."):
        if not hasattr(found, part):
            names = [name for name in dir(found) if not name.startswith("_")]
            near = difflib.get_close_matches(part, names, n=1)
            there = [name for name in names if callable(getattr(found, name))][:8]
            raise ConfigError(
                f"{module_name} has no {part!r}",
                where=where,
                mend=f"did you mean {near[0]!r}?" if near else f"it has: {', '.join(there) or 'nothing'}",
            )
        found = getattr(found, part)
    return found


def _look_first_in(base_dir: Path) -> None:
    """Put the suite's folder and the working directory on the path, before other suites', and let go of namesakes.

    A module of another suite's folder that this folder has too would be taken for it: it leaves `sys.modules`, while
    functions that were loaded from it go on working.
    """
    here = os.path.realpath(base_dir)
    entries = list(base_dir.iterdir()) if base_dir.is_dir() else []
    beside = {entry.stem for entry in entries if entry.suffix == ".py" or entry.is_dir()}
    namesakes = set()
    for name, module in list(sys.modules.items()):
        top = name.partition(".")[0]
        if top in beside and (root := _root(module, name)) != here and root in _folders:
            namesakes.add(top)
    for name in [name for name in sys.modules if name.partition(".")[0] in namesakes]:
        del sys.modules[name]
    # Folders of other suites stay, behind these: their functions may import more when they are called.
    folders = list(dict.fromkeys((str(base_dir), str(Path.cwd()))))
    # Before installed packages, but after the standard library: a user's random.py must not stand in for random.
    others = [each for each in sys.path if each not in folders and os.path.realpath(each) in _folders]
    rest = [each for each in sys.path if each not in folders and each not in others]
    installed = (at for at, each in enumerate(rest) if Path(each).name in ("site-packages", "dist-packages"))
    first = next(installed, len(rest))
    sys.path[:] = [*rest[:first], *folders, *others, *rest[first:]]
    _folders.update(map(os.path.realpath, folders))
    importlib.invalidate_caches()


def _root(module: ModuleType, name: str) -> str | None:
    """The folder that a module was found from: of a.b in /x/a/b.py it is /x; None for one without a file."""
    file = getattr(module, "__file__", None)
    if file is None:
        return None
    levels = name.count(".") + (2 if Path(file).stem == "__init__" else 1)
    return os.path.realpath(os.path.join(file, *[os.pardir] * levels))
