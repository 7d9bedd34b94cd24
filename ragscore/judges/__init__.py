"""Judges: what they can be asked, and the ones there are."""

from ragscore.judges.claims import AskedClaims, ClaimSet, ClaimSource
from ragscore.judges.protocol import Judge
from ragscore.judges.tasks import (
    AnswerForm,
    AttributeClaims,
    Claim,
    ContradictClaims,
    CrossClaims,
    ExtractClaims,
    ExtractEntities,
    GradeContexts,
    MapClaims,
    Passage,
    RateContexts,
    RateStatements,
    Task,
)

__all__ = [
    "AnswerForm",
    "AskedClaims",
    "AttributeClaims",
    "Claim",
    "ClaimSet",
    "ClaimSource",
    "ContradictClaims",
    "CrossClaims",
    "ExtractClaims",
    "ExtractEntities",
    "GradeContexts",
    "Judge",
    "MapClaims",
    "Passage",
    "RateContexts",
    "RateStatements",
    "Task",
]
