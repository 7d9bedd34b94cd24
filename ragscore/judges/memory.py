"""A judge that asks nothing twice: its decisions are kept, one by one, under a hash of all that they depend on.

What is kept under one key is one *question*: the claims of a reference; the support of a claim set by a set of
passages; the relevance of one passage. So a retriever that swaps one context of five pays for one relevance
verdict, and an unchanged one for nothing.

What comes from memory must not depend on what the ids of claims and passages were when it was asked, nor on the order
of the passages. Ids are therefore kept as positions: of a claim in its claim set, of a passage in the order of texts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from ragscore.items import Evidence, Judgement, Status, Usage, Verdict, digest
from ragscore.judges.judgement_store import JudgementStore
from ragscore.judges.protocol import PreparedJudge
from ragscore.judges.tasks import AnswerForm, AttributeClaims, CrossClaims, ExtractClaims, RateContexts, Task

#: Rises when the shape or the meaning of what is kept changes; what was kept before is then judged again.
FORMAT = 1

#: Relevance verdicts are kept from these: each is complete in itself, and paid for, whatever befell the others.
_VERDICTS_STAND = frozenset({Status.OK, Status.JUDGE_ERROR, Status.BUDGET})


class VersionedJudge(PreparedJudge, Protocol):
    """A judge whose answers can be remembered: it says which version of its prompt a task gets."""

    def prompt_version(self, task: Task) -> str:
        """A hash of the prompt template and the reply's schema that `task` is asked with."""
        ...


class RememberingJudge:
    """Answers from `store` what was decided before, and asks `inner` for the rest.

    Only decisions are kept, never failures, abstentions or a spent budget. Identical questions that are asked at the
    same time are asked once: the later ones wait and pay nothing. If the judge fails at it they fail, too; if the first
    is cancelled, or the judge raises, one of them asks instead. `usage.remembered` counts the decisions (claim sets or
    verdicts) that took no call here, whether they were in the store or were waited for.

    Args:
        inner: Who is asked; its identity must not change after `prepare`.
        store: Where decisions are kept.
        salt: Judge again under this name (`--fresh`: the run's id), and remember that apart. Claims are not judged
            again: they belong to the dataset.
    """

    def __init__(self, inner: VersionedJudge, store: JudgementStore, *, salt: str = "") -> None:
        self._inner = inner
        self._store = store
        self._salt = salt
        self._asking: dict[str, asyncio.Future[_Answer | None]] = {}

    @property
    def name(self) -> str:
        """The name of the judge that decided: memory does not make another judge."""
        return self._inner.name

    @property
    def identity(self) -> str:
        """The identity of the judge that decided."""
        return self._inner.identity

    async def prepare(self) -> None:
        """Make the inner judge ready."""
        await self._inner.prepare()

    def prompt_version(self, task: Task) -> str:
        """The inner judge's version of its prompt for `task`."""
        return self._inner.prompt_version(task)

    def keys(self, task: Task) -> tuple[str, ...]:
        """The keys under which the decisions on `task` are kept, one per question in it; final only after `prepare`."""
        salt = "" if isinstance(task, ExtractClaims) else self._salt
        about = (FORMAT, self._inner.identity, self._inner.prompt_version(task), salt)
        return tuple(digest(*about, *question.content) for question in _questions(task))

    async def ask(self, task: Task) -> Judgement:
        """The decisions on `task`, remembered ones marked so; calls and cost are those that were made just now."""
        keys, questions = self.keys(task), _questions(task)
        first: dict[str, _Question] = {}
        for key, question in zip(keys, questions, strict=True):
            first.setdefault(key, question)  # a text that stands there twice is one question
        answers: dict[str, _Answer] = {}
        made: list[Judgement] = []
        while missing := [key for key in first if key not in answers]:
            found = self._store.get_many(missing)
            answers |= {key: _Answer(value, remembered=True) for key, value in found.items()}
            # From here to the registration of ours nothing is awaited, so that nobody comes between.
            others = {key: self._asking[key] for key in missing if key not in found and key in self._asking}
            ours = {key: first[key] for key in missing if key not in found and key not in others}
            if ours:
                judgement = await self._ask_inner(task, ours, answers)
                made.append(judgement)
            for key, future in others.items():
                # Shielded: the future belongs to whoever asks. None means that no answer came: it is our turn then.
                if (answer := await asyncio.shield(future)) is not None:
                    answers[key] = replace(answer, remembered=answer.failure is None)
        return self._joined(task, list(zip(questions, map(answers.__getitem__, keys), strict=True)), made)

    async def _ask_inner(self, task: Task, ours: Mapping[str, _Question], answers: dict[str, _Answer]) -> Judgement:
        loop = asyncio.get_running_loop()
        futures: dict[str, asyncio.Future[_Answer | None]] = {key: loop.create_future() for key in ours}
        self._asking |= futures
        try:
            judgement = await self._inner.ask(_only(task, ours.values()))
            answers |= self._kept(task, ours, judgement)
            return judgement
        finally:
            for key, future in futures.items():
                del self._asking[key]
                future.set_result(answers.get(key))

    def _kept(self, task: Task, ours: Mapping[str, _Question], judgement: Judgement) -> dict[str, _Answer]:
        values = {key: question.value_of(judgement) for key, question in ours.items()}
        whole = {key: value for key, value in values.items() if None not in value["verdicts"]}
        if judgement.status not in (_VERDICTS_STAND if isinstance(task, RateContexts) else {Status.OK}):
            whole = {}
        # What stands may be what another process was told a moment ago; then that is the answer here, too.
        standing = self._store.put_many(whole, judge=judgement.judge, task=task.name)
        return {
            key: _Answer(standing[key]) if key in standing else _Answer(values[key], failure=judgement) for key in ours
        }

    def _joined(
        self, task: Task, answered: Sequence[tuple[_Question, _Answer]], made: Sequence[Judgement]
    ) -> Judgement:
        verdicts: list[Verdict] = []
        claims: tuple[str, ...] = ()
        usage = sum((judgement.usage for judgement in made), Usage())
        for question, answer in answered:
            told = question.verdicts_in(answer.value, remembered=answer.remembered)
            verdicts += told
            claims = tuple(answer.value["claims"])
            if answer.remembered:
                usage += Usage(remembered=1 if isinstance(task, (ExtractClaims, AnswerForm)) else len(told))
        failures = [answer.failure for _, answer in answered if answer.failure is not None]
        failure = next((f for f in failures if f.status is not Status.OK), None)
        by: Mapping[str, Any] = answered[0][1].value if answered else {}
        if made:
            by = {"judge": made[-1].judge, "params": made[-1].params, "prompt_version": made[-1].prompt_version}
        return Judgement(
            judge=by.get("judge", self.name),
            status=failure.status if failure is not None else Status.OK,
            claims=claims if isinstance(task, (ExtractClaims, AnswerForm)) else (),
            verdicts=tuple(verdicts),
            usage=usage,
            calls=tuple(call for judgement in made for call in judgement.calls),
            prompt_version=by.get("prompt_version", self.prompt_version(task)),
            params=by.get("params", "{}"),
            error=failure.error if failure is not None else None,
            raw=failure.raw if failure is not None else None,
        )


