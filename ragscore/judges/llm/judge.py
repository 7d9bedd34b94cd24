"""The judge that asks a language model: tasks split to fit, decided part by part, quotes looked up."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol, runtime_checkable

from ragscore.addresses import without_secrets
from ragscore.errors import JudgeRefused, JudgeUnavailable
from ragscore.items import Call, Judgement, Status, Verdict, digest
from ragscore.judges.budget import BudgetSpent
from ragscore.judges.llm import windows
from ragscore.judges.llm.asking import OBJECTIONS, Asking, Decision, Failed, decided, ids_of, now, only
from ragscore.judges.llm.modes import Manners
from ragscore.judges.llm.prompts import prompt, prompt_version
from ragscore.judges.llm.quotes import Quotes
from ragscore.judges.llm.sending import Sender
from ragscore.judges.llm.wire import BadRequest, Request, TooLong
from ragscore.judges.tasks import (
    AnswerForm,
    AttributeClaims,
    CrossClaims,
    ExtractClaims,
    MapClaims,
    Passage,
    RateContexts,
    Task,
)

#: Tokens of excerpts in the last look at claims that no part supports, at most.
LAST_LOOK = 1500
#: Tokens of passages below which a prompt is not worth sending.
LEAST_PASSAGES = 2 * windows.FENCES
#: How often a task is split anew because the model's window is smaller than thought.
SPLITS = 6

#: What the probe asks: of the same form as the real thing, so that what the model refuses shows.
_PROBE = RateContexts("Is water wet?", "Water is wet.", "reference", (Passage("p1", "Water is wet."),))


@runtime_checkable
class _Closing(Protocol):
    async def aclose(self) -> None: ...


class LLMJudge:
    """A `PreparedJudge` that asks one model.

    Args:
        sender: Sends requests within limits, budget and time.
        manners: How the model wants to be asked; learnt by `prepare`.
        deadline_s: Seconds for one task with all that is asked again; waiting for our own limits not counted.
        max_contexts_per_call: Longer lists of contexts are split.
        mend: What the user can do when the judge refuses.
    """

    def __init__(
        self,
        sender: Sender,
        manners: Manners,
        *,
        deadline_s: float = 300.0,
        max_contexts_per_call: int | None = None,
        mend: str = "check the key, the model's name and the address",
    ) -> None:
        self._sender = sender
        self._client = sender.client
        self._manners = manners
        self._deadline_s = deadline_s
        self._most = max_contexts_per_call
        self._mend = mend
        self._identity: str | None = None
        self._warming: asyncio.Task[object] | None = None
        #: The requests of the probe; they belong to no judgement.
        self.probe_calls: tuple[Call, ...] = ()

    @property
    def name(self) -> str:
        """The model, as LiteLLM writes it."""
        return self._client.model

    @property
    def where(self) -> str:
        """The model and its effective address, for messages."""
        return self._sender.where

    @property
    def manners(self) -> Manners:
        """What was learnt about the model."""
        return self._manners

    @property
    def identity(self) -> str:
        """Canonical JSON of model, base URL and effective parameters, as they were when `prepare` ended.

        The mode and the room for replies are not in it: they decide whether there is a verdict, not which.

        Raises:
            RuntimeError: `prepare` was not awaited yet.
        """
        if self._identity is None:
            raise RuntimeError("the judge's effective parameters are known after `await judge.prepare()`")
        return self._identity

    def prompt_version(self, task: Task) -> str:
        """The version of template and reply form for `task`; they change together, and never under the same name."""
        return prompt_version(task)

    async def prepare(self) -> None:
        """Learn how the model wants to be asked, with one small request unless that is remembered.

        Raises:
            JudgeRefused: key, model or address are wrong; nothing has been run yet.
            JudgeUnavailable: no answer within the retries.
        """
        if self._identity is not None:
            return
        if not self._manners.proven:
            self._manners.recall()
        if not self._manners.proven:
            await self._probe()
        address = self._client.base_url
        about: dict[str, Any] = {
            "model": self.name,
            "base_url": None if address is None else without_secrets(address),
            "params": self._manners.params,
        }
        if address is not None and "?" in address:  # it may hold a key, and the identity is kept in the history
            about["query"] = digest(address.partition("?")[2])
        self._identity = json.dumps(about, sort_keys=True, ensure_ascii=False)

    async def check(self) -> tuple[Call, ...]:
        """Ask one small thing now, whether or not the model is remembered to work; the requests that it took.

        Raises:
            JudgeRefused, JudgeUnavailable: as `prepare`.
        """
        await self._probe()
        return self.probe_calls

    async def aclose(self) -> None:
        """Close the connections."""
        if isinstance(self._client, _Closing):
            await self._client.aclose()

    async def ask(self, task: Task) -> Judgement:
        """Decide on one task.

        Raises:
            JudgeRefused: no task can be decided.
        """
        await self._warm()
        asking = Asking(self._sender, self._manners, now() + self._deadline_s)
        claims: tuple[str, ...] = ()
        parts: list[tuple[Sequence[str], Mapping[str, Verdict]]] = []
        status, error = Status.OK, None
        try:
            if isinstance(task, (ExtractClaims, AnswerForm)):
                claims = await self._extract(asking, task)
            else:
                await self._decide(asking, task, parts)
        except BudgetSpent as spent:
            status, error = Status.BUDGET, spent.what
        except Failed as failure:
            status, error = Status.JUDGE_ERROR, str(failure)
        verdicts: tuple[Verdict, ...] = ()
        if not isinstance(task, (ExtractClaims, AnswerForm)):
            merged = windows.merged(parts, every=isinstance(task, MapClaims))
            verdicts = tuple(merged[id] for id in ids_of(task) if id in merged)
            if status is Status.OK and (undecided := [id for id in ids_of(task) if id not in merged]):
                status, error = Status.JUDGE_ERROR, _said(asking.problems, undecided)
        return Judgement(
            judge=self.name,
            status=status,
            claims=claims,
            verdicts=verdicts,
            usage=asking.usage,
            calls=tuple(asking.calls),
            prompt_version=self.prompt_version(task),
            params=json.dumps(self._manners.params | {"mode": self._manners.mode}, sort_keys=True, ensure_ascii=False),
            error=error,
            raw=asking.raw if status is not Status.OK else None,
        )

    async def _warm(self) -> None:
        """Let the client import LiteLLM, before any time-out runs and not in the way of anything else.

        It takes seconds, and only where something is asked: a run that remembers everything does without.
        """
        if self._warming is None:
            self._warming = asyncio.ensure_future(asyncio.to_thread(self._client.window))
        if not self._warming.done():
            await asyncio.shield(self._warming)

    async def _extract(self, asking: Asking, task: ExtractClaims | AnswerForm) -> tuple[str, ...]:
        for _ in range(SPLITS):
            try:
                return await asking.claims(task)
            except TooLong as fault:
                # A reference cannot be split; but a smaller window leaves less room for the reply and more for it.
                room = self._manners.room()
                if not self._learn_window(fault, task) or self._manners.room() == room:
                    raise Failed(f"too long: the reference does not fit the model's window: {fault.what}") from fault
        raise Failed("too long: the reference does not fit the model's window")

    async def _decide(
        self, asking: Asking, task: Decision, parts: list[tuple[Sequence[str], Mapping[str, Verdict]]]
    ) -> None:
        """Fill `parts` with the verdicts of each part; what is there already stands if this is cut short."""
        quotes = Quotes(task.passages)
        for _ in range(SPLITS):
            parts.clear()
            try:
                for part in self._split(task):
                    # A map names every passage that states a claim, so that no part may be left out.
                    asked = list(ids_of(part)) if isinstance(task, MapClaims) else _undecided(part, parts)
                    if asked:
                        parts.append((asked, {}))
                        rows = await asking.verdicts(only(part, asked))
                        parts[-1] = (asked, decided(task, rows, quotes))
                await self._look_again(asking, task, parts, quotes)
            except TooLong as fault:
                if not self._learn_window(fault, task):
                    raise Failed(
                        f"too long: one context alone does not fit the model's window: {fault.what}"
                    ) from fault
            else:
                return
        raise Failed("too long: the contexts do not fit the model's window")

    async def _look_again(
        self,
        asking: Asking,
        task: Decision,
        parts: list[tuple[Sequence[str], Mapping[str, Verdict]]],
        quotes: Quotes,
    ) -> None:
        """One more look at claims that no part supports, with the nearest excerpts of all contexts together."""
        supporting = type(task) in (AttributeClaims, MapClaims, CrossClaims)
        if len(parts) < 2 or not supporting or not isinstance(task, AttributeClaims):
            return
        merged = windows.merged(parts)
        claims = tuple(claim for claim in task.claims if claim.id in merged and not merged[claim.id].positive)
        if not claims:
            return
        tokens = self._room_for_passages(replace(task, claims=claims))
        tokens = LAST_LOOK if tokens is None else min(tokens, LAST_LOOK)
        excerpts = windows.nearest(claims, task.passages, tokens=tokens, count=self._client.count_tokens)
        if len(excerpts) < 2:  # nothing that one part has not seen together
            return
        asked = [claim.id for claim in claims]
        parts.append((asked, {}))
        rows = await asking.verdicts(replace(task, claims=claims, passages=excerpts))
        parts[-1] = (asked, decided(task, rows, quotes))

    def _split(self, task: Decision) -> list[Decision]:
        """The parts of a task that fit the window, one after another."""
        tokens = self._room_for_passages(task)
        if tokens is None and (self._most is None or len(task.passages) <= self._most):
            return [task]
        if tokens is not None and tokens < LEAST_PASSAGES:
            if not isinstance(task, AttributeClaims) or len(task.claims) < 2:
                raise Failed("too long: question and expected answer leave no room for contexts in the model's window")
            middle = len(task.claims) // 2
            halves = [replace(task, claims=half) for half in (task.claims[:middle], task.claims[middle:])]
            return [part for half in halves for part in self._split(half)]
        split = windows.split(task.passages, tokens=tokens, most=self._most, count=self._client.count_tokens)
        return [replace(task, passages=passages) for passages in split]

    def _room_for_passages(self, task: Decision) -> int | None:
        """Tokens for passages in one prompt; None when all of them fit or no window is known."""
        window = self._manners.window or self._client.window()
        if window is None:
            return None
        reply = self._manners.room()
        if windows.room_for_passages(window, reply=reply, rest=_bytes(task)) >= 0:
            return None  # no tokenizer makes more tokens than there are bytes; counting costs time
        rest = "".join(message["content"] for message in prompt(replace(task, passages=())).messages)
        tokens = windows.room_for_passages(window, reply=reply, rest=self._client.count_tokens(rest))
        size = sum(self._client.count_tokens(passage.text) + windows.FENCES for passage in task.passages)
        return None if size <= tokens else tokens

    def _learn_window(self, fault: TooLong, task: Task) -> bool:
        text = "".join(message["content"] for message in prompt(task).messages)
        return self._manners.learn_window(fault, prompt_tokens=self._client.count_tokens(text))

    async def _probe(self) -> None:
        await self._warm()
        shown = prompt(_PROBE)
        calls: list[Call] = []
        refusal = ""
        for _ in range(OBJECTIONS):
            room = self._manners.room()
            request = Request("probe", shown.messages, shown.schema_name, shown.schema, self._manners.mode, room)
            try:
                sent = await self._sender.send(request, params=self._manners.sent(room), attempts=calls)
            except TooLong as fault:
                refusal = fault.what
                if self._manners.learn_window(fault, prompt_tokens=self._client.window() or 2 * room):
                    continue
                break
            except BadRequest as objection:
                refusal = objection.what
                if self._manners.learn(objection, request, blind=True):
                    continue
                break
            except BudgetSpent:
                return  # every task will say so
            finally:
                self.probe_calls = tuple(calls)
            if sent.completion is None:
                what = sent.fault.what if sent.fault is not None else "no answer"
                mend = "check that it runs and that the address is right, or try again later"
                raise JudgeUnavailable(f"the judge does not answer: {what}", where=self.where, mend=mend)
            self._manners.prove()
            return
        raise JudgeRefused(f"the judge refuses every form of request: {refusal}", where=self.where, mend=self._mend)


def _undecided(part: Decision, parts: Sequence[tuple[Sequence[str], Mapping[str, Verdict]]]) -> list[str]:
    """The ids of a part that no part before it has found positive: more support changes nothing."""
    positive = {id for _, verdicts in parts for id, verdict in verdicts.items() if verdict.positive}
    return [id for id in ids_of(part) if id not in positive]


def _said(problems: Sequence[str], undecided: Sequence[str]) -> str:
    why = "; ".join(dict.fromkeys(problems))
    missing = f"no verdict for {', '.join(undecided)}"
    return missing if not why or why.startswith(missing) else f"{missing}: {why}"


def _bytes(task: Decision) -> int:
    return sum(len(message["content"].encode("utf-8", "surrogatepass")) for message in prompt(task).messages)
