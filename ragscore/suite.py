"""A suite: one evaluation, declared. The shape of the YAML file, checked by pydantic.

`ragscore.suite_file` reads the file and says where in it a fault stands; this module says what a suite is.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)

Against = Literal["auto", "reference", "output"]
Duplicates = Literal["count", "once"]
MissingReference = Literal["zero", "exclude"]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=False)

    @field_validator("*", mode="before")
    @classmethod
    def _no_boolean_as_number(cls, value: Any, info: ValidationInfo) -> Any:
        """Python takes true for 1, so that `scale: yes` would pass."""
        kind = cls.model_fields[info.field_name or ""].annotation
        if isinstance(value, bool) and kind in (int, float, int | None, float | None):
            raise ValueError("is true or false; write a number")
        return value


def _bare(key: str) -> BeforeValidator:
    """Lets a part be written as a bare string: `dataset: data.jsonl` for `dataset: {path: data.jsonl}`."""
    return BeforeValidator(lambda value: {key: value} if isinstance(value, str) else value)


class DatasetPart(_Part):
    """Where the labelled questions are. Paths are relative to the suite file."""

    path: str = Field(min_length=1, description="A JSONL file, one item a line.")


class TargetPart(_Part):
    """The RAG system under test, and how to call it."""

    retriever: str = Field(default="retriever", min_length=1, description="What is compared over time.")
    version: str = Field(default="dev", min_length=1, description="Which version of it this run is about.")
    python: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_][\w.]*$",
        description="module:callable, sync or async; called with the input.",
    )
    concurrency: int = Field(default=8, ge=1, le=1000, description="Calls of the target in flight at once.")
    timeout_s: float = Field(default=60.0, gt=0, allow_inf_nan=False, description="Seconds that one call may take.")

    @model_validator(mode="after")
    def _one_way(self) -> TargetPart:
        if self.python is None:
            raise ValueError("the target needs `python: module:callable`")
        return self

    @property
    def described(self) -> str:
        """The target as it is named in the history."""
        return f"python:{self.python}"


class ContextsPart(_Part):
    """Where the contexts of an item come from (DESIGN §4): static ones, and at most one extractor."""

    static: list[str] | None = Field(default=None, description="The same contexts for every item.")
    response: bool | None = Field(default=None, description="What the target returned as contexts (the default).")
    item: bool | None = Field(default=None, description="The contexts of the dataset row.")
    path: str | None = Field(default=None, description="A JMESPath expression on the target's response.")

    @field_validator("static")
    @classmethod
    def _not_empty(cls, value: list[str] | None) -> list[str] | None:
        if value is not None and not value:
            raise ValueError("an empty list of static contexts cannot be judged; name some, or leave it out")
        if value is not None and not all(text.strip() for text in value):
            raise ValueError("a static context without text cannot be judged; write its text, or remove it")
        return value

    @field_validator("response", "item")
    @classmethod
    def _true(cls, value: bool | None) -> bool | None:
        if value is False:
            raise ValueError("leave it out instead of writing false")
        return value

    @model_validator(mode="after")
    def _one_extractor(self) -> ContextsPart:
        named = [name for name in ("response", "item", "path") if getattr(self, name) is not None]
        if len(named) > 1:
            raise ValueError(f"name one extractor, not {' and '.join(named)}")
        if not named and self.static is None:
            raise ValueError("name a source: response, item, path or static")
        return self


class PricePart(_Part):
    """What a model costs, where LiteLLM does not know or a contract says otherwise; USD per million tokens."""

    input_per_million: float = Field(ge=0, allow_inf_nan=False)
    output_per_million: float = Field(ge=0, allow_inf_nan=False)
    cached_per_million: float | None = Field(default=None, ge=0, allow_inf_nan=False)


class JudgePart(_Part):
    """Who decides: `offline`, or any model that LiteLLM reaches (openai/…, anthropic/…, ollama/…, …)."""

    model: str = Field(
        default="offline", min_length=1, description="`offline` judges by words, without network or key."
    )
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

    @field_validator("base_url", "api_key_env")
    @classmethod
    def _empty_is_none(cls, value: str | None) -> str | None:
        return value or None


class ScorerPart(_Part):
    """One scorer. In YAML a name alone, or `{context_precision: {scale: 10, name: precision10}}`."""

    kind: Literal["context_recall", "context_precision"]
    name: str = Field(min_length=1)
    scale: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    against: Against = "auto"
    contexts: Annotated[ContextsPart, _bare("path")] | None = None

    @model_validator(mode="before")
    @classmethod
    def _short_forms(cls, value: Any) -> Any:
        if isinstance(value, str):
            return {"kind": value, "name": value}
        if not isinstance(value, dict):
            return value
        if "kind" in value:
            return {"name": value["kind"], **value}
        if len(value) != 1:
            raise ValueError("a scorer is one kind; indent options under it, or write {context_recall: {scale: 10}}")
        kind, options = next(iter(value.items()))
        if options is None:
            options = {}
        if not isinstance(options, dict):
            raise ValueError(f"the options of {kind} are no mapping; write {{{kind}: {{scale: 10}}}}")
        return {"kind": kind, "name": kind, **options}

    @model_validator(mode="after")
    def _against_is_for_precision(self) -> ScorerPart:
        if self.kind == "context_recall" and self.against != "auto":
            raise ValueError("`against` is an option of context_precision; recall is always against the reference")
        return self


class GatePart(_Part):
    """What a run must reach."""

    coverage: float = Field(
        default=0.95, ge=0, le=1, description="Least share of eligible items with a score; below it a run is exit 3."
    )


class Suite(_Part):
    """One evaluation: dataset, target, context extraction, judge, scorers, gate."""

    name: str = Field(min_length=1)
    dataset: Annotated[DatasetPart, _bare("path")]
    target: TargetPart
    contexts: Annotated[ContextsPart, _bare("path")] | None = None
    judge: Annotated[JudgePart, _bare("model")] = JudgePart()
    scorers: list[ScorerPart] = Field(
        default_factory=lambda: [
            ScorerPart(kind="context_recall", name="context_recall"),
            ScorerPart(kind="context_precision", name="context_precision"),
        ],
        min_length=1,
    )
    gate: GatePart = GatePart()
    missing_reference: MissingReference = Field(
        default="zero", description="Whether items without reference count in means with their 0."
    )
    duplicates: Duplicates = Field(
        default="count", description="Whether a repeated context counts at each of its ranks, or once."
    )
    frozen_claims: bool = Field(
        default=False, description="Extract no claims: a reference without frozen claims is an error (for CI)."
    )
    batch_size: int = Field(default=25, ge=1, le=10_000, description="Items per batch.")
    retries: int = Field(default=4, ge=0, le=20, description="How often a stage is tried again after a passing fault.")

    retry_delay_s: float = Field(
        default=2.0, ge=0, allow_inf_nan=False, description="Seconds before the first retry; doubles, with jitter."
    )

    @field_validator("scorers")
    @classmethod
    def _names_differ(cls, value: list[ScorerPart]) -> list[ScorerPart]:
        seen: set[str] = set()
        for scorer in value:
            if scorer.name in seen:
                raise ValueError(f"two scorers are named {scorer.name!r}; give one another `name`")
            seen.add(scorer.name)
        return value
