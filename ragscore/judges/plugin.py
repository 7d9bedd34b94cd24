"""A judge that an installed package offers (entry points of the group `ragscore.judges`)."""

from __future__ import annotations

from typing import TypeGuard

from ragscore import plugins
from ragscore.errors import ConfigError
from ragscore.judges.memory import VersionedJudge
from ragscore.judges.protocol import Judge
from ragscore.suite import PluginPart


def plugin_judge(plugin: PluginPart, *, where: str) -> Judge:
    """The judge, made with the options of the suite.

    Raises:
        ConfigError: no package offers it, importing it fails, it cannot be made, or it has no `name` and `ask`.
    """
    found = plugins.load("judges", plugin.name, where=where)
    judge = plugins.instance(found, plugin.options, name=plugin.name, where=where)
    if not isinstance(judge, Judge) or not isinstance(judge.name, str):
        raise ConfigError(
            f"the judge {plugin.name!r} has no `name` and `async ask(task)`", where=where, mend="see its package"
        )
    return judge


def may_be_remembered(judge: Judge) -> TypeGuard[VersionedJudge]:
    """Whether the judge says what its answers depend on, so that they may be kept from run to run."""
    return all(hasattr(judge, name) for name in ("identity", "prepare", "prompt_version"))
