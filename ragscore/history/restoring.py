"""Rows of the history's tables as records again."""

from __future__ import annotations

from collections.abc import Sequence

from ragscore.history import values
from ragscore.history.tables import Row
from ragscore.items import Call, Context, Finding, Item, Response, Score, Status, Usage

#: The columns that `to_context` takes, in its order.
CONTEXT_COLUMNS = "text, context_id, score, metadata"
#: The columns that `to_response` takes, in its order.
RESPONSE_COLUMNS = "output, returned_contexts, response, latency_ms, error"
#: The columns that `to_finding` takes, in its order; `text` with that of `contexts` where it is NULL.
FINDING_COLUMNS = (
    "kind, verdict_id, rank, text, positive, why, sources, quotes, verified, warnings, confidence, remembered,"
    " duplicate_of"
)
#: The columns that `to_score` takes, in its order.
SCORE_COLUMNS = (
    "scorer, kind, status, exact_fraction, score, scale, reason, against, counted, error, raw, context_set, claim_set,"
    " judge, judge_params, prompt_version, scorer_version, calls, remembered, prompt_tokens, completion_tokens,"
    " cached_tokens, cost_usd"
)
#: The columns that `to_call` takes, in its order; the start as seconds.
CALL_COLUMNS = (
    "task, model, mode, outcome, prompt_tokens, completion_tokens, cached_tokens, cost_usd, latency_ms, error,"
    " epoch(started_at), reply"
)
#: The columns that `to_item` takes, in its order.
ITEM_COLUMNS = "item_id, input, reference, reference_context_ids, claims, answerable, metadata"


def to_item(row: Row) -> Item:
    """An item from its stored columns; what the dataset said about output and contexts is not kept."""
    item_id, asked, reference, context_ids, claims, answerable, metadata = row
    return Item(
        id=item_id,
        input=asked,
        reference=reference,
        reference_context_ids=tuple(context_ids or ()),
        claims=None if claims is None else tuple(claims),
        answerable=answerable,
        metadata=values.from_json(metadata) or {},
    )


def to_context(row: Row) -> Context:
    """A context from its stored columns."""
    text, context_id, score, metadata = row
    return Context(text=text, id=context_id, score=score, metadata=values.from_json(metadata) or {})


def to_response(row: Row, contexts: Sequence[Context]) -> Response:
    """A response from its stored columns and `contexts`, those that the target returned with it."""
    output, returned, raw, latency_ms, error = row
    return Response(
        output=output,
        contexts=None if returned is None else tuple(contexts),
        raw=values.from_json(raw),
        latency_ms=latency_ms,
        error=error,
    )


def to_finding(row: Row) -> Finding:
    """A finding from its stored columns."""
    kind, finding_id, rank, text, positive, why, sources, quotes, verified, warnings, confidence, remembered, first = (
        row
    )
    return Finding(
        kind=kind,
        id=finding_id,
        rank=rank,
        text=text or "",
        positive=positive,
        why=why,
        sources=tuple(sources),
        quotes=tuple(quotes),
        verified=verified,
        warnings=tuple(warnings),
        confidence=confidence,
        remembered=remembered,
        duplicate_of=first,
    )


def to_call(row: Row) -> Call:
    """A call from its stored columns."""
    return Call(*row)


def to_score(row: Row, findings: Sequence[Finding], calls: Sequence[Call] = ()) -> Score:
    """A score from its stored columns, its findings and, where they are wanted, its calls."""
    scorer, kind, status, exact, value, scale, reason, against, counted, error, raw, context_set, claim_set = row[:13]
    judge, judge_params, prompt_version, scorer_version, *usage = row[13:]
    return Score(
        scorer=scorer,
        kind=kind,
        status=Status(status),
        exact=values.to_fraction(exact),
        value=value,
        scale=scale,
        reason=reason,
        against=against,
        findings=tuple(findings),
        counted=counted,
        error=error,
        raw=raw,
        context_set=context_set,
        claim_set=claim_set,
        judge=judge,
        judge_params=judge_params,
        prompt_version=prompt_version,
        scorer_version=scorer_version,
        usage=Usage(*usage),
        calls=tuple(calls),
    )
