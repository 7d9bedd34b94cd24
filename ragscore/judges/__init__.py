"""Judges: what they can be asked, and the ones there are."""

from ragscore.judges.claims import AskedClaims, ClaimSet, ClaimSource
from ragscore.judges.protocol import Judge
from ragscore.judges.tasks import AttributeClaims, Claim, ExtractClaims, Passage, RateContexts, Task

__all__ = [
    "AskedClaims",
    "AttributeClaims",
    "Claim",
    "ClaimSet",
    "ClaimSource",
    "ExtractClaims",
    "Judge",
    "Passage",
    "RateContexts",
    "Task",
]
