"""Where a model is, and which variable holds its key."""

from __future__ import annotations

from collections.abc import Mapping

from ragscore.suite import JudgePart


def effective_base_url(model: str, base_url: str | None, environment: Mapping[str, str]) -> str | None:
    """Where requests for `model` go: the suite's address, else the one that the provider's variables name, else None.

    LiteLLM reads those variables too; we read them because judgements of two addresses are not the same.
    """
    if base_url is not None:
        return base_url
    provider = model.partition("/")[0].upper()
    for name in (f"{provider}_BASE_URL", f"{provider}_API_BASE"):
        if environment.get(name):
            return environment[name]
    return None


def key_variable(part: JudgePart) -> str | None:
    """The environment variable that the key is taken from; None where an address is named and no variable.

    A provider's own variable counts only for the provider's own address: a key must not go to an address that it was
    not made for.
    """
    if part.api_key_env is not None:
        return part.api_key_env
    return f"{part.model.partition('/')[0].upper()}_API_KEY" if part.base_url is None else None
