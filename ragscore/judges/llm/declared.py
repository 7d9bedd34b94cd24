"""The judge that a suite declares: its client, limits, budget and manners put together."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from ragscore.addresses import without_secrets
from ragscore.errors import ConfigError
from ragscore.judges.budget import Budget
from ragscore.judges.limiter import limiter_for
from ragscore.judges.llm.addresses import effective_base_url, key_variable
from ragscore.judges.llm.client import LiteLLMClient, Price
from ragscore.judges.llm.judge import LLMJudge
from ragscore.judges.llm.modes import Learnt, Manners, checked_params
from ragscore.judges.llm.sending import Sender
from ragscore.suite import JudgePart


def llm_judge(part: JudgePart, *, environment: Mapping[str, str], learnt: Learnt | None = None) -> LLMJudge:
    """The judge that a suite declares. Nothing is sent before `prepare`.

    Args:
        part: The suite's `judge`.
        environment: Where the key is looked up, and the provider's address when the suite names none.
        learnt: Where what is learnt about the model is kept.

    Raises:
        ConfigError: the key's variable is not set, a parameter is reserved, or a budget in dollars has no price.
    """
    variable = key_variable(part)
    key = environment.get(variable) if variable is not None else None
    if part.api_key_env is not None and not key:
        mend = f"set {part.api_key_env}, or name another variable in judge.api_key_env"
        raise ConfigError(f"the variable {part.api_key_env} is not set", where="judge.api_key_env", mend=mend)
    base_url = effective_base_url(part.model, part.base_url, environment)
    if base_url is not None and "@" in urlsplit(base_url).netloc:
        mend = "put the key into a variable and name that in judge.api_key_env"
        raise ConfigError("holds a user or a password", where="judge.base_url", mend=mend)
    price = Price(**part.price.model_dump()) if part.price is not None else None
    client = LiteLLMClient(part.model, base_url=base_url, api_key=key, price=price)
    asked = checked_params(part.params, temperature=part.temperature)
    manners = Manners(part.model, base_url, params=asked, max_tokens=part.max_tokens, learnt=learnt)
    named = f"the key in {variable}" if variable else "whether it wants a key (name its variable in judge.api_key_env)"
    address = without_secrets(base_url) if base_url else "of the provider"
    mend = f"check {named}, the model's name and the address {address}"
    limited = part.budget_usd is not None or part.budget_tokens is not None
    sender = Sender(
        client,
        limiter=limiter_for(part.model, base_url, concurrency=part.concurrency, rpm=part.rpm, tpm=part.tpm),
        budget=Budget(usd=part.budget_usd, tokens=part.budget_tokens) if limited else None,
        timeout_s=part.timeout_s,
        deadline_s=part.deadline_s,
        max_retries=part.max_retries,
        price=client.price_of,
        mend=mend,
    )
    return LLMJudge(
        sender,
        manners,
        deadline_s=part.deadline_s,
        max_contexts_per_call=part.max_contexts_per_call,
        mend=mend,
    )
