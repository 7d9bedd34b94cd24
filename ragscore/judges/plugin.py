"""A judge that an installed package offers (entry points of the group `ragscore.judges`)."""

from __future__ import annotations

import inspect
from typing import TypeGuard

from ragscore import plugins
from ragscore.errors import ConfigError
from ragscore.judges.memory import VersionedJudge
from ragscore.judges.protocol import Judge, must_be_prepared
from ragscore.secrets import Secrets
from ragscore.suite import PluginPart


def plugin_judge(plugin: PluginPart, *, where: str, secrets: Secrets | None = None) -> Judge:
    """The judge, made with the options of the suite.

    Args:
        plugin: Its name and options.
        where: The place in the suite, for messages.
        secrets: Kept out of messages.

    Raises:
        ConfigError: no package offers it, importing it fails, it cannot be made, or it has no `name` and `ask`.
    """
    found = plugins.load("judges", plugin.name, where=where)
    judge = plugins.instance(found, plugin.options, name=plugin.name, where=where, secrets=secrets)
    if not isinstance(judge, Judge) or not isinstance(judge.name, str):
        raise ConfigError(
            f"the judge {plugin.name!r} has no `name` and `async ask(task)`", where=where, mend="see its package"
        )
    return judge


def may_be_remembered(judge: Judge) -> TypeGuard[VersionedJudge]:
    """Whether the judge says what its answers depend on, so that they may be kept from run to run.

    It is looked at without being asked: what it depends on may be known only after `prepare`.
    """
    return must_be_prepared(judge) and inspect.getattr_static(judge, "prompt_version", None) is not None
