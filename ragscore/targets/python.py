"""A target that is a Python function, `module:callable`, sync or async."""

from __future__ import annotations

import asyncio
import difflib
import importlib
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ragscore.errors import ConfigError
from ragscore.items import Item, Response
from ragscore.targets.protocol import TargetFailure
from ragscore.targets.shapes import response_of
from ragscore.targets.threads import in_thread


class PythonTarget:
    """Calls `function(input)` once per item; a blocking function runs in threads, `timeout_s` seconds at most."""

    def __init__(self, function: Callable[[str], Any], *, timeout_s: float = 60.0, need_contexts: bool = True) -> None:
        self._function = function
        self._timeout_s = timeout_s
        self._need_contexts = need_contexts
        self._is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
            getattr(function, "__call__", None)  # noqa: B004 - the method itself, to see whether it is async
        )

    async def invoke(self, item: Item) -> Response:
        """Answer one item; whatever the function raises becomes a `TargetFailure`."""
        clock = asyncio.get_running_loop().time
        began = clock()
        try:
            async with asyncio.timeout(self._timeout_s):
                value = await self._call(item.input)
        except TimeoutError as error:
            raise TargetFailure(f"no answer within {self._timeout_s:g} s", passing=True) from error
        except Exception as error:
            passing = isinstance(error, (ConnectionError, TimeoutError))
            raise TargetFailure(f"{type(error).__name__}: {error}", passing=passing) from error
        latency_ms = (clock() - began) * 1000
        response = response_of(value, need_contexts=self._need_contexts)
        return Response(
            output=response.output, contexts=response.contexts, raw=response.raw, latency_ms=round(latency_ms, 3)
        )

    async def _call(self, text: str) -> Any:
        if self._is_async:
            return await self._function(text)
        value = await in_thread(lambda: self._function(text))
        return await value if inspect.isawaitable(value) else value


def load_callable(reference: str, *, base_dir: Path, where: str) -> Callable[..., Any]:
    """The object that `module:callable` names; modules beside the suite file and in the working directory are found.

    Raises:
        ConfigError: there is no such module or callable, or importing it fails; with the nearest name.
    """
    for folder in (str(Path.cwd()), str(base_dir)):
        if folder not in sys.path:
            sys.path.insert(0, folder)
    module_name, _, path = reference.partition(":")
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and not module_name.startswith(error.name):
            raise ConfigError(
                f"importing {module_name} fails: no module named {error.name}", where=where, mend="install it"
            ) from error
        raise ConfigError(
            f"no module named {error.name or module_name}",
            where=where,
            mend=f"looked beside the suite ({base_dir}), in the working directory and among installed packages",
        ) from error
    except Exception as error:
        raise ConfigError(
            f"importing {module_name} fails: {type(error).__name__}: {error}", where=where, mend="mend the module"
        ) from error
    for part in path.split("."):
        if not hasattr(found, part):
            names = [name for name in dir(found) if not name.startswith("_")]
            near = difflib.get_close_matches(part, names, n=1)
            raise ConfigError(
                f"{module_name} has no {part!r}",
                where=where,
                mend=f"did you mean {near[0]!r}?" if near else f"it has: {', '.join(names[:8]) or 'nothing'}",
            )
        found = getattr(found, part)
    if not callable(found):
        raise ConfigError(f"{reference} is not callable", where=where, mend="name a function")
    return found  # type: ignore[no-any-return]
