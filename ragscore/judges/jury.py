"""A jury: several judges, or one asked several times, whose votes make the verdict.

Claims are extracted by the first member alone, since lists cannot be voted on, and so is the answer to a form of the
user's own. How many agreed is the verdict's `confidence` (the share of the votes cast that agree with it).
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from ragscore.items import Evidence, Judgement, Status, Usage, Verdict
from ragscore.judges.llm.judge import LLMJudge
from ragscore.judges.protocol import Judge
from ragscore.judges.setup import JudgeSetup
from ragscore.judges.tasks import ELSEWHERE, ONLY_HERE, AnswerForm, ExtractClaims, MapClaims, Task

Rule = Literal["majority", "unanimous"]
#: Labels from the least to the most favourable: of several with as many votes the least favourable stands.
FAVOUR = ("no", "none", "unsure", "low", "low used", "medium", "medium used", "high", "high used", "yes")


class Jury:
    """Asks all its members at once and takes their votes.

    Args:
        members: The judges; two at least. The same judge may sit several times.
        rule: `majority`: yes needs more than half of the votes; `unanimous`: it needs all of them.
        name: The jury's name; made from its members' when left out.

    Which contexts state a claim (`fused`) is voted on context by context, under the same rule.
    A verdict needs votes of more than half of the members; else that id has none, as where any judge leaves one out.

    Raises:
        ValueError: there are fewer than two members.
    """

    def __init__(self, members: Sequence[Judge], *, rule: Rule = "majority", name: str | None = None) -> None:
        if len(members) < 2:
            raise ValueError("a jury has two members at least")
        self._members = tuple(members)
        self._rule = rule
        counted = Counter(member.name for member in members)
        seats = ",".join(f"{each}×{count}" if count > 1 else each for each, count in counted.items())
        self._name = name or f"jury({seats})/{rule}"

    @property
    def name(self) -> str:
        """The members and the rule."""
        return self._name

    @property
    def identity(self) -> str:
        """What the members' verdicts depend on, and the rule; known after `prepare`."""
        seats = [getattr(member, "identity", json.dumps(member.name)) for member in self._members]
        return json.dumps({"jury": [json.loads(each) for each in seats], "rule": self._rule}, sort_keys=True)

    async def prepare(self) -> None:
        """Make every member ready.

        Raises:
            JudgeRefused, JudgeUnavailable: of the first member that does not work.
        """
        for member in self._members:
            prepare = getattr(member, "prepare", None)
            if prepare is not None:
                await prepare()

    async def ask(self, task: Task) -> Judgement:
        """The jury's decisions on one task; the bill is that of all members.

        Args:
            task: What is asked.

        Returns:
            One verdict per id that enough members voted on; `confidence` is the share of votes that agree, 0..1.

        Raises:
            JudgeRefused, JudgeUnavailable: a member cannot be asked at all.
        """
        if isinstance(task, (ExtractClaims, AnswerForm)):
            return await self._members[0].ask(task)
        said = await asyncio.gather(*(member.ask(task) for member in self._members))
        voted: dict[str, list[Verdict]] = {}
        for judgement in said:
            for id, verdict in _by_id(judgement).items():
                voted.setdefault(id, []).append(verdict)
        seats = len(self._members)
        verdicts = tuple(
            self._verdict(votes, seats, placed=isinstance(task, MapClaims))
            for votes in voted.values()
            if 2 * len(votes) > seats
        )
        failed = [each for each in said if each.status is not Status.OK]
        status, error = Status.OK, None
        if failed and (2 * len(failed) >= seats or len(verdicts) < len(voted)):
            status, error = failed[0].status, f"{len(failed)} of {seats} judges gave no verdicts: {failed[0].error}"
        return Judgement(
            judge=self.name,
            status=status,
            verdicts=verdicts,
            usage=sum((each.usage for each in said), Usage()),
            calls=tuple(call for each in said for call in each.calls),
            prompt_version=said[0].prompt_version,
            params=json.dumps({"members": [each.judge for each in said], "rule": self._rule}, ensure_ascii=False),
            error=error,
            raw=failed[0].raw if status is not Status.OK else None,
        )

    def _enough(self, yes: int, votes: int) -> bool:
        return yes == votes if self._rule == "unanimous" else 2 * yes > votes

    def _verdict(self, votes: Sequence[Verdict], seats: int, *, placed: bool) -> Verdict:
        positive = self._enough(sum(vote.positive for vote in votes), len(votes))
        agreeing = [vote for vote in votes if vote.positive == positive]
        label = _label([vote.label for vote in votes if vote.label is not None])
        if label in (ELSEWHERE, ONLY_HERE):  # a question of its own beside yes or no, under the same rule
            there = sum(vote.label == ELSEWHERE for vote in votes)
            label = ELSEWHERE if self._enough(there, len(votes)) else ONLY_HERE
        elif label is not None:  # a grade is more than yes or no: it is what is voted on
            agreeing = [vote for vote in votes if vote.label == label]
            positive = agreeing[0].positive
        named = Counter(passage for vote in votes for passage in {each.passage for each in vote.evidence})
        evidence: dict[tuple[str, str], Evidence] = {}
        for vote in agreeing:
            for each in vote.evidence:
                # Where a passage is asked for, and no mere quote, it needs as many votes as the claim itself.
                if not placed or self._enough(named[each.passage], len(votes)):
                    evidence.setdefault((each.passage, each.quote), each)
        warnings = list(dict.fromkeys(said for vote in agreeing for said in vote.warnings))
        if len(agreeing) < len(votes):
            warnings.append(f"{len(agreeing)} of {len(votes)} judges agree")
        if len(votes) < seats:
            warnings.append(f"{len(votes)} of {seats} judges voted")
        return Verdict(
            id=votes[0].id,
            positive=positive,
            why=next((vote.why for vote in agreeing if vote.why), ""),
            evidence=tuple(evidence.values()),
            warnings=tuple(warnings),
            confidence=len(agreeing) / len(votes),
            remembered=all(vote.remembered for vote in votes),
            label=label,
        )


def _by_id(judgement: Judgement) -> dict[str, Verdict]:
    """A member's vote per id; of several for one id the first counts."""
    votes: dict[str, Verdict] = {}
    for vote in judgement.verdicts:
        votes.setdefault(vote.id, vote)
    return votes


def _label(labels: Sequence[str]) -> str | None:
    if not labels:
        return None
    counted = Counter(labels)
    most = max(counted.values())
    tied = [each for each, count in counted.items() if count == most]
    return min(tied, key=lambda each: FAVOUR.index(each) if each in FAVOUR else len(FAVOUR))


@dataclass(frozen=True)
class JurySetup(JudgeSetup):
    """The setup of a jury: the members' own, closed together."""

    members: Sequence[JudgeSetup] = field(default_factory=tuple)

    async def aclose(self) -> None:
        """Close what every member holds."""
        for member in self.members:
            await member.aclose()

    @property
    def models(self) -> Sequence[LLMJudge]:
        """The judges of all members that ask a model."""
        return tuple(model for member in self.members for model in member.models)

    @property
    def notes(self) -> Sequence[str]:
        """What the members have to say, each thing once."""
        return tuple(dict.fromkeys(note for member in self.members for note in member.notes))
