"""From the part of a suite that names a target to the target itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from ragscore import plugins
from ragscore.items import Item, Response
from ragscore.secrets import Secrets
from ragscore.suite import TargetPart
from ragscore.targets.calling import way_to_call
from ragscore.targets.given import GivenTarget
from ragscore.targets.pacing import Pace
from ragscore.targets.protocol import Target, Where, close
from ragscore.targets.python import PythonTarget, load_object


def make_target(
    part: TargetPart,
    *,
    written: Mapping[str, Any],
    base_dir: Path,
    where: Where,
    needs_contexts: bool = True,
    needs_raw: bool = True,
) -> Target:
    """The target that a suite names.

    Args:
        part: What the suite says, with variables filled in.
        written: The same as it stands in the file, so that variables' values can be kept out of messages.
        base_dir: The suite's folder.
        where: Gives the place of a field of this part in the suite, for messages: `where("http", "url")`.
        needs_contexts: Whether a scorer judges what the target itself returned as contexts.
        needs_raw: Whether an extractor looks at the whole response.

    Raises:
        ConfigError: it cannot be called: no such module, program or file, or it does not take a question.
    """
    pace = Pace(part.rps)

    called = partial(python_target, timeout_s=part.timeout_s, need_contexts=needs_contexts, pace=pace)
    target: Target
    if part.http is not None:
        from ragscore.targets.http import HttpTarget

        told, filled = _mapping(written.get("http"), "url"), part.http.model_dump(by_alias=True)
        target = HttpTarget(
            part.http,
            base_dir=base_dir,
            where=partial(where, "http"),
            timeout_s=part.timeout_s,
            concurrency=part.concurrency,
            need_contexts=needs_contexts,
            pace=pace,
            secrets=Secrets.of(told, filled),
            kept_secrets=Secrets.of_headers(told.get("headers"), part.http.headers),
        )
    elif part.command is not None:
        from ragscore.targets.command import CommandTarget

        target = CommandTarget(
            part.command,
            base_dir=base_dir,
            where=partial(where, "command"),
            timeout_s=part.timeout_s,
            need_contexts=needs_contexts,
            pace=pace,
            secrets=Secrets.of(_mapping(written.get("command"), "run"), part.command.model_dump()),
        )
    elif part.plugin is not None:
        name, at = part.plugin.name, where("plugin")
        found = plugins.load("targets", name, where=at)
        secrets = Secrets.of(written.get("plugin"), {name: part.plugin.options})
        found = plugins.instance(found, part.plugin.options, name=name, where=at, secrets=secrets)
        target = called(found, name=name, where=at, secrets=secrets, closing=getattr(found, "aclose", None))
    elif part.python is not None:
        at = where("python")
        target = called(load_object(part.python, base_dir=base_dir, where=at), name=part.python, where=at)
    else:
        target = GivenTarget(need_raw=needs_raw)
    return cut(target, part.top_k)


def python_target(found: Any, *, name: str, where: str, timeout_s: float, need_contexts: bool, **more: Any) -> Target:
    """The target that calls a Python object, whichever way it wants to be called; `more` as for `PythonTarget`.

    Raises:
        ConfigError: it does not take a question.
    """
    way = way_to_call(found, name=name, where=where)
    return PythonTarget(way.function, argument=way.argument, timeout_s=timeout_s, need_contexts=need_contexts, **more)


def cut(target: Target, top_k: int | None) -> Target:
    """The target with at most `top_k` contexts of each answer; all of them when that is None."""
    return target if top_k is None else FirstOf(target, top_k)


def described(part: TargetPart, written: Mapping[str, Any]) -> str:
    """The target as the history and messages name it: as it stands in the file, so that no variable is filled in."""
    if part.http is not None:
        told = _mapping(written.get("http"), "url")
        method = part.http.method or ("GET" if part.http.json_ is None and part.http.form is None else "POST")
        return f"http:{method} {told.get('url', part.http.url)}"
    if part.command is not None:
        run = _mapping(written.get("command"), "run").get("run", [])
        return f"command:{run if isinstance(run, str) else ' '.join(map(str, run))}"
    if part.plugin is not None:
        return f"plugin:{part.plugin.name}"
    return f"python:{written.get('python', part.python)}" if part.python is not None else "none"


class FirstOf:
    """A target whose contexts after the first `top_k` are left out, as if it had never returned them."""

    def __init__(self, target: Target, top_k: int) -> None:
        self._target = target
        self._top_k = top_k

    async def invoke(self, item: Item) -> Response:
        """Answer one item; the raw response stays whole."""
        response = await self._target.invoke(item)
        if response.contexts is None:
            return response
        return replace(response, contexts=response.contexts[: self._top_k])

    async def aclose(self) -> None:
        """Let go of what the target holds."""
        await close(self._target)


def _mapping(value: Any, bare: str) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {bare: value}
