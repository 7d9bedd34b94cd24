"""What a run will take: judge calls, tokens, money, time; estimated without asking anybody."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ragscore.assembly import Parts
from ragscore.contexts import Resolver
from ragscore.history import History, select
from ragscore.items import Context, Item, Response
from ragscore.judges import AnswerForm, AttributeClaims, ExtractClaims, MapClaims
from ragscore.judges.jury import JurySetup
from ragscore.judges.llm.client import LiteLLMClient, Price
from ragscore.judges.llm.prompts import prompt
from ragscore.judges.setup import JudgeSetup
from ragscore.judges.tasks import Task
from ragscore.rehearsal import CLAIM, CLAIMS, rehearse
from ragscore.scorer_kinds import READS_OUTPUT, WITHOUT_JUDGE
from ragscore.scorers import CustomScorer, Scorer
from ragscore.suite import JudgePart

#: Taken for granted where the history holds no run of the suite: contexts per item, characters per context.
CONTEXTS, CHARACTERS = 5, 500
#: Characters of an output, where neither history nor references tell.
OUTPUT = 300
#: Characters per token, and tokens of one verdict in a reply (id, decision, a short quote or why).
PER_TOKEN, PER_VERDICT = 4, 45
#: Seconds that a call takes where the history knows none of this model.
LATENCY_S = 2.0


@dataclass(frozen=True, slots=True)
class Share:
    """What one scorer, or the extraction of claims, takes the first time; an unchanged re-run takes no call.

    A question that several scorers ask stands with the first of them; a judge without a memory is asked by each. None
    is what cannot be known: everything of a scorer of one's own that asks the judge, tokens and cost of a judge that is
    no model, the cost of a model without a price.
    """

    what: str
    calls: int | None
    prompt_tokens: int | None
    completion_tokens: int | None
    cost_usd: float | None


@dataclass(frozen=True, slots=True)
class Forecast:
    """The estimate for a suite.

    Attributes:
        items: Items of the dataset.
        shares: Per scorer, and for the claims that are not frozen yet.
        cost_usd: In all; None when a part of it is not known.
        seconds: At the suite's concurrency and rates, for the calls that are known.
        remembered_calls: Calls of a second run on unchanged retrieval; None when a judge remembers nothing.
        assumed: What the estimate rests on, one line each.
    """

    items: int
    shares: Sequence[Share]
    cost_usd: float | None
    seconds: float
    remembered_calls: int | None
    assumed: Sequence[str]

    @property
    def calls(self) -> int | None:
        """Calls of a first run; None when a part is not known."""
        return _sum(share.calls for share in self.shares)

    @property
    def prompt_tokens(self) -> int | None:
        """Tokens sent in a first run; None when a part is not known."""
        return _sum(share.prompt_tokens for share in self.shares)

    @property
    def completion_tokens(self) -> int | None:
        """Tokens of replies in a first run; None when a part is not known."""
        return _sum(share.completion_tokens for share in self.shares)


def forecast(parts: Parts, history: History) -> Forecast:
    """Estimate a first run of a suite. Makes no call, runs no code of the user's own and writes nothing.

    Args:
        parts: The suite's parts.
        history: Asked for contexts, outputs and latencies of earlier runs; it need not exist.
    """
    items = parts.dataset.items
    members = parts.judging.members if isinstance(parts.judging, JurySetup) else [parts.judging]
    named = [part for part, _ in parts.suite.judge.seats()]
    seats = [_Seat.of(part, member) for part, member in zip(named, members, strict=True)]
    if parts.judging.model is None and all(seat.is_free for seat in seats):
        return Forecast(len(items), [], 0.0, 0.0, 0, [f"{parts.judge.name} makes no calls"])
    ours = [scorer for scorer in parts.scorers if scorer.kind not in WITHOUT_JUDGE]
    assumed: list[str] = []
    retrieved: tuple[Context, ...] = ()
    if not all(_is_known(parts.resolvers[scorer.name]) for scorer in ours):
        retrieved, told = _contexts(parts, history)
        assumed.append(told)
    collected = parts.suite.target.kind == "none"
    answered: str | None = None
    if not collected and any(scorer.kind in READS_OUTPUT for scorer in ours):
        answered, told = _output(parts, history)
        assumed.append(told)

    def contexts(scorer: Scorer, item: Item) -> Sequence[Context]:
        resolver = parts.resolvers[scorer.name]
        if not _is_known(resolver):
            return retrieved
        held = resolver.extract(item, Response(contexts=item.contexts if collected else None))
        return held[: resolver.top_k] if isinstance(held, tuple) else ()

    def output(item: Item) -> str | None:
        return item.output if collected else answered

    notes = asyncio.run(rehearse(ours, items, parts.claims, contexts=contexts, output=output))
    shares = []
    for who in (CLAIMS, *(scorer.name for scorer in ours)):
        first, again = notes.asked.get(who, []), notes.again.get(who, [])
        if first or (again and any(seat.forgets for seat in seats)):
            shares.append(_share(who, first, again, seats))
    for scorer in parts.scorers:
        if _may_ask(scorer):
            shares.append(Share(scorer.name, None, None, None, None))
            assumed.append(f"what {scorer.name} asks the judge is not known: it is code of its own")
    if len(seats) > 1:
        assumed.append(f"{len(seats)} judges are asked, all but claims and prompts of your own")
    latency, told = _latency(parts, history)
    judge = parts.suite.judge
    calls, tokens = _known(s.calls for s in shares), _known(s.prompt_tokens for s in shares)
    tokens += _known(share.completion_tokens for share in shares)
    seconds = max(
        calls * latency / judge.concurrency,
        calls * 60 / judge.rpm if judge.rpm else 0.0,
        tokens * 60 / judge.tpm if judge.tpm else 0.0,
    )
    costs = [share.cost_usd for share in shares]
    cost = None if any(each is None for each in costs) else sum(each or 0.0 for each in costs)
    forgetful = any(scorer.kind in WITHOUT_JUDGE and _may_ask(scorer) for scorer in parts.scorers)
    forgetful = forgetful or any(seat.forgets for seat in seats)
    return Forecast(len(items), shares, cost, seconds, None if forgetful else 0, [*assumed, told])


@dataclass(frozen=True)
class _Seat:
    """One judge of a jury, or the only one, and what it costs; `client` is None for judges that are no model.

    One that `forgets` has calls and no memory: it is asked equal questions again.
    """

    part: JudgePart
    client: LiteLLMClient | None
    forgets: bool = False

    @classmethod
    def of(cls, part: JudgePart, setup: JudgeSetup) -> _Seat:
        if part.plugin is not None or part.model == "offline":
            return cls(part, None, part.plugin is not None and setup.memory is None)
        price = Price(**part.price.model_dump()) if part.price is not None else None
        return cls(part, LiteLLMClient(part.model, base_url=part.base_url, api_key=None, price=price))

    @property
    def is_free(self) -> bool:
        return self.client is None and self.part.plugin is None


def _is_known(resolver: Resolver) -> bool:
    """Whether contexts are known before anything is called: static ones, and those that the dataset holds."""
    return all(source in ("item", "none") or source.startswith("static:") for source in resolver.sources)


def _may_ask(scorer: Scorer) -> bool:
    """Whether a scorer of the user's own has a judge part; a function is never given a judge."""
    inner = getattr(scorer, "inner", None) if isinstance(scorer, CustomScorer) else None
    return inner is not None and hasattr(inner, "judge")


