"""The records that every part speaks of (DESIGN §1). All are immutable; none knows how it is made or kept."""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fractions import Fraction
from typing import Any


class Status(StrEnum):
    """What became of one (run, item, scorer). Where several fit, the first in this order is taken."""

    TARGET_ERROR = "target_error"
    CONTEXT_ERROR = "context_error"
    UNANSWERABLE = "unanswerable"
    NO_REFERENCE = "no_reference"
    NO_CLAIMS = "no_claims"
    NO_CONTEXT = "no_context"
    ABSTAINED = "abstained"
    BUDGET = "budget"
    JUDGE_ERROR = "judge_error"
    SCORER_ERROR = "scorer_error"
    OK = "ok"


#: Statuses that a resume tries again: something failed that may not fail next time.
RETRYABLE = frozenset(
    {Status.TARGET_ERROR, Status.CONTEXT_ERROR, Status.BUDGET, Status.JUDGE_ERROR, Status.SCORER_ERROR}
)


def normalised(text: str) -> str:
    """`text` as it is compared: NFKC, white space folded to single spaces, no ends."""
    return " ".join(unicodedata.normalize("NFKC", text).split())


_CANONICAL = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"), default=str)


def digest(*parts: object) -> str:
    """A stable hash (32 hex digits of SHA-256) of JSON-able parts."""
    return hashlib.sha256(_CANONICAL.encode(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Context:
    """One retrieved piece; its rank is its place in the sequence that holds it (first is 1).

    Attributes:
        text: The text; empty where the retriever gave none.
        id: The retriever's own id; None where it gave none.
        score: The retriever's own score, on its own scale; None where it gave none.
        metadata: Whatever else came with it, as JSON has it.
    """

    text: str
    id: str | None = None
    score: float | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """What makes two contexts the same one: the normalised text.

        Not the id: retrievers commonly give every chunk the id of its document, and chunks taken for
        repeats of the first would be lost to recall.
        """
        return normalised(self.text)


@dataclass(frozen=True, slots=True)
class Item:
    """One labelled question.

    `reference` is the trusted answer; `output` and `contexts` are set when the dataset already holds
    what the system answered and retrieved; `claims` when a person wrote down the facts.

    Attributes:
        id: Its name in the history; unique in the dataset.
        input: The question.
        reference: The trusted answer; None where there is none.
        reference_context_ids: Ids of the contexts that should come back; empty where they are not known.
        contexts: What was retrieved, best first, where the dataset holds it; None where not, empty where nothing was
            found.
        output: What the system answered, where the dataset holds it.
        claims: The facts of the reference, where a person wrote them down.
        answerable: False where the right answer is that there is none.
        metadata: Everything else of the row; `relevance` holds graded ids.
    """

    id: str
    input: str
    reference: str | None = None
    reference_context_ids: tuple[str, ...] = ()
    contexts: tuple[Context, ...] | None = None
    output: str | None = None
    claims: tuple[str, ...] | None = None
    answerable: bool = True
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Response:
    """What the target said about one item, or why it said nothing (`error`).

    `contexts` is None when the target returned none of its own (text only); an empty tuple means that
    it retrieved and found nothing. `raw` is its answer as JSON, for extractors.

    Attributes:
        output: The answer's text; None where it gave none.
        contexts: What it retrieved, best first.
        raw: Its whole answer.
        latency_ms: Milliseconds that the call took; None where nothing was called.
        error: What failed; None where nothing did.
    """

    output: str | None = None
    contexts: tuple[Context, ...] | None = None
    raw: Any = None
    latency_ms: float | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class ContextSet:
    """The contexts of one item that a scorer judges, and where they came from (`source`)."""

    source: str
    contexts: tuple[Context, ...] = ()
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """An excerpt that supports a verdict. `passage` is the id of the passage that it is said to stand in."""

    passage: str
    quote: str
    verified: bool


@dataclass(frozen=True, slots=True)
class Verdict:
    """One binary decision of a judge about one claim (supported?) or one passage (relevant?).

    `id` echoes the id of that claim or passage. `confidence` is the judge's own figure in 0..1 where it has one,
    `label` its answer where that is more than yes or no.
    """

    id: str
    positive: bool
    why: str = ""
    evidence: tuple[Evidence, ...] = ()
    warnings: tuple[str, ...] = ()
    confidence: float | None = None
    remembered: bool = False
    label: str | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """What judging cost. Tokens and money are None when unknown, never 0 for unknown.

    `calls` counts requests to the judge that were answered, well or not (re-asks included), `remembered` the decisions
    that were answered from memory. Sums with an unknown part are unknown.

    Attributes:
        calls: Requests that were answered.
        remembered: Decisions from memory.
        prompt_tokens: Tokens sent.
        completion_tokens: Tokens of the replies.
        cached_tokens: Of those sent, the ones that the provider had cached.
        cost_usd: US dollars.
    """

    calls: int = 0
    remembered: int = 0
    prompt_tokens: int | None = 0
    completion_tokens: int | None = 0
    cached_tokens: int | None = 0
    cost_usd: float | None = 0.0

    def __add__(self, other: Usage) -> Usage:
        def both(a: Any, b: Any) -> Any:
            return None if a is None or b is None else a + b

        return Usage(
            calls=self.calls + other.calls,
            remembered=self.remembered + other.remembered,
            prompt_tokens=both(self.prompt_tokens, other.prompt_tokens),
            completion_tokens=both(self.completion_tokens, other.completion_tokens),
            cached_tokens=both(self.cached_tokens, other.cached_tokens),
            cost_usd=both(self.cost_usd, other.cost_usd),
        )


@dataclass(frozen=True, slots=True)
class Call:
    """One request to a judge's model, answered or not, as the table `judge_calls` keeps it.

    `task` is the task's name, `mode` how structure was asked for (json_schema, json_object, text), `outcome` ok or
    the kind of fault (`truncated`, `malformed`, `incomplete`, `throttled`, `timeout`, `server_error`, …). `reply` is
    the text of the reply as it came, a long one cut with a word that it was; None where none came.
    """

    task: str
    model: str
    mode: str
    outcome: str
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    cost_usd: float | None = None
    latency_ms: float | None = None
    error: str | None = None
    started_at: float | None = None  # seconds since the epoch
    reply: str | None = None


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a judge answered to one task: its decisions with their evidence, and what they cost.

    `status` is OK, ABSTAINED (the judge cannot say), BUDGET or JUDGE_ERROR; `verdicts` may be partial in the
    last case and then every one that is there is kept. `raw` is the reply as it came when it could not be used.
    """

    judge: str
    status: Status = Status.OK
    claims: tuple[str, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    usage: Usage = field(default_factory=Usage)
    calls: tuple[Call, ...] = ()
    prompt_version: str = ""
    params: str = "{}"
    error: str | None = None
    raw: str | None = None

    def unbilled(self) -> Judgement:
        """The same judgement for somebody who did not pay for it."""
        return replace(self, usage=Usage(), calls=())


@dataclass(frozen=True, slots=True)
class Finding:
    """One verdict as it is shown and stored: about `text`, the context at `rank` (first is 1) or claim number `rank`.

    `sources` are the ranks of the contexts that the evidence stands in. `positive` is None when the claim or
    context was never decided.

    Attributes:
        kind: What it is about: `claim` (of the reference), `context`, `output_claim`, `stated_claim`, `noise_claim`, ….
        id: The claim's id, or the context's rank as text.
        rank: The context's rank or the claim's number; the first is 1.
        text: The claim, or the context's text.
        positive: The decision: supported, relevant, …; None where there is none.
        why: The judge's reason; empty where it gave none.
        sources: Ranks of the contexts that the evidence stands in.
        quotes: The excerpts, one per source.
        verified: Whether all excerpts stand verbatim in the contexts; None without any.
        warnings: What is odd about the evidence.
        confidence: The judge's own figure, or the share of a jury that agrees, 0..1; None where there is none.
        remembered: Whether it was decided in an earlier call.
        duplicate_of: The rank that a context repeats; None for the first of its kind.
    """

    kind: str  # "claim" | "context"
    id: str
    rank: int
    text: str
    positive: bool | None
    why: str = ""
    sources: tuple[int, ...] = ()
    quotes: tuple[str, ...] = ()
    verified: bool | None = None
    warnings: tuple[str, ...] = ()
    confidence: float | None = None
    remembered: bool = False
    duplicate_of: int | None = None


@dataclass(frozen=True, slots=True)
class Score:
    """The result of one scorer on one item.

    `exact` is the unscaled fraction in 0..1; `value` is `exact * scale` rounded half up to 2 decimals. Both are
    None when the item is not scored, and `status` says why. `counted` says whether it takes part in means.

    Attributes:
        scorer: The scorer's name.
        kind: The kind of scorer, as in a suite.
        status: `ok`, or why there is no score.
        exact: The score before scaling and rounding, a fraction in 0..1.
        value: In the scorer's scale, 2 decimals.
        scale: The score of a perfect item.
        reason: Composed from the findings; several lines.
        against: What it was judged against: `reference`, `output`, ….
        findings: One per claim or context.
        counted: Whether it takes part in means.
        error: What failed, where something did.
        raw: The judge's reply that could not be used.
        context_set: Where the contexts came from.
        claim_set: Hash of the claims.
        judge, judge_params, prompt_version, scorer_version: What the score depends on.
        usage: What it cost.
        calls: The requests that it took.
    """

    scorer: str
    kind: str
    status: Status
    exact: Fraction | None = None
    value: float | None = None
    scale: float = 1.0
    reason: str = ""
    against: str | None = None
    findings: tuple[Finding, ...] = ()
    counted: bool = True
    error: str | None = None
    raw: str | None = None
    context_set: str | None = None
    claim_set: str | None = None
    judge: str = ""
    judge_params: str = "{}"
    prompt_version: str = ""
    scorer_version: str = ""
    usage: Usage = field(default_factory=Usage)
    calls: tuple[Call, ...] = ()


@dataclass(frozen=True, slots=True)
class Record:
    """One item on its way through the chain; each stage returns a new one with one more field filled."""

    item: Item
    position: int = 0  # place in the dataset, first is 0
    attempt: int = 1  # number of the rows that this passage writes; a later attempt supersedes
    response: Response | None = None
    context_sets: Mapping[str, ContextSet] | None = None
    judged: Mapping[str, Any] | None = None
    scores: tuple[Score, ...] | None = None

    def having(self, **fields: Any) -> Record:
        """A copy with `fields` filled."""
        return replace(self, **fields)


Batch = Sequence[Record]
