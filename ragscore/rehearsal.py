"""What the scorers of a suite would ask: their own judge parts, carried out against a judge that only takes notes.

Nothing is sent. Every claim counts as supported and every context as useful, so that no question is left out that a
run may ask; equal questions are noted apart from the first, since a memory answers them once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ragscore.items import Context, ContextSet, Item, Judgement, Status, Verdict
from ragscore.judges import (
    AnswerForm,
    AttributeClaims,
    ClaimSource,
    CrossClaims,
    ExtractClaims,
    ExtractEntities,
    GradeContexts,
    RateStatements,
)
from ragscore.judges.claims import ClaimSet
from ragscore.judges.tasks import ELSEWHERE, Task
from ragscore.scorers import Sample, Scorer

#: Characters of one claim, where claims are not known before they are extracted.
CLAIM = 80
#: What claims are extracted for, in the table of shares.
CLAIMS = "claims"


@dataclass
class Notes:
    """The questions of one run by who asks them: a scorer's name, or `claims` for the claims of references.

    `asked` are those that nobody asked before, `again` those that a judge with a memory need not be asked.
    """

    asked: dict[str, list[Task]] = field(default_factory=dict)
    again: dict[str, list[Task]] = field(default_factory=dict)
    _keys: set[str] = field(default_factory=set)
    _frozen: set[str] = field(default_factory=set)

    def add(self, who: str, task: Task) -> None:
        """Note a question; claims of a reference are asked for once in any case, since they are frozen then."""
        if task.key not in self._keys:
            self.asked.setdefault(who, []).append(task)
        elif who != CLAIMS or task.key not in self._frozen:
            self.again.setdefault(who, []).append(task)
        self._keys.add(task.key)
        if who == CLAIMS:
            self._frozen.add(task.key)


@dataclass(frozen=True)
class NotingJudge:
    """Notes every question, and answers as if all were found."""

    notes: Notes
    who: str
    name: str = "notes"

    async def ask(self, task: Task) -> Judgement:
        """An answer of the form that the task has."""
        self.notes.add(self.who, task)
        return Judgement(self.name, Status.OK, claims=_claims(task), verdicts=_verdicts(task))


@dataclass(frozen=True)
class NotingClaims:
    """The claims that are known; for others a question is noted, and pieces of the reference stand for them."""

    known_claims: ClaimSource
    notes: Notes

    def known(self, item: Item) -> ClaimSet | None:
        """The claims that need no call."""
        return self.known_claims.known(item)

    async def of(self, item: Item) -> tuple[ClaimSet | None, Judgement | None]:
        """The claims, known or made up."""
        if (known := self.known(item)) is not None:
            return known, None
        task = ExtractClaims(item.input, item.reference or "")
        self.notes.add(CLAIMS, task)
        return ClaimSet(_claims(task), "notes"), None


async def rehearse(
    scorers: Sequence[Scorer],
    items: Sequence[Item],
    claims: ClaimSource,
    *,
    contexts: Callable[[Scorer, Item], Sequence[Context]],
    output: Callable[[Item], str | None],
) -> Notes:
    """The questions that scorers ask about items, in their order.

    Args:
        scorers: The scorers; none of the user's own, whose code would be run.
        items: The items.
        claims: Where claims that are known come from.
        contexts: What a scorer is given as retrieved for an item, best first.
        output: What is answered to an item; None for nothing.
    """
    notes = Notes()
    source = NotingClaims(claims, notes)
    for item in items:
        said = output(item)
        for scorer in scorers:
            sample = Sample(item, said, ContextSet("rehearsal", tuple(contexts(scorer, item))))
            await scorer.judge(sample, judge=NotingJudge(notes, scorer.name), claims=source)
    return notes


def _claims(task: Task) -> tuple[str, ...]:
    match task:
        case AnswerForm():
            usual = {"boolean": True, "number": 1, "text": ""}
            return (json.dumps({name: usual[kind] for name, kind in task.fields}),)
        case ExtractEntities():
            return ("somebody",)
        case ExtractClaims():
            text = task.reference
            return tuple(text[start : start + CLAIM] for start in range(0, len(text), CLAIM))
    return ()


def _verdicts(task: Task) -> tuple[Verdict, ...]:
    match task:
        case RateStatements():
            return tuple(Verdict(claim.id, True, label="yes") for claim in task.claims)
        case CrossClaims():
            return tuple(Verdict(claim.id, True, label=ELSEWHERE) for claim in task.claims)
        case AttributeClaims():
            return tuple(Verdict(claim.id, True) for claim in task.claims)
        case GradeContexts():
            return tuple(Verdict(passage.id, True, label="high used") for passage in task.passages)
        case AnswerForm() | ExtractClaims():
            return ()
    return tuple(Verdict(passage.id, True) for passage in task.passages)