def _share(what: str, first: Sequence[Task], again: Sequence[Task], seats: Sequence[_Seat]) -> Share:
    calls = sent = reply = 0
    cost: float | None = 0.0
    is_model = True
    for seat_number, seat in enumerate(seats):
        if seat.is_free:
            continue
        own_sent = own_reply = 0
        for task in (*first, *again) if seat.forgets else first:
            if seat_number and isinstance(task, (ExtractClaims, AnswerForm)):  # lists and forms are not voted on
                continue
            parts = _parts_of(task, seat.part)
            calls += parts
            messages = prompt(task).messages
            rubric, data = (len(messages[0]["content"]), len(messages[1]["content"]))
            own_sent += (parts * rubric + data) // PER_TOKEN
            own_reply += _reply(task) * (parts if isinstance(task, MapClaims) else 1)
        sent, reply = sent + own_sent, reply + own_reply
        if seat.client is None:
            is_model, cost = False, None
        else:
            price = seat.client.price_of(own_sent, own_reply)
            cost = None if cost is None or price is None else cost + price
    return Share(what, calls, sent if is_model else None, reply if is_model else None, cost)


def _parts_of(task: Task, judge: JudgePart) -> int:
    """Calls that a long list of contexts is split into."""
    passages = 0 if isinstance(task, (ExtractClaims, AnswerForm)) else len(task.passages)
    return max(1, math.ceil(passages / judge.max_contexts_per_call)) if judge.max_contexts_per_call else 1