@dataclass(frozen=True, slots=True)
class _Answer:
    """What came of one question; with a `failure`, `value` holds only what was decided in spite of it."""

    value: Mapping[str, Any]
    remembered: bool = False
    failure: Judgement | None = None


@dataclass(frozen=True, slots=True)
class _Question:
    """What is decided and remembered as one: `content` is what it depends on, besides the judge.

    `ids` are those of the claims or the passage that verdicts are about, `passages` those that evidence may name; both
    in the order that gives them their positions.
    """

    content: tuple[object, ...]
    ids: tuple[str, ...] = ()
    passages: tuple[str, ...] = ()

    def value_of(self, judgement: Judgement) -> dict[str, Any]:
        """The answer as it is kept: JSON without ids; a verdict that is missing is None."""
        positions = {id: position for position, id in reversed(list(enumerate(self.passages)))}
        verdicts: dict[str, Verdict] = {}
        for verdict in judgement.verdicts:
            verdicts.setdefault(verdict.id, verdict)
        return {
            "claims": list(judgement.claims),
            "verdicts": [_packed(verdicts[id], positions) if id in verdicts else None for id in self.ids],
            "judge": judgement.judge,
            "params": judgement.params,
            "prompt_version": judgement.prompt_version,
        }

    def verdicts_in(self, value: Mapping[str, Any], *, remembered: bool) -> list[Verdict]:
        """The verdicts of a kept answer, with the ids of this question."""
        packed = zip(self.ids, value["verdicts"], strict=True)
        return [self._unpacked(id, verdict, remembered) for id, verdict in packed if verdict is not None]

    def _unpacked(self, id: str, packed: Mapping[str, Any], remembered: bool) -> Verdict:
        return Verdict(
            id=id,
            positive=packed["positive"],
            why=packed["why"],
            evidence=tuple(
                # Evidence in a passage that was never given out stays so, whatever ids are given out now.
                Evidence("" if at is None else self.passages[at], quote, verified)
                for at, quote, verified in packed["evidence"]
            ),
            warnings=tuple(packed["warnings"]),
            confidence=packed["confidence"],
            label=packed.get("label"),
            remembered=remembered,
        )


def _packed(verdict: Verdict, positions: Mapping[str, int]) -> dict[str, Any]:
    return {
        "positive": verdict.positive,
        "why": verdict.why,
        "evidence": [[positions.get(e.passage), e.quote, e.verified] for e in verdict.evidence],
        "warnings": list(verdict.warnings),
        "confidence": verdict.confidence,
        **({"label": verdict.label} if verdict.label is not None else {}),
    }


def _questions(task: Task) -> tuple[_Question, ...]:
    match task:
        case ExtractClaims():
            return (_Question((task.name, task.question, task.reference)),)
        case AnswerForm():
            return (_Question((task.name, task.instructions, task.blocks, task.fields)),)
        case AttributeClaims():
            passages = sorted(task.passages, key=lambda passage: passage.text)
            texts = [passage.text for passage in passages]
            content: tuple[object, ...] = (task.name, task.question, [claim.text for claim in task.claims], texts)
            if isinstance(task, CrossClaims):
                content += ([claim.id[:1] for claim in task.claims], task.reference, task.output)
            return (_Question(content, tuple(c.id for c in task.claims), tuple(p.id for p in passages)),)
        case RateContexts():
            return tuple(
                _Question(
                    (task.name, task.question, task.expected, task.against, passage.text), (passage.id,), (passage.id,)
                )
                for passage in task.passages
            )


def _only(task: Task, questions: Iterable[_Question]) -> Task:
    """`task` with nothing in it but `questions`."""
    if not isinstance(task, RateContexts):
        return task
    wanted = {id for question in questions for id in question.ids}
    return replace(task, passages=tuple(passage for passage in task.passages if passage.id in wanted))
