"""What installed packages offer by entry points: scorers, targets, dataset readers and judges, all in one way.

An entry point's name is what a suite names. Which names there are is read from the packages' metadata; a package is
imported only when a suite names what it offers.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal

from ragscore.errors import ConfigError
from ragscore.secrets import Secrets

Group = Literal["scorers", "targets", "datasets", "judges"]
#: What a package offers in a group, in the words of messages.
CALLED: Mapping[Group, str] = {
    "scorers": "scorer",
    "targets": "target",
    "datasets": "dataset reader",
    "judges": "judge",
}


def entry_point_group(group: Group) -> str:
    """The group as a package's metadata names it, e.g. `ragscore.scorers`."""
    return f"ragscore.{group}"


def offered(group: Group) -> tuple[str, ...]:
    """The names that installed packages offer, sorted. Imports none of them."""
    return tuple(sorted(entry_points(group=entry_point_group(group)).names))


def load(group: Group, name: str, *, where: str) -> Any:
    """What an installed package offers under that name; its module is imported now.

    Args:
        group: Where it is looked for.
        name: The entry point's name.
        where: The place in the suite, for messages.

    Raises:
        ConfigError: no package offers it (with the nearest name), several do, or importing it fails.
    """
    called = CALLED[group]
    points: list[EntryPoint] = list(entry_points(group=entry_point_group(group), name=name))
    if not points:
        names = offered(group)
        near = difflib.get_close_matches(name, names, n=1)
        there = f"install the package; installed ones offer: {', '.join(names) or 'none'}"
        raise ConfigError(
            f"no installed package offers a {called} {name!r}",
            where=where,
            mend=f"did you mean `{near[0]}`?" if near else there,
        )
    if len({point.value for point in points}) > 1:
        packages = ", ".join(sorted(_package(point) for point in points))
        raise ConfigError(f"several packages offer a {called} {name!r}: {packages}", where=where, mend="uninstall one")
    try:
        return points[0].load()
    except (Exception, SystemExit) as error:  # the boundary to the package's code
        said = f"{type(error).__name__}: {error}".removesuffix(": ")
        raise ConfigError(
            f"the {called} {name!r} of the package {_package(points[0])} cannot be imported: {said}",
            where=where,
            mend="see the package's own requirements",
        ) from error


def instance(found: Any, options: Mapping[str, Any], *, name: str, where: str, secrets: Secrets | None = None) -> Any:
    """A class, made with the options; anything else as it is.

    Args:
        found: What a package offers, or a module of the user's holds.
        options: What a class is made with, variables filled in.
        name: Its name, for messages.
        where: The place in the suite, for messages.
        secrets: Kept out of what the class says when it cannot be made.

    Raises:
        ConfigError: the class cannot be made, or there are options and no class to take them.
    """
    if inspect.isclass(found):
        try:
            return found(**options)
        except Exception as error:  # the boundary to the user's or the package's code
            said = (secrets or Secrets()).hidden(f"{type(error).__name__}: {error}")
            raise ConfigError(f"{name} cannot be made: {said}", where=where, mend="see its options") from error
    if options:
        raise ConfigError(f"{name} is no class and takes no options", where=where, mend="remove its options")
    return found


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else "?"
