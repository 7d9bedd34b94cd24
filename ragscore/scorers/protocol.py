"""What a scorer is: a judge part that asks and a score part that computes, always separate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Protocol

from ragscore.items import Call, Context, ContextSet, Item, Judgement, Score, Status, Usage, digest
from ragscore.judges.claims import ClaimSet, ClaimSource
from ragscore.judges.protocol import Judge
from ragscore.judges.tasks import Passage


@dataclass(frozen=True, slots=True)
class Passages:
    """The distinct contexts of one item, in an order that does not depend on their ranks.

    `ranks` gives for each passage id the ranks (first is 1) at which its text was retrieved, ascending.
    """

    passages: tuple[Passage, ...]
    ranks: Mapping[str, tuple[int, ...]]

    @classmethod
    def of(cls, contexts: Sequence[Context]) -> Passages:
        """Fold repeats together; contexts without any text are left out (nothing to judge)."""
        first_text: dict[str, str] = {}
        ranks: dict[str, list[int]] = {}
        for rank, context in enumerate(contexts, start=1):
            if key := context.key:
                first_text.setdefault(key, context.text)
                ranks.setdefault(key, []).append(rank)
        ordered = sorted(first_text, key=lambda key: digest(key))
        return cls(
            passages=tuple(Passage(f"p{number}", first_text[key]) for number, key in enumerate(ordered, start=1)),
            ranks={f"p{number}": tuple(ranks[key]) for number, key in enumerate(ordered, start=1)},
        )

    def rank_of(self, passage_id: str) -> int | None:
        """The first rank of that passage, or None for an id that was never given out."""
        return self.ranks[passage_id][0] if passage_id in self.ranks else None


@dataclass(frozen=True, slots=True)
class Sample:
    """What one scorer looks at: the item, what the target said, and the contexts that this scorer resolves to."""

    item: Item
    output: str | None
    contexts: ContextSet


@dataclass(frozen=True, slots=True)
class Judged:
    """The judge part's result: `status` OK with a judgement, or why there is none to score.

    Scorers that need several judgements keep the others in `also`, by what they are about; `output_claims` are the
    claims of the output where there was something to find them in. `why` says what the status is about, `value` is what
    a scorer of the user's own found.
    """

    status: Status
    passages: Passages | None = None
    judgement: Judgement | None = None
    claims: ClaimSet | None = None
    extraction: Judgement | None = None
    against: str | None = None
    also: Mapping[str, Judgement] = field(default_factory=dict)
    output_claims: tuple[str, ...] = ()
    why: str | None = None
    value: object = None

    @property
    def judgements(self) -> tuple[Judgement, ...]:
        """All that was asked for, in the order of asking."""
        return tuple(each for each in (self.extraction, *self.also.values(), self.judgement) if each is not None)

    @property
    def usage(self) -> Usage:
        """All that this judging cost."""
        total = Usage()
        for judgement in self.judgements:
            total += judgement.usage
        return total

    @property
    def calls(self) -> tuple[Call, ...]:
        """All requests that this judging made."""
        return tuple(call for judgement in self.judgements for call in judgement.calls)


class Scorer(Protocol):
    """Turns judgements into a score. `version` rises whenever the same judgements would score differently."""

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def scale(self) -> Fraction: ...

    async def judge(self, sample: Sample, *, judge: Judge, claims: ClaimSource) -> Judged:
        """Ask for what the score needs."""
        ...

    def score(self, sample: Sample, judged: Judged) -> Score:
        """Compute; pure, exact, no I/O."""
        ...
