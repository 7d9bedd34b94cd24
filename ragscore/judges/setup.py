"""The judge of a suite with its memory, evidence policy and claims around it, from first task to last."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragscore.home import home
from ragscore.items import Call, Item
from ragscore.judges.claims import AskedClaims, ClaimSource
from ragscore.judges.frozen_claims import FrozenClaims, beside, place
from ragscore.judges.judgement_store import JudgementStore
from ragscore.judges.llm.declared import llm_judge
from ragscore.judges.llm.judge import LLMJudge
from ragscore.judges.llm.quotes import with_evidence_policy
from ragscore.judges.memory import RememberingJudge
from ragscore.judges.offline import OfflineJudge
from ragscore.judges.protocol import Judge, PreparedJudge, must_be_prepared
from ragscore.secrets import Secrets
from ragscore.suite import JudgePart


@dataclass(frozen=True)
class JudgeSetup:
    """A judge ready to be prepared.

    Attributes:
        judge: Who is asked, through memory and evidence policy.
        claims: Where the claims of references come from.
        prepared: The same judge where it must be made ready; None for judges that are.
        model: The judge that asks a model, inside the others; None for judges without one.
        memory: What is remembered between runs; None for judges that cost nothing.
        plugin: The judge of an installed package, inside the others; None for judges of our own.
    """

    judge: Judge
    claims: ClaimSource
    prepared: PreparedJudge | None = None
    model: LLMJudge | None = None
    memory: JudgementStore | None = None
    plugin: Judge | None = None

    async def prepare(self) -> None:
        """Check key, model and address, and learn the effective parameters, before anything is asked.

        Raises:
            JudgeRefused: the judge will not work for us.
            JudgeUnavailable: it does not answer.
        """
        if self.prepared is not None:
            await self.prepared.prepare()

    async def aclose(self) -> None:
        """Close connections and files."""
        if self.model is not None:
            await self.model.aclose()
        if (aclose := getattr(self.plugin, "aclose", None)) is not None:
            await aclose()
        if self.memory is not None:
            self.memory.close()

    @property
    def params(self) -> str:
        """JSON of what the judge's answers depend on besides its name; known after `prepare`."""
        return self.prepared.identity if self.prepared is not None else "{}"

    @property
    def models(self) -> Sequence[LLMJudge]:
        """The judges that ask a model, inside the others."""
        return () if self.model is None else (self.model,)

    @property
    def probe_calls(self) -> tuple[Call, ...]:
        """The requests that `prepare` took."""
        return tuple(call for model in self.models for call in model.probe_calls)

    @property
    def learnt(self) -> Mapping[str, Mapping[str, Any]]:
        """What is known of the models, for `tell` in another process; known after `prepare`."""
        return {model.manners.key: model.manners.learnt for model in self.models}

    def tell(self, learnt: Mapping[str, Mapping[str, Any]]) -> None:
        """Take over what another process learnt of the same models, so that `prepare` need not ask them."""
        for model in self.models:
            if model.manners.key in learnt:
                model.manners.take_over(learnt[model.manners.key])

    @property
    def notes(self) -> Sequence[str]:
        """What a user should know about the memory, one line each."""
        return self.memory.notes if self.memory is not None else ()


def judge_setup(
    part: JudgePart,
    *,
    dataset: Path,
    frozen: bool = False,
    salt: str = "",
    environment: Mapping[str, str] | None = None,
    where: str = "judge",
    secrets: Secrets | None = None,
) -> JudgeSetup:
    """The judge that a suite names. Nothing is sent before `prepare`.

    Args:
        part: The suite's `judge`.
        dataset: The dataset's file, beside which claims are frozen.
        frozen: Extract no claims; what is missing is an error.
        salt: Judge again under this name, and remember that apart (`--fresh`: the run's id).
        environment: Where keys are looked up; the process's own when left out.
        where: The place of `judge` in the suite, for messages.
        secrets: Kept out of what a package's judge says when it cannot be made.

    Raises:
        ConfigError: a key's variable is not set, a parameter is reserved, a budget in dollars has no price, or a
            package's judge is not there or cannot be made.
        DatasetError: the claims file cannot be read or understood.
    """
    kept_in = place(dataset, home())

    def freezing(judge: Judge, *, freeze: bool = True) -> FrozenClaims:
        return FrozenClaims(judge, kept_in, committed=beside(dataset), frozen=frozen, freeze=freeze)

    if part.jury or part.repeats > 1:
        from ragscore.judges.jury import Jury, JurySetup

        members = [
            judge_setup(
                member,
                dataset=dataset,
                frozen=frozen,
                salt=mark,
                environment=environment,
                where=where,
                secrets=secrets,
            )
            for member, mark in part.seats(salt)
        ]
        jury = Jury([member.judge for member in members], rule=part.rule)
        freeze = any(member.model is not None or member.plugin is not None for member in members)
        asked = freezing(jury, freeze=freeze)
        model = next((member.model for member in members if member.model is not None), None)
        return JurySetup(jury, asked, jury, model, members=members)
    if part.plugin is not None:
        from ragscore.judges.plugin import may_be_remembered, plugin_judge

        own = plugin_judge(part.plugin, where=where, secrets=secrets)
        if may_be_remembered(own):
            kept = JudgementStore(home() / "judgements.sqlite")
            held = with_evidence_policy(RememberingJudge(own, kept, salt=salt), part.evidence)
            return JudgeSetup(held, freezing(held), held, memory=kept, plugin=own)
        return JudgeSetup(own, freezing(own), plugin=own)
    if part.model == "offline":
        # Its claims are deterministic and free: nothing is written that a better judge would then be held to.
        offline = OfflineJudge()
        return JudgeSetup(offline, freezing(offline, freeze=False))
    given = os.environ if environment is None else environment
    llm_judge(part, environment=given)  # what is wrong with the declaration is said before a file is made
    memory = JudgementStore(home() / "judgements.sqlite")
    model = llm_judge(part, environment=given, learnt=memory)
    remembering = RememberingJudge(model, memory, salt=salt)
    judge = with_evidence_policy(remembering, part.evidence)
    return JudgeSetup(judge, freezing(judge), judge, model, memory)


def setup_of(judge: Judge) -> JudgeSetup:
    """A judge that was made elsewhere, with claims asked of it and nothing remembered.

    It is made ready like any other where it has `prepare`; closing it is left to whoever made it.
    """
    return JudgeSetup(judge, AskedClaims(judge), judge if must_be_prepared(judge) else None)


def require_frozen(claims: ClaimSource, items: Sequence[Item]) -> None:
    """Make sure that no claims have to be extracted.

    Raises:
        DatasetError: items have no frozen claims; names the first ones.
    """
    if isinstance(claims, FrozenClaims):
        claims.require(items)
