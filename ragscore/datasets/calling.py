"""A Python callable that yields rows, the user's or an installed package's: called once, its rows spooled as JSONL."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from ragscore import plugins
from ragscore.datasets.faults import DatasetErrors
from ragscore.datasets.jsonl import JsonLines
from ragscore.datasets.spool import Spool
from ragscore.datasets.tables import plain
from ragscore.errors import ConfigError, DatasetError
from ragscore.secrets import Secrets
from ragscore.suite import PluginPart
from ragscore.targets.python import load_callable


def called_source(reference: str, *, base_dir: Path, where: str, secrets: Secrets | None = None) -> JsonLines:
    """The rows that `module:callable` yields or returns; it takes no argument. The module may stand in `base_dir`.

    Raises:
        ConfigError: there is no such callable.
        DatasetError: it raises, or gives something that is no row.
    """
    function = load_callable(reference, base_dir=base_dir, where=where)
    return _spooled(function, reference, where=where, mend="mend the function", secrets=secrets)


def read_source(
    plugin: PluginPart, path: str | Path | None, *, where: str, secrets: Secrets | None = None
) -> JsonLines:
    """The rows that a package's dataset reader yields or returns: a callable, called with its options by name.

    Args:
        plugin: The reader, and its options.
        path: The suite's `dataset.path`, given to the reader as `path`; None where the suite names none.
        where: The place in the suite, for messages.
        secrets: Kept out of what is told of the reader's failure.

    Raises:
        ConfigError: no package offers it, importing it fails, or it is no callable.
        DatasetError: it raises, or gives something that is no row.
    """
    reader = plugins.load("datasets", plugin.name, where=where)
    if not callable(reader):
        raise ConfigError(f"the dataset reader {plugin.name!r} cannot be called", where=where, mend="see its package")
    options = plugin.options if path is None else {**plugin.options, "path": path}
    return _spooled(
        lambda: reader(**options), f"plugin {plugin.name}", where=where, mend="see its options", secrets=secrets
    )


def _spooled(
    function: Callable[[], Any], reference: str, *, where: str, mend: str, secrets: Secrets | None
) -> JsonLines:
    spool = Spool()
    spooled = spool.file("rows.jsonl")
    faults: list[str] = []
    with spooled.open("w", encoding="utf-8") as file:
        try:
            rows = function()
            if not isinstance(rows, Iterable) or isinstance(rows, (str, bytes, Mapping)):
                what = f"{reference} gave a {type(rows).__name__}, not rows"
                raise DatasetError(what, where=where, mend="yield one mapping for each item")
            for number, row in enumerate(rows, start=1):
                if isinstance(row, Mapping):
                    file.write(json.dumps(plain(row), default=_text_of) + "\n")
                else:
                    faults.append(f"{reference}: row {number}: is a {type(row).__name__}, not a mapping — yield dicts")
        except DatasetError:
            raise
        except Exception as error:  # the boundary to the user's code
            said = (secrets or Secrets()).hidden(f"{type(error).__name__}: {error}")
            raise DatasetError(f"{reference} fails: {said}", where=where, mend=mend) from error
    if faults:
        raise DatasetErrors(faults, unit="row")
    return JsonLines([spooled], reference, shown=[reference], unit="row", spool=spool)


def _text_of(value: Any) -> str:
    return str(value)
