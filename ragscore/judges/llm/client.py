"""The one place that reaches a model, through LiteLLM: one attempt per call, every outcome a fault of ours.

LiteLLM is imported at the first request (seconds), never at start. Everything in it that acts by itself is off: its
retries, fallbacks, parameter dropping, telemetry, log lines, and downloads of price lists and tokenizers.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import re
import sys
import threading
import time
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from types import ModuleType
from typing import Any
from weakref import WeakSet

from ragscore.addresses import without_secrets
from ragscore.judges.llm.wire import (
    BadRequest,
    CallFault,
    Completion,
    PassingFault,
    RefusedFault,
    Request,
    Throttled,
    TimedOut,
    TooLong,
)

_ENVIRONMENT = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_OFFLINE_MODE": "true",
    "LITELLM_MODE": "PRODUCTION",
}
#: Sent where an address is named and no key: LiteLLM would else take the provider's own key from the environment and
#: give it to that address.
PLACEHOLDER_KEY = "none"
#: Providers whose requests are signed with cloud credentials; a key would take the place of the signature.
_SIGNED = frozenset({"bedrock", "bedrock_converse", "sagemaker", "sagemaker_chat", "vertex_ai", "vertex_ai_beta"})

#: Words in an error message, and the parameter that they speak of.
_SPEAKS_OF = {
    "response_format": "response_format",
    "json_schema": "response_format",
    "json_object": "response_format",
    "json schema": "response_format",
    "json mode": "response_format",
    "structured output": "response_format",
    "guided": "response_format",
    "grammar": "response_format",
    "max_completion_tokens": "max_completion_tokens",
    "max_tokens": "max_tokens",
    "max_output_tokens": "max_tokens",
    "temperature": "temperature",
    "top_p": "top_p",
    "seed": "seed",
    "reasoning_effort": "reasoning_effort",
    "frequency_penalty": "frequency_penalty",
    "presence_penalty": "presence_penalty",
}
_NO_CREDIT = re.compile(r"insufficient_quota|billing_(?:hard_limit|not_active)|credit balance is too low", re.I)
_BAD_KEY = re.compile(r"(?:incorrect|invalid) api key|api key not valid|api[_ ]key[_ ]invalid", re.I)
_NO_PROVIDER = re.compile(r"LLM Provider NOT provided|Unmapped LLM provider", re.I)
_TOO_LONG = re.compile(r"context (?:window|length|size)|prompt is too long|too many (?:input )?tokens|too large", re.I)
_PREFIX = re.compile(r"^(?:litellm\.\w+: |\w+Error: |\w+Exception - )+")
_READ_ONLY = ".*`ReadOnly` qualifier.*"
_SECRET = re.compile(r"\bsk-[\w*.-]{4,}|Bearer \S+")

_importing = threading.Lock()
_open_clients: WeakSet[LiteLLMClient] = WeakSet()


@dataclass(frozen=True, slots=True)
class Price:
    """USD per million tokens; cached prompt tokens cost the same as others unless said otherwise."""

    input_per_million: float
    output_per_million: float
    cached_per_million: float | None = None

    def of(self, prompt: int | None, completion: int | None, cached: int | None) -> float | None:
        """What one request cost, or None when its tokens are unknown."""
        if prompt is None or completion is None:
            return None
        kept = min(cached or 0, prompt) if self.cached_per_million is not None else 0
        dollars = (prompt - kept) * self.input_per_million + completion * self.output_per_million
        return (dollars + kept * (self.cached_per_million or 0.0)) / 1e6


class LiteLLMClient:
    """A `wire.Client` for any model that LiteLLM knows how to reach.

    Args:
        model: As LiteLLM writes it: `provider/name`.
        base_url: Used as it is. None for the provider's own address.
        api_key: The key. With a `base_url` and no key a placeholder is sent, never a key from the environment;
            without `base_url` LiteLLM takes this provider's own key from the environment.
        price: In place of LiteLLM's price list.

    One `max_tokens` per request is sent, from the request, unless `params` names `max_tokens` or
    `max_completion_tokens` itself; a parameter that is None is not sent.
    """

    def __init__(
        self, model: str, *, base_url: str | None = None, api_key: str | None = None, price: Price | None = None
    ) -> None:
        self._model = model
        self._base_url = base_url
        if base_url is not None and api_key is None and model.partition("/")[0] not in _SIGNED:
            api_key = PLACEHOLDER_KEY
        self._api_key = api_key
        self._price = price
        self._window: int | None = None
        self._window_known = False

    @property
    def model(self) -> str:
        """The model, as LiteLLM writes it."""
        return self._model

    @property
    def base_url(self) -> str | None:
        """The address that the suite or the environment names."""
        return self._base_url

    async def complete(self, request: Request, *, params: Mapping[str, Any], timeout_s: float) -> Completion:
        """Send one request once.

        Raises:
            CallFault: it was not answered; the kinds are in `wire`.
        """
        litellm = _litellm()
        import openai

        _open_clients.add(self)
        sent = self._arguments(request, params)
        started = time.perf_counter()
        try:
            # LiteLLM's time-out is per read; a server that drips bytes would outlast it.
            async with asyncio.timeout(timeout_s):
                answer = await litellm.acompletion(timeout=timeout_s, **sent)
        except TimeoutError:
            raise TimedOut(f"no answer within {timeout_s:g} s") from None
        except ImportError as error:
            raise RefusedFault(f"LiteLLM needs a package for this provider: {error}") from error
        except (openai.OpenAIError, OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            # The last four are how LiteLLM fails on an answer that is not a chat completion.
            raise self._fault(error, sent) from error
        return self._completion(answer, time.perf_counter() - started)

    def count_tokens(self, text: str) -> int:
        """Tokens of `text` by this model's tokenizer where LiteLLM carries it, else by a similar one."""
        return int(_litellm().token_counter(model=self._model, text=text))

    def window(self) -> int | None:
        """Tokens of prompt that the model takes by LiteLLM's list; None for a model that it does not know."""
        if not self._window_known:
            self._window = self._info("max_input_tokens") or self._info("max_tokens")
            self._window_known = True
        return self._window

    def has_price(self) -> bool:
        """Whether costs will be known: from the suite, else from LiteLLM's list."""
        return self._price is not None or self._info("input_cost_per_token") is not None

    def price_of(self, prompt_tokens: int, completion_tokens: int) -> float | None:
        """USD that a request of that size costs, none of it cached; None when the price is unknown."""
        if self._price is not None:
            return self._price.of(prompt_tokens, completion_tokens, 0)
        per_prompt, per_completion = self._info("input_cost_per_token"), self._info("output_cost_per_token")
        if per_prompt is None or per_completion is None:
            return None
        return float(prompt_tokens * per_prompt + completion_tokens * per_completion)

    async def aclose(self) -> None:
        """Close the connections, once the last client of this process is done with them (LiteLLM shares them)."""
        if self not in _open_clients:
            return
        _open_clients.discard(self)
        if not _open_clients:
            litellm = _litellm()
            await litellm.close_litellm_async_clients()
            litellm.in_memory_llm_clients_cache.flush_cache()

    def _arguments(self, request: Request, params: Mapping[str, Any]) -> dict[str, Any]:
        sent: dict[str, Any] = (
            {} if {"max_tokens", "max_completion_tokens"} & params.keys() else {"max_tokens": request.max_tokens}
        )
        sent |= {name: value for name, value in params.items() if value is not None}
        if request.mode == "json_schema":
            described = {"name": request.schema_name, "strict": True, "schema": request.schema}
            sent["response_format"] = {"type": "json_schema", "json_schema": described}
        elif request.mode == "json_object":
            sent["response_format"] = {"type": "json_object"}
        return sent | {
            "model": self._model,
            "messages": [dict(message) for message in request.messages],
            "api_base": self._base_url,
            "api_key": self._api_key,
            "stream": False,
            "max_retries": 0,
            "num_retries": 0,
            "drop_params": False,
        }

    def _completion(self, answer: Any, seconds: float) -> Completion:
        choice = answer.choices[0] if answer.choices else None
        message = choice.message if choice is not None else None
        # Some servers put a structured answer of a reasoning model into its reasoning, and leave the content empty.
        text = getattr(message, "content", None) or getattr(message, "reasoning_content", None) or ""
        usage = getattr(answer, "usage", None)
        prompt = getattr(usage, "prompt_tokens", None) or None  # 0 is how LiteLLM writes "not said"
        completion = getattr(usage, "completion_tokens", None) if prompt is not None else None
        cached = None
        if prompt is not None:
            cached = getattr(getattr(usage, "prompt_tokens_details", None), "cached_tokens", None) or 0
        if self._price is not None:
            cost = self._price.of(prompt, completion, cached)
        else:
            said = getattr(answer, "_hidden_params", {}).get("response_cost") if prompt is not None else None
            cost = None if said is None else float(said)
        return Completion(
            text=text,
            finish_reason=getattr(choice, "finish_reason", None),
            prompt_tokens=prompt,
            completion_tokens=completion,
            cached_tokens=cached,
            cost_usd=cost,
            latency_ms=seconds * 1000,
        )

    def _fault(self, error: Exception, sent: Mapping[str, Any]) -> CallFault:
        kind = type(error).__name__
        status = getattr(error, "status_code", None)
        raw = str(getattr(error, "message", None) or error)
        body = getattr(error, "body", None)
        code = f"{body.get('code')} {body.get('type')}" if isinstance(body, Mapping) else ""
        what = self._told(raw) or kind
        if _NO_CREDIT.search(f"{code} {raw}") or status in (401, 402, 403, 404) or _NO_PROVIDER.search(raw):
            return RefusedFault(what)
        if kind == "ContextWindowExceededError" or status == 413 or "request too large" in raw.lower():
            return TooLong(what)
        if status == 429:
            return Throttled(what, retry_after_s=retry_after(_headers(error)))
        if status in (408, 504) or kind == "Timeout":
            return TimedOut(what)
        if status in (400, 422):
            if _BAD_KEY.search(raw):
                return RefusedFault(what)
            named = body.get("param") if isinstance(body, Mapping) else None
            parameter = parameter_at_fault(raw, sent, named=named)
            if parameter is None and _TOO_LONG.search(raw):
                return TooLong(what)
            return BadRequest(what, parameter=parameter)
        return PassingFault(what, retry_after_s=retry_after(_headers(error)))

    def _told(self, message: str) -> str:
        """The message in one line, without LiteLLM's prefixes and without the key."""
        if self._api_key and self._api_key != PLACEHOLDER_KEY:
            message = message.replace(self._api_key, "***")
        if self._base_url:
            message = message.replace(self._base_url, without_secrets(self._base_url))
        return _SECRET.sub("***", _PREFIX.sub("", " ".join(message.split())))[:500]

    def _info(self, field: str) -> Any:
        litellm = _litellm()
        try:
            name, provider, _, _ = litellm.get_llm_provider(self._model)
        except litellm.exceptions.BadRequestError:
            return None
        known = litellm.model_cost
        info = known.get(self._model) or known.get(f"{provider}/{name}") or known.get(name) or {}
        value = info.get(field)
        return None if isinstance(value, str) else value


