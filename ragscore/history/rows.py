"""Records as rows of the history's tables, and rows as records again.

Of a cell that comes twice in one call the first is taken. How rows reach a file is not known here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ragscore.history import values
from ragscore.history.runs import RunRow
from ragscore.history.tables import Row, Rows
from ragscore.items import Context, ContextSet, Finding, Item, Record, Response, Score, Status, Usage, digest

#: The name of the context set that is what the target itself returned.
RESPONSE_SET = "response"


def item_hash(item: Item) -> str:
    """What tells whether an item is the same in two runs: a hash of its input and reference."""
    return digest(item.input, item.reference)


def response_rows(run: RunRow, records: Sequence[Record]) -> Rows:
    """`items` and, where the target returned its own, `contexts`, of the records that have a response."""
    created = values.now()
    rows: Rows = {"items": [], "contexts": []}
    seen = set()
    for record in records:
        item, response = record.item, record.response
        if response is None or (item.id, record.attempt) in seen:
            continue
        seen.add((item.id, record.attempt))
        returned = response.contexts
        rows["items"].append(
            (
                values.text(run.run_id),
                values.text(item.id),
                record.position,
                record.attempt,
                values.text(item.input),
                values.text(item.reference),
                _texts(item.reference_context_ids),
                None if item.claims is None else _texts(item.claims),
                item.answerable,
                values.to_json(item.metadata),
                item_hash(item),
                values.text(response.output),
                values.to_json(response.raw),
                None if returned is None else len(returned),
                values.number(response.latency_ms),
                values.text(response.error),
                created,
            )
        )
        rows["contexts"] += _context_rows(run, record, RESPONSE_SET, returned or ())
    return rows


def context_rows(run: RunRow, records: Sequence[Record]) -> Rows:
    """`context_sets` and `contexts` of the records whose sets are resolved."""
    created = values.now()
    rows: Rows = {"context_sets": [], "contexts": []}
    seen = set()
    for record in records:
        for name, found in (record.context_sets or {}).items():
            if (record.item.id, name, record.attempt) in seen:
                continue
            seen.add((record.item.id, name, record.attempt))
            rows["context_sets"].append(
                (
                    values.text(run.run_id),
                    values.text(record.item.id),
                    record.attempt,
                    values.text(name),
                    len(found.contexts),
                    values.text(found.error),
                    created,
                )
            )
            rows["contexts"] += _context_rows(run, record, name, found.contexts)
    return rows


def _context_rows(run: RunRow, record: Record, name: str, contexts: Sequence[Context]) -> list[Row]:
    first: dict[str, int] = {}
    rows: list[Row] = []
    for rank, context in enumerate(contexts, start=1):
        earlier = first.setdefault(context.key, rank)
        rows.append(
            (
                values.text(run.run_id),
                values.text(record.item.id),
                record.attempt,
                values.text(name),
                rank,
                values.text(context.id),
                values.text(context.text),
                values.number(context.score),
                values.to_json(context.metadata or None),
                earlier if earlier != rank else None,
            )
        )
    return rows


def score_rows(run: RunRow, records: Sequence[Record]) -> Rows:
    """`scores`, `verdicts` and `judge_calls` of the records that are scored."""
    created = values.now()
    rows: Rows = {"scores": [], "verdicts": [], "judge_calls": []}
    seen = set()
    for record in records:
        for score in record.scores or ():
            if (record.item.id, score.scorer, record.attempt) in seen:
                continue
            seen.add((record.item.id, score.scorer, record.attempt))
            usage = score.usage
            rows["scores"].append(
                (
                    values.text(run.run_id),
                    values.text(record.item.id),
                    record.position,
                    values.text(score.scorer),
                    score.kind,
                    record.attempt,
                    score.status.value,
                    values.number(score.value),
                    None if score.exact is None else float(score.exact),
                    values.from_fraction(score.exact),
                    float(score.scale),
                    score.counted and score.exact is not None,
                    values.text(score.reason),
                    score.against,
                    len(score.findings),
                    sum(finding.positive is True for finding in score.findings),
                    values.text(score.context_set),
                    score.claim_set,
                    values.text(score.error),
                    values.text(score.raw),
                    usage.calls,
                    usage.remembered,
                    usage.prompt_tokens,
                    usage.completion_tokens,
                    usage.cached_tokens,
                    values.number(usage.cost_usd),
                    created,
                    values.text(run.suite),
                    values.text(run.retriever),
                    values.text(run.version),
                    values.text(run.target),
                    run.dataset_hash,
                    values.text(score.judge or run.judge),
                    values.text(score.judge_params),
                    values.text(score.prompt_version),
                    values.text(score.scorer_version),
                    run.ragscore_version,
                )
            )
            rows["verdicts"] += _verdict_rows(run, record, score)
            rows["judge_calls"] += _call_rows(run, record, score)
    return rows


def _verdict_rows(run: RunRow, record: Record, score: Score) -> list[Row]:
    held = (record.context_sets or {}).get(score.context_set or "")
    return [
        (
            values.text(run.run_id),
            values.text(record.item.id),
            values.text(score.scorer),
            record.attempt,
            finding.kind,
            values.text(finding.id),
            finding.rank,
            # The text of a context stands in `contexts` once, however many scorers judge it.
            None if _is_held(finding, held) else values.text(finding.text),
            finding.positive,
            values.text(finding.why),
            list(finding.sources),
            _texts(finding.quotes),
            finding.verified,
            _texts(finding.warnings),
            values.number(finding.confidence),
            finding.remembered,
            finding.duplicate_of,
        )
        for finding in score.findings
    ]


def _call_rows(run: RunRow, record: Record, score: Score) -> list[Row]:
    return [
        (
            values.text(run.run_id),
            values.text(record.item.id),
            values.text(score.scorer),
            record.attempt,
            number,
            call.task,
            values.text(call.model),
            call.mode,
            call.outcome,
            call.prompt_tokens,
            call.completion_tokens,
            call.cached_tokens,
            values.number(call.cost_usd),
            values.number(call.latency_ms),
            values.text(call.error),
            values.from_seconds(call.started_at),
        )
        for number, call in enumerate(score.calls, start=1)
    ]


def _is_held(finding: Finding, held: ContextSet | None) -> bool:
    return (
        finding.kind == "context"
        and held is not None
        and 0 < finding.rank <= len(held.contexts)
        and held.contexts[finding.rank - 1].text == finding.text
    )


def _texts(parts: Iterable[str]) -> list[str]:
    return [values.text(part) for part in parts]


#: The columns that `to_context` takes, in its order.
CONTEXT_COLUMNS = "text, context_id, score, metadata"
#: The columns that `to_response` takes, in its order.
RESPONSE_COLUMNS = "output, returned_contexts, response, latency_ms, error"
#: The columns that `to_finding` takes, in its order; `text` with that of `contexts` where it is NULL.
FINDING_COLUMNS = (
    "kind, verdict_id, rank, text, positive, why, sources, quotes, verified, warnings, confidence, remembered,"
    " duplicate_of"
)  #: The columns that `to_score` takes, in its order.
SCORE_COLUMNS = (
    "scorer, kind, status, exact_fraction, score, scale, reason, against, counted, error, raw, context_set, claim_set,"
    " judge, judge_params, prompt_version, scorer_version, calls, remembered, prompt_tokens, completion_tokens,"
    " cached_tokens, cost_usd"
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


def to_score(row: Row, findings: Sequence[Finding]) -> Score:
    """A score from its stored columns and its findings."""
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
    )
