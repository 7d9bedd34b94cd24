"""Who decides, and what that may take."""

from __future__ import annotations

import difflib
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from ragscore.suite_parts.part import Part, bare
from ragscore.suite_parts.plugin import Plugin

#: What holds for a judge of an installed package, too; all else is for models.
WITH_PLUGIN = frozenset({"plugin", "concurrency", "fresh", "evidence", "repeats"})


class PricePart(Part):
    """What a model costs, where LiteLLM does not know or a contract says otherwise; USD per million tokens."""

    input_per_million: float = Field(ge=0, allow_inf_nan=False)
    output_per_million: float = Field(ge=0, allow_inf_nan=False)
    cached_per_million: float | None = Field(default=None, ge=0, allow_inf_nan=False)


class JudgePart(Part):
    """Who decides: `offline`, or any model that LiteLLM reaches (openai/…, anthropic/…, ollama/…, …)."""

    model: str = Field(
        default="offline", min_length=1, description="`offline` judges by words, without network or key."
    )
    plugin: Plugin | None = Field(default=None, description="A judge that an installed package offers, by its name.")
    base_url: str | None = Field(default=None, description="Address of an OpenAI-compatible server; empty means none.")
    api_key_env: str | None = Field(default=None, description="Name of the environment variable that holds the key.")
    temperature: float | None = Field(default=0.0, ge=0, le=2, description="Dropped if the model refuses it.")
    params: dict[str, Any] = Field(default_factory=dict, description="Further parameters, sent as they are.")
    concurrency: int = Field(default=16, ge=1, le=1000, description="Calls in flight at once.")
    rpm: int | None = Field(default=None, ge=1, description="Requests per minute.")
    tpm: int | None = Field(default=None, ge=1, description="Tokens per minute.")
    timeout_s: float = Field(default=60.0, gt=0, allow_inf_nan=False, description="Seconds for one attempt.")
    deadline_s: float = Field(default=300.0, gt=0, allow_inf_nan=False, description="Seconds for one item's task.")
    max_retries: int = Field(default=6, ge=0, le=50, description="Attempts after the first, for passing faults.")
    budget_usd: float | None = Field(default=None, gt=0, allow_inf_nan=False, description="Stop cleanly when spent.")
    budget_tokens: int | None = Field(default=None, gt=0, description="Stop cleanly when used.")
    price: PricePart | None = None
    fresh: bool = Field(default=False, description="Judge again in each run instead of remembering; claims stay.")
    max_tokens: int = Field(default=2048, ge=16, description="Room for one reply; grows when a reply is cut off.")
    max_contexts_per_call: int | None = Field(default=None, ge=1, description="Split longer lists of contexts.")
    evidence: Literal["flag", "require", "off"] = Field(
        default="flag", description="What a quote that stands in no context does: flag it, demote the claim, nothing."
    )
    jury: list[Annotated[JudgePart, bare("model")]] | None = Field(
        default=None, min_length=2, description="Several judges that vote; what else stands here holds for all of them."
    )
    rule: Literal["majority", "unanimous"] = Field(default="majority", description="How many must say yes in a jury.")
    repeats: int = Field(default=1, ge=1, le=20, description="Ask the judge so many times, and take the vote.")

    def seats(self, salt: str = "") -> list[tuple[JudgePart, str]]:
        """The judges of a jury, each with what keeps its remembered judgements apart from those of its repeats."""
        alone = {"jury": None, "repeats": 1, "rule": "majority"}
        members = self.jury or [self]
        seats = []
        for member in members:
            own = {name: getattr(member, name) for name in member.model_fields_set} if member is not self else {}
            judge = self.model_copy(update={**own, **alone})
            marks = [salt, *(f"{salt}#{number}" for number in range(2, max(self.repeats, member.repeats) + 1))]
            seats += [(judge, mark) for mark in marks]
        return seats

    @field_validator("jury")
    @classmethod
    def _no_jury_in_a_jury(cls, value: list[JudgePart] | None) -> list[JudgePart] | None:
        if value and any(member.jury for member in value):
            raise ValueError("a member of a jury is one judge, not a jury")
        return value

    @field_validator("model")
    @classmethod
    def _not_nearly_offline(cls, value: str) -> str:
        if value != "offline" and difflib.get_close_matches(value.lower(), ["offline"], cutoff=0.8):
            raise ValueError(f"no judge is named {value!r}; did you mean `offline`?")
        return value

    @model_validator(mode="after")
    def _a_plugin_is_no_model(self) -> JudgePart:
        other = sorted(self.model_fields_set - WITH_PLUGIN) if self.plugin is not None else []
        if other:
            raise ValueError(f"`{other[0]}` is not for a plugin; what the plugin takes stands below its name")
        return self

    @field_validator("base_url", "api_key_env")
    @classmethod
    def _empty_is_none(cls, value: str | None) -> str | None:
        return value or None
