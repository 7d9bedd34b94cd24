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
    name: str = "extract_claims"

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
    name: str = "attribute_claims"

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
    name: str = "rate_contexts"

    @property
    def key(self) -> str:
        """A hash of everything that the answer depends on, the judge aside."""
        return digest(self.name, self.question, self.expected, self.against, [p.text for p in self.passages])


@dataclass(frozen=True, slots=True)
class ExtractEntities(ExtractClaims):
    """Which entities (people, places, things, times, amounts) does `reference` name? Answered by `Judgement.claims`."""

    name: str = "extract_entities"


@dataclass(frozen=True, slots=True)
class MapClaims(AttributeClaims):
    """Which passages state each claim? Like `AttributeClaims`, but the evidence names *every* passage that does.

    One answer serves recall, precision and what else is counted from claims × contexts (`fused: true`).
    """

    name: str = "map_claims"


@dataclass(frozen=True, slots=True)
class CrossClaims(MapClaims):
    """`MapClaims` for claims of the reference (ids c…) and statements of the output (ids o…), and one thing more.

    `Verdict.label` says whether the other text alone supports the claim, `elsewhere` or `only here`: the output for a
    claim of the reference, the reference for a statement of the output. One answer serves all that is counted from
    reference × output × contexts.
    """

    reference: str = ""
    output: str = ""
    name: str = "cross_claims"

    @property
    def key(self) -> str:
        """A hash of everything that the answer depends on, the judge aside."""
        claims = [(claim.id[:1], claim.text) for claim in self.claims]
        return digest(self.name, self.question, claims, [p.text for p in self.passages], self.reference, self.output)

    def other(self, claim: Claim) -> str:
        """The text that the label of a claim is about."""
        return self.reference if claim.id.startswith("o") else self.output


#: Labels of the verdicts on `CrossClaims`.
ELSEWHERE, ONLY_HERE = "elsewhere", "only here"


@dataclass(frozen=True, slots=True)
class ContradictClaims(AttributeClaims):
    """Is each claim contradicted by `passages`? A positive verdict says that it is; silence is no contradiction."""

    name: str = "contradict_claims"


@dataclass(frozen=True, slots=True)
class RateStatements(AttributeClaims):
    """Does each claim of an output answer `question`? `Verdict.label` is yes, unsure or no; there are no passages."""

    passages: tuple[Passage, ...] = ()
    name: str = "rate_statements"


@dataclass(frozen=True, slots=True)
class GradeContexts(RateContexts):
    """How relevant is each passage to `question`, and did the answer `expected` use it?

    `Verdict.label` is `high`, `medium`, `low` or `none`, followed by ` used` where the answer uses the passage.
    """

    name: str = "grade_contexts"


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """A question of the user's own, answered by a flat JSON object with `fields`; given as `Judgement.claims[0]`.

    Attributes:
        instructions: What the judge is told to do, without the data.
        blocks: The data, as (name, text); untrusted.
        fields: The keys of the answer and their kinds.
    """

    instructions: str
    blocks: tuple[tuple[str, str], ...]
    fields: tuple[tuple[str, Literal["boolean", "number", "text"]], ...]
    name: str = "answer_form"

    @property
    def key(self) -> str:
        """A hash of everything that the answer depends on, the judge aside."""
        return digest(self.name, self.instructions, self.blocks, self.fields)


Task = ExtractClaims | AttributeClaims | RateContexts | AnswerForm
