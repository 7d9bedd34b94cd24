"""What a judge can be asked: typed, immutable values. How a judge answers (words, prompts) is its own affair."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ragscore.items import digest


@dataclass(frozen=True, slots=True)
class Passage:
    """A distinct context as a judge sees it: an id that the verdict must echo, and the text."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class Claim:
    """One atomic fact of a reference, with the id that the verdict must echo."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class ExtractClaims:
    """Which atomic facts does `reference`, the trusted answer to `question`, state? Answered by `Judgement.claims`."""

    question: str
    reference: str
    name: Literal["extract_claims"] = "extract_claims"

    @property
    def key(self) -> str:
        """A hash of everything that the answer depends on, the judge aside."""
        return digest(self.name, self.question, self.reference)


@dataclass(frozen=True, slots=True)
class AttributeClaims:
    """Is each claim supported by `passages` taken together? One verdict per claim, ids echoed.

    `passages` are distinct and in canonical order, so that the order of retrieval has no influence.
    """

    question: str
    claims: tuple[Claim, ...]
    passages: tuple[Passage, ...]
    name: Literal["attribute_claims"] = "attribute_claims"

    @property
    def key(self) -> str:
        """A hash of everything that the answer depends on, the judge aside."""
        return digest(
            self.name,
            self.question,
            [claim.text for claim in self.claims],
            [passage.text for passage in self.passages],
        )


@dataclass(frozen=True, slots=True)
class RateContexts:
    """Is each passage of use for producing `expected`? One verdict per passage, ids echoed, each by itself.

    `expected` is the reference or the output, as `against` says, and None when there is neither.
    """

    question: str
    expected: str | None
    against: Literal["reference", "output", "question"]
    passages: tuple[Passage, ...]
    name: Literal["rate_contexts"] = "rate_contexts"

    @property
    def key(self) -> str:
        """A hash of everything that the answer depends on, the judge aside."""
        return digest(self.name, self.question, self.expected, self.against, [p.text for p in self.passages])


Task = ExtractClaims | AttributeClaims | RateContexts
