"""A suite: one evaluation, declared. The shape of the YAML file, checked by pydantic.

`ragscore.suite_file` reads the file and says where in it a fault stands; this module says what a suite is.
"""

from __future__ import annotations

import difflib
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from ragscore import scorer_kinds
from ragscore.suite_parts.contexts import ContextsPart
from ragscore.suite_parts.dataset import DatasetPart
from ragscore.suite_parts.gate import GatePart, ScorerGatePart, SlicesPart
from ragscore.suite_parts.judge import JudgePart, PricePart
from ragscore.suite_parts.part import Part, bare
from ragscore.suite_parts.plugin import PluginPart
from ragscore.suite_parts.scorer import ScorerKind, ScorerPart
from ragscore.suite_parts.target import CommandPart, HttpPart, HttpResponsePart, TargetPart, none_as_mapping

__all__ = [
    "CommandPart",
    "ContextsPart",
    "DatasetPart",
    "Duplicates",
    "GatePart",
    "HttpPart",
    "HttpResponsePart",
    "JudgePart",
    "MissingReference",
    "PluginPart",
    "PricePart",
    "ScorerGatePart",
    "ScorerKind",
    "ScorerPart",
    "SlicesPart",
    "StoreText",
    "Suite",
    "TargetPart",
]

Duplicates = Literal["count", "once"]
MissingReference = Literal["zero", "exclude"]
StoreText = Literal["full", "hash"]


class Suite(Part):
    """One evaluation: dataset, target, context extraction, judge, scorers, gate."""

    name: str = Field(min_length=1)
    dataset: Annotated[DatasetPart, bare("path")]
    target: Annotated[TargetPart, BeforeValidator(none_as_mapping)]
    contexts: Annotated[ContextsPart, bare("path")] | None = None
    judge: Annotated[JudgePart, bare("model")] = JudgePart()
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
    store_text: StoreText = Field(
        default="full", description="Whether the history keeps the texts, or only their fingerprints (hash)."
    )
    fused: bool = Field(
        default=False, description="One call an item for recall, precision, utilization and noise sensitivity together."
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

    @model_validator(mode="after")
    def _gate_names_scorers(self) -> Suite:
        # Scorers of one's own may bring their scale along; it is known, and held against `min`, when they are made.
        scales = {scorer.name: None if scorer.brings_its_scale else scorer.scale for scorer in self.scorers}
        kinds = {scorer.name: scorer.kind for scorer in self.scorers}
        parts = [*self.gate.scorers.items(), *(self.gate.slices.scorers.items() if self.gate.slices else ())]
        for name, part in parts:
            if name not in scales:
                near = difflib.get_close_matches(name, [*scales, *GatePart.model_fields], n=1)
                mend = f"did you mean `{near[0]}`?" if near else f"scorers here: {', '.join(scales)}"
                raise ValueError(f"gate: no scorer is named `{name}`; {mend}")
            if kinds[name] in scorer_kinds.LESS_IS_BETTER:
                raise ValueError(f"gate: of {name} less is better, and it cannot be gated; gate faithfulness instead")
            scale = scales[name]
            if part.min is not None and scale is not None and part.min > scale:
                raise ValueError(f"gate: {name} cannot reach {part.min:g}: its scale ends at {scale:g}")
        return self