def _reply(task: Task) -> int:
    match task:
        case ExtractClaims():
            return len(task.reference) // PER_TOKEN + 10 * max(1, len(task.reference) // CLAIM)
        case AnswerForm():
            return PER_VERDICT + 10 * len(task.fields)
        case AttributeClaims():
            return PER_VERDICT * len(task.claims)
    return PER_VERDICT * len(task.passages)


def _known(values: Iterable[int | None]) -> int:
    return sum(each or 0 for each in values)


def _sum(values: Iterable[int | None]) -> int | None:
    found = list(values)
    return None if None in found else _known(found)


def _last_run(parts: Parts, history: History, query: str) -> tuple[Any, ...] | None:
    """What a query says of the last run of the suite; None without one."""
    if not history.exists():
        return None
    last = "SELECT run_id FROM runs WHERE suite = ? ORDER BY started_at DESC LIMIT 1"
    rows = select(history.path, f"WITH last AS ({last}) {query}", [parts.suite.name]).rows
    return rows[0] if rows and rows[0][0] is not None else None


def _contexts(parts: Parts, history: History) -> tuple[tuple[Context, ...], str]:
    found = _last_run(
        parts,
        history,
        """
        , held AS (SELECT item_id, count(*) AS n, sum(length(text)) AS size FROM latest_contexts
                   WHERE run_id = (SELECT run_id FROM last) GROUP BY item_id)
        SELECT (SELECT run_id FROM last), avg(n), sum(size) / sum(n) FROM held
        """,
    )
    number, characters = CONTEXTS, CHARACTERS
    told = f"{CONTEXTS} contexts of {CHARACTERS} characters per item (no run to learn from yet)"
    if found is not None and found[1] is not None and found[2] is not None:
        run_id, mean, size = found
        number, characters = max(1, round(mean)), max(1, round(size))
        told = f"{mean:.1f} contexts of {size:.0f} characters per item, as in run {run_id}"
    # Different texts: equal ones are one context.
    return tuple(Context(f"{n} ".ljust(characters, "x")) for n in range(1, number + 1)), told


def _output(parts: Parts, history: History) -> tuple[str | None, str]:
    found = _last_run(
        parts,
        history,
        """
        SELECT (SELECT run_id FROM last), count(*), avg(length(output)) FROM latest_items
        WHERE run_id = (SELECT run_id FROM last)
        """,
    )
    if found is not None and found[1]:
        run_id, _, size = found
        if size is None:
            return None, f"no output, as in run {run_id}"
        return _sentences(max(1, round(size))), f"an output of {size:.0f} characters per item, as in run {run_id}"
    lengths = [len(item.reference) for item in parts.dataset.items if item.reference]
    size = round(sum(lengths) / len(lengths)) if lengths else OUTPUT
    why = "as long as the references" if lengths else "by default"
    return _sentences(max(1, size)), f"an output of {size} characters per item, {why} (no run to learn from yet)"


def _sentences(characters: int) -> str:
    """A text of sentences that are as long as claims are taken to be."""
    numbers = range(max(1, characters // CLAIM))
    return " ".join(f"Fact {number} ".ljust(CLAIM - 2, "x") + "." for number in numbers)


def _latency(parts: Parts, history: History) -> tuple[float, str]:
    if history.exists():
        query = "SELECT median(latency_ms) FROM judge_calls WHERE model = ? AND outcome = 'ok'"
        ((median,),) = select(history.path, query, [parts.suite.judge.model]).rows
        if median is not None:
            return median / 1000, f"{median / 1000:.1f} s per call, as in the history"
    return LATENCY_S, f"{LATENCY_S:g} s per call (no call of this model in the history yet)"
