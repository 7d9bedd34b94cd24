"""One task put to the model: asked, asked again, and what is missing asked for, until it is decided or given up.

How often: a reply that is cut off gets twice the room, twice; then fewer verdicts are asked for at a time. A reply
that cannot be used is shown to the model with what is wrong with it; failing that, too, it is asked once more from
the start, since a conversation about a bad reply can keep a small model in it. Verdicts that are missing are asked for
alone. All of it ends at the task's deadline.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from ragscore.items import Call, Usage, Verdict
from ragscore.judges.llm.further_rows import ROWS, FurtherRow, parse_form
from ragscore.judges.llm.modes import Manners
from ragscore.judges.llm.prompts import Prompt, asked_again, prompt
from ragscore.judges.llm.quotes import Quotes
from ragscore.judges.llm.replies import (
    ClaimRow,
    ContextRow,
    ReplyError,
    Rows,
    VerdictRow,
    clean,
    parse_claim_verdicts,
    parse_claims,
    parse_context_verdicts,
    parse_rows,
)
from ragscore.judges.llm.sending import Sender
from ragscore.judges.llm.wire import BadRequest, Request, TooLong
from ragscore.judges.tasks import AnswerForm, AttributeClaims, Claim, ExtractClaims, RateContexts, Task

#: Replies to one request that cannot be used before it is given up: the first, the one after the error was shown, and
#: one from the start.
REPLIES = 3
#: How often a reply that was cut off gets twice the room.
DOUBLINGS = 2
#: How often verdicts that are missing are asked for alone.
ROUNDS = 3
#: Objections to one request (a parameter, the way to ask for structure) that are taken to heart.
OBJECTIONS = 8
#: Outcomes of requests that the model answered, well or not.
ANSWERED = frozenset({"ok", "truncated", "malformed", "incomplete"})

T = TypeVar("T")
Decision = AttributeClaims | RateContexts


class Failed(Exception):
    """This task, or this part of it, cannot be decided; the message says why."""


class Truncated(Failed):
    """The reply does not fit into the room that there is."""


@dataclass(slots=True)
class Asking:
    """The course of one task. `calls` are all attempts; `raw` is the last reply that could not be used.

    Args:
        sender: Sends requests.
        manners: How the model wants to be asked.
        deadline: Time by the monotonic clock at which to give up; waiting for our own limits moves it.
        show: Makes the prompt of a task.
    """

    sender: Sender
    manners: Manners
    deadline: float
    show: Callable[[Task], Prompt] = prompt
    calls: list[Call] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    raw: str | None = None

    @property
    def usage(self) -> Usage:
        """What the answered requests cost."""
        total = Usage()
        for call in self.calls:
            if call.outcome in ANSWERED:
                total += Usage(1, 0, call.prompt_tokens, call.completion_tokens, call.cached_tokens, call.cost_usd)
        return total

    async def claims(self, task: ExtractClaims | AnswerForm) -> tuple[str, ...]:
        """The claims of a reference, or the answer to a form as one JSON text.

        Raises:
            Failed: no usable reply came.
            TooLong: the reference does not fit the model's window.
            BudgetSpent, JudgeRefused: as `Sender.send`.
        """
        if isinstance(task, AnswerForm):
            return await self._reply(task, lambda text: parse_form(text, task))
        return await self._reply(task, parse_claims)

    async def verdicts(self, task: Decision) -> dict[str, VerdictRow]:
        """The rows for the ids of a task; those that could not be had are not in it, and `problems` says why.

        Raises:
            TooLong: the task does not fit the model's window.
            BudgetSpent, JudgeRefused: as `Sender.send`.
        """
        found: dict[str, VerdictRow] = {}
        missing = ids_of(task)
        try:
            for _ in range(1 + ROUNDS):
                rows = await self._rows(only(task, missing), missing)
                found |= rows.by_id
                missing = rows.missing
                if not missing:
                    return found
                self._mark("incomplete", f"no verdict for {', '.join(missing)}")
            self.problems.append(f"no verdict for {', '.join(missing)}, asked {1 + ROUNDS} times")
        except Truncated as failure:
            if len(missing) == 1:
                self.problems.append(str(failure))
                return found
            middle = len(missing) // 2
            for half in (missing[:middle], missing[middle:]):
                found |= await self.verdicts(only(task, half))
        except Failed as failure:
            self.problems.append(str(failure))
        return found

    async def _rows(self, task: Decision, ids: Sequence[str]) -> Rows[ClaimRow] | Rows[ContextRow] | Rows[FurtherRow]:
        if (form := ROWS.get(task.name)) is not None:
            return await self._reply(task, lambda text: parse_rows(text, ids, form))
        if isinstance(task, AttributeClaims):
            return await self._reply(task, lambda text: parse_claim_verdicts(text, ids))
        return await self._reply(task, lambda text: parse_context_verdicts(text, ids))

    async def _reply(self, task: Task, read: Callable[[str], T]) -> T:
        shown = self.show(task)
        messages: tuple[Mapping[str, str], ...] = shown.messages
        room = self.manners.room()
        bad = doubled = objections = 0
        while True:
            room = self.manners.room(room)
            request = Request(task.name, messages, shown.schema_name, shown.schema, self.manners.mode, room)
            try:
                sent = await self.sender.send(
                    request, params=self.manners.sent(room), deadline=self.deadline, attempts=self.calls
                )
            except TooLong:
                raise
            except BadRequest as objection:
                objections += 1
                if objections <= OBJECTIONS and self.manners.learn(objection, request):
                    continue
                raise Failed(f"the model does not accept the request: {objection.what}") from objection
            self.deadline += sent.queued_s
            completion = sent.completion
            if completion is None:
                raise Failed(f"{sent.fault.outcome}: {sent.fault.what}" if sent.fault is not None else "no answer")
            if completion.finish_reason == "length":
                self._mark("truncated", f"the reply was cut off at {room} tokens")
                self.raw = clean(completion.text)
                if doubled < DOUBLINGS and self.manners.room(2 * room) > room:
                    doubled += 1
                    room *= 2
                    continue
                raise Truncated(f"truncated: the reply was cut off at {room} tokens; raise judge.max_tokens")
            try:
                return read(completion.text)
            except ReplyError as error:
                bad += 1
                what = f"{error}"
                if completion.finish_reason == "content_filter":
                    what = f"the provider's filter withheld the reply ({error})"
                self._mark("malformed", what)
                self.raw = clean(completion.text)
                if bad == REPLIES:
                    raise Failed(f"malformed: {what}, {REPLIES} times") from error
                shown = self.show(task)  # new fences each time
                messages = shown.messages
                if bad == 1:
                    messages = asked_again(shown.messages, reply=self.raw, error=what)

    def _mark(self, outcome: str, error: str) -> None:
        self.calls[-1] = replace(self.calls[-1], outcome=outcome, error=error)


def ids_of(task: Decision) -> tuple[str, ...]:
    """The ids that a task asks about, each once, in order."""
    entries = task.claims if isinstance(task, AttributeClaims) else task.passages
    return tuple(dict.fromkeys(entry.id for entry in entries))


def only(task: Decision, ids: Sequence[str]) -> Decision:
    """The part of a task that asks about these ids; claims keep all the passages."""
    if isinstance(task, AttributeClaims):
        return replace(task, claims=tuple(claim for claim in task.claims if claim.id in ids))
    return replace(task, passages=tuple(passage for passage in task.passages if passage.id in ids))


def decided(task: Decision, rows: Mapping[str, VerdictRow], quotes: Quotes) -> dict[str, Verdict]:
    """The verdicts that rows of a reply give, with their quotes looked up."""
    texts = {claim.id: claim for claim in task.claims} if isinstance(task, AttributeClaims) else {}
    return {id: _verdict(id, row, texts.get(id), quotes) for id, row in rows.items()}


def _verdict(id: str, row: VerdictRow, claim: Claim | None, quotes: Quotes) -> Verdict:
    if isinstance(row, FurtherRow):
        return row.verdict(id, claim, quotes)
    if isinstance(row, ContextRow):
        return Verdict(id, row.relevant, why=row.why)
    assert isinstance(row, ClaimRow)
    if not row.supported:
        return Verdict(id, positive=False)
    checked = quotes.checked(row, claim.text if claim is not None else "")
    return Verdict(id, positive=True, evidence=checked.evidence, warnings=checked.warnings)


def now() -> float:
    """The clock of deadlines."""
    return time.monotonic()
