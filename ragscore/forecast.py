"""What a run will take: judge calls, tokens, money, time; estimated without asking anybody."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ragscore.assembly import Parts
from ragscore.history import History, select
from ragscore.items import Item
from ragscore.judges import AttributeClaims, Claim, ExtractClaims, Passage, RateContexts
from ragscore.judges.llm.client import LiteLLMClient, Price
from ragscore.judges.llm.prompts import prompt
from ragscore.judges.tasks import Task
from ragscore.scorer_kinds import WITHOUT_JUDGE

#: Taken for granted where the history holds no run of the suite: contexts per item, characters per context.
CONTEXTS, CHARACTERS = 5, 500
#: Characters per token, and tokens of one verdict in a reply (id, decision, a short quote or why).
PER_TOKEN, PER_VERDICT = 4, 45
#: Seconds that a call takes where the history knows none of this model.
LATENCY_S = 2.0


@dataclass(frozen=True, slots=True)
class Share:
    """What one scorer, or the extraction of claims, takes the first time; an unchanged re-run takes no call."""

    what: str
    calls: int
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float | None


@dataclass(frozen=True, slots=True)
class Forecast:
    """The estimate for a suite.

    Attributes:
        items: Items of the dataset.
        shares: Per scorer, and for the claims that are not frozen yet.
        cost_usd: In all; None when the price is not known.
        seconds: At the suite's concurrency and rates.
        remembered_calls: Calls of a second run on unchanged retrieval.
        assumed: What the estimate rests on, one line each.
    """

    items: int
    shares: Sequence[Share]
    cost_usd: float | None
    seconds: float
    remembered_calls: int
    assumed: Sequence[str]

    @property
    def calls(self) -> int:
        """Calls of a first run."""
        return sum(share.calls for share in self.shares)

    @property
    def tokens(self) -> int:
        """Prompt and completion tokens of a first run."""
        return sum(share.prompt_tokens + share.completion_tokens for share in self.shares)


def forecast(parts: Parts, history: History) -> Forecast:
    """Estimate a first run of a suite. Makes no call and writes nothing.

    Args:
        parts: The suite's parts.
        history: Asked for the contexts and latencies of earlier runs; it need not exist.
    """
    items = parts.dataset.items
    if parts.judging.model is None:
        return Forecast(len(items), [], 0.0, 0.0, 0, [f"{parts.judge.name} makes no calls"])
    per_item, characters, assumed = _contexts(parts, history)
    latency, told = _latency(parts, history)
    price = _price(parts)
    if (seats := len(parts.suite.judge.seats())) > 1:
        assumed.append(f"figures are those of one judge; {seats} judges vote and take {seats} times as much")
    passages = tuple(Passage(f"p{number}", "x" * characters) for number in range(1, per_item + 1))
    shares = [_share("claims", _extractions(parts, items), price)]
    for scorer in parts.scorers:
        if scorer.kind in WITHOUT_JUDGE:
            continue
        if scorer.kind not in ("context_recall", "context_precision"):
            assumed.append(
                f"{scorer.name} is not in these figures: up to 4 calls per item, most shared with other scorers"
            )
            continue
        make = _attribution if scorer.kind == "context_recall" else _rating
        shares.append(_share(scorer.name, [make(parts, item, passages) for item in items], price))
    shares = [share for share in shares if share.calls]
    costs = [share.cost_usd for share in shares]
    judge = parts.suite.judge
    calls, tokens = sum(s.calls for s in shares), sum(s.prompt_tokens + s.completion_tokens for s in shares)
    seconds = max(
        calls * latency / judge.concurrency,
        calls * 60 / judge.rpm if judge.rpm else 0.0,
        tokens * 60 / judge.tpm if judge.tpm else 0.0,
    )
    cost = None if any(each is None for each in costs) else sum(each or 0.0 for each in costs)
    return Forecast(len(items), shares, cost, seconds, 0, [*assumed, told])


Asked = tuple[Task, int] | None


def _extractions(parts: Parts, items: Sequence[Item]) -> list[Asked]:
    if all(scorer.kind != "context_recall" for scorer in parts.scorers):
        return []
    asked: dict[tuple[str, str], Asked] = {}
    for item in items:
        if item.answerable and item.reference and parts.claims.known(item) is None:
            facts = max(1, len(item.reference) // 80)
            reply = len(item.reference) // PER_TOKEN + 10 * facts
            asked[(item.input, item.reference)] = (ExtractClaims(item.input, item.reference), reply)
    return list(asked.values())


def _attribution(parts: Parts, item: Item, passages: tuple[Passage, ...]) -> Asked:
    known = parts.claims.known(item)
    if not item.answerable or (known is None and not item.reference) or not passages:
        return None
    texts = known.claims if known is not None else _facts(item.reference or "")
    claims = tuple(Claim(f"c{number}", text) for number, text in enumerate(texts, start=1))
    return (AttributeClaims(item.input, claims, passages), PER_VERDICT * len(claims)) if claims else None


def _rating(parts: Parts, item: Item, passages: tuple[Passage, ...]) -> Asked:
    if not passages or not (item.reference or item.output or not item.answerable):
        return None
    task = RateContexts(item.input, item.reference or item.output, "reference", passages)
    return task, PER_VERDICT * len(passages)


def _facts(reference: str) -> list[str]:
    size = 80
    return [reference[start : start + size] for start in range(0, len(reference), size)]


def _share(what: str, asked: Sequence[Asked], price: LiteLLMClient) -> Share:
    sent = reply = calls = 0
    for each in asked:
        if each is not None:
            calls += 1
            sent += sum(len(message["content"]) for message in prompt(each[0]).messages) // PER_TOKEN
            reply += each[1]
    return Share(what, calls, sent, reply, price.price_of(sent, reply))


def _price(parts: Parts) -> LiteLLMClient:
    judge = parts.suite.judge
    price = Price(**judge.price.model_dump()) if judge.price is not None else None
    return LiteLLMClient(judge.model, base_url=judge.base_url, api_key=None, price=price)


def _contexts(parts: Parts, history: History) -> tuple[int, int, list[str]]:
    rows: list[tuple[Any, ...]] = []
    if history.exists():
        rows = select(
            history.path,
            """
            WITH last AS (SELECT run_id FROM runs WHERE suite = ? ORDER BY started_at DESC LIMIT 1),
            held AS (SELECT item_id, count(*) AS n, sum(length(text)) AS size FROM latest_contexts
                     WHERE run_id = (SELECT run_id FROM last) GROUP BY item_id)
            SELECT (SELECT run_id FROM last), avg(n), sum(size) / sum(n) FROM held
            """,
            [parts.suite.name],
        ).rows
    if rows and rows[0][1] is not None and rows[0][2] is not None:
        run_id, contexts, size = rows[0]
        told = f"{contexts:.1f} contexts of {size:.0f} characters per item, as in run {run_id}"
        return max(1, round(contexts)), max(1, round(size)), [told]
    return CONTEXTS, CHARACTERS, [f"{CONTEXTS} contexts of {CHARACTERS} characters per item (no run to learn from yet)"]


def _latency(parts: Parts, history: History) -> tuple[float, str]:
    if history.exists():
        query = "SELECT median(latency_ms) FROM judge_calls WHERE model = ? AND outcome = 'ok'"
        ((median,),) = select(history.path, query, [parts.suite.judge.model]).rows
        if median is not None:
            return median / 1000, f"{median / 1000:.1f} s per call, as in the history"
    return LATENCY_S, f"{LATENCY_S:g} s per call (no call of this model in the history yet)"
