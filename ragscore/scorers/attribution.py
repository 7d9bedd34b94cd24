"""Claims held against texts: what most scorers of this family ask for, asked in the same words by all of them.

Equal questions are equal tasks, so that a judge with a memory answers each of them once, however many scorers ask:
`faithfulness` and `noise_sensitivity` share the claims of the output and their support by the contexts,
`answer_similarity`, `answer_correctness` and `context_utilization` share what the output says of the reference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ragscore.items import Finding, Judgement, Status, Verdict
from ragscore.judges.claims import ClaimSet, ClaimSource
from ragscore.judges.protocol import Judge
from ragscore.judges.tasks import AttributeClaims, Claim, ExtractClaims, Passage
from ragscore.scorers.outcome import by_id, finding
from ragscore.scorers.protocol import Judged, Passages, Sample

#: Kinds of findings besides `claim` (of the reference, held against the contexts) and `context`.
OUTPUT_CLAIM, STATED_CLAIM = "output_claim", "stated_claim"


class Stopped(Exception):
    """Judging ends here; `judged` says with what."""

    def __init__(self, judged: Judged) -> None:
        super().__init__(judged.status.value)
        self.judged = judged


@dataclass
class Inquiry:
    """What one scorer asks about one sample; every answer is kept, so that its cost is, too.

    Raises (all methods):
        Stopped: there is nothing to ask, or an answer did not come.
    """

    sample: Sample
    ask: Judge
    claims: ClaimSource
    passages: Passages = field(init=False)
    made: dict[str, Judgement] = field(default_factory=dict)
    claim_set: ClaimSet | None = None
    output_claims: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.passages = Passages.of(self.sample.contexts.contexts)
        if not self.sample.item.answerable:
            raise self.stop(Status.UNANSWERABLE)

    def stop(self, status: Status, why: str | None = None) -> Stopped:
        """The end of judging with a status; what was asked so far stays in the bill."""
        return Stopped(self.judged(status, why))

    def judged(self, status: Status = Status.OK, why: str | None = None, *, against: str | None = None) -> Judged:
        """What was found."""
        return Judged(
            status,
            self.passages,
            claims=self.claim_set,
            against=against,
            also=dict(self.made),
            output_claims=self.output_claims,
            why=why,
        )

    @property
    def output(self) -> str:
        """What the system said."""
        output = self.sample.output
        if output is None or not output.strip():
            raise self.stop(Status.NO_CLAIMS, "the system said nothing: there is no output to judge")
        return output

    @property
    def reference(self) -> str:
        """The trusted answer."""
        reference = self.sample.item.reference
        if reference is None or not reference.strip():
            raise self.stop(Status.NO_REFERENCE)
        return reference

    def need_contexts(self) -> None:
        """Make sure that something was retrieved."""
        if not self.passages.passages:
            raise self.stop(Status.NO_CONTEXT)

    async def of_output(self) -> tuple[str, ...]:
        """The claims of the output."""
        judgement = await self.answer("output_claims", ExtractClaims(self.sample.item.input, self.output))
        if not judgement.claims:
            raise self.stop(Status.NO_CLAIMS, "the output states no claim")
        self.output_claims = judgement.claims
        return judgement.claims

    async def of_reference(self, *, may_be_none: bool = False) -> tuple[str, ...]:
        """The claims of the reference: those of the item, the frozen ones, or extracted now and frozen.

        Args:
            may_be_none: Whether to go on where the reference states no claim.
        """
        known = self.claims.known(self.sample.item)
        if known is None:
            _ = self.reference
            known, judgement = await self.claims.of(self.sample.item)
            if judgement is not None:
                self.made["reference_claims"] = judgement
            if known is None:
                raise self.stop(judgement.status if judgement is not None else Status.JUDGE_ERROR)
        self.claim_set = known
        if not known.claims and not may_be_none:
            raise self.stop(Status.NO_CLAIMS)
        return known.claims

    async def answer(self, about: str, task: ExtractClaims | AttributeClaims) -> Judgement:
        """The judge's answer to `task`, with a verdict for every claim of it."""
        judgement = await self.ask.ask(task)
        self.made[about] = judgement
        if judgement.status is not Status.OK:
            raise self.stop(judgement.status)
        if isinstance(task, AttributeClaims):
            verdicts = by_id(judgement)
            missing = [claim.id for claim in task.claims if claim.id not in verdicts]
            if missing:
                raise self.stop(Status.JUDGE_ERROR, f"no verdict for {', '.join(missing)}")
        return judgement

    async def supported(self, about: str, claims: Sequence[str], texts: Sequence[Passage]) -> Judgement:
        """Whether `texts` support each claim."""
        return await self.answer(about, AttributeClaims(self.sample.item.input, numbered(claims), tuple(texts)))


def numbered(claims: Sequence[str]) -> tuple[Claim, ...]:
    """Claims with the ids c1, c2, … that verdicts echo."""
    return tuple(Claim(f"c{number}", text) for number, text in enumerate(claims, start=1))


def as_passage(text: str) -> tuple[Passage, ...]:
    """A whole text as the one thing that claims are held against."""
    return (Passage("p1", text),)


def yes(judgement: Judgement, count: int) -> list[bool]:
    """The verdicts on claims c1 … c`count`, in order."""
    verdicts = by_id(judgement)
    return [verdicts[f"c{number}"].positive for number in range(1, count + 1)]


def claim_findings(
    kind: str,
    claims: Sequence[str],
    verdicts: Mapping[str, Verdict],
    passages: Passages | None,
    *,
    positive: Sequence[bool] | None = None,
    prefix: str = "c",
) -> list[Finding]:
    """One finding per claim; `positive` takes the place of the verdicts' own yes or no."""
    return [
        finding(
            kind,
            id=f"{prefix}{number}",
            rank=number,
            text=claim,
            verdict=verdicts.get(f"c{number}"),
            passages=passages,
            positive=None if positive is None else positive[number - 1],
        )
        for number, claim in enumerate(claims, start=1)
    ]