def parameter_at_fault(message: str, sent: Iterable[str], *, named: object = None) -> str | None:
    """The parameter that an error message complains about, of those in `sent`; None when it does not say.

    Args:
        message: The provider's words; of several parameters the one named first is meant.
        sent: The names of the parameters of the request.
        named: The `param` field of the error, where there is one.
    """
    sent = set(sent)
    if isinstance(named, str) and (root := re.split(r"[.\[]", named)[0]) in sent:
        return root
    lowered = message.lower()
    speaks_of = _SPEAKS_OF | {name: name for name in sent - {"model", "messages", "stream", "api_key", "api_base"}}
    found = [(at, name) for word, name in speaks_of.items() if name in sent and (at := lowered.find(word)) >= 0]
    return min(found)[1] if found else None


def retry_after(headers: Mapping[str, str], *, now: datetime | None = None) -> float | None:
    """Seconds to wait by `retry-after-ms` or `Retry-After` (seconds or an HTTP date, RFC 9110 §10.2.3), never < 0."""
    for name, unit in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is None:
            continue
        if re.fullmatch(r"\s*\d+(?:\.\d+)?\s*", value):
            return float(value) * unit
        try:
            at = parsedate_to_datetime(value)
        except ValueError:
            continue
        at = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
        return max(0.0, (at - (now or datetime.now(UTC))).total_seconds())
    return None


def _headers(error: Exception) -> Mapping[str, str]:
    response = getattr(error, "response", None)
    headers = getattr(response, "headers", None) or getattr(error, "litellm_response_headers", None) or {}
    return {str(name).lower(): str(value) for name, value in dict(headers).items()}


def _litellm() -> ModuleType:
    with _importing:
        if "litellm" not in sys.modules:
            os.environ.update(_ENVIRONMENT)
        # Nothing of the million objects that it makes is garbage: to look for some takes a sixth of the import.
        collects = gc.isenabled()
        gc.disable()
        try:
            import litellm
        finally:
            if collects:
                gc.enable()

        if litellm.suppress_debug_info is not True:
            litellm.suppress_debug_info = True  # "Give Feedback / Get Help" on stdout at every error
            litellm.disable_hf_tokenizer_download = True
            for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
                logging.getLogger(name).setLevel(logging.CRITICAL)
    # LiteLLM sets this filter once, at its import, and builds types that warn later. A test runner takes filters away
    # again, and with warnings as errors a call would then fail.
    if not any(getattr(known[1], "pattern", None) == _READ_ONLY for known in warnings.filters):
        warnings.filterwarnings("ignore", message=_READ_ONLY)
    module: ModuleType = litellm
    return module
