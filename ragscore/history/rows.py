"""Records as rows of the history's tables; `restoring` goes the other way.

Of a cell that comes twice in one call the first is taken. How rows reach a file is not known here. Every text of the
corpus passes `_Kept`, which makes fingerprints of it where the run's suite says `store_text: hash`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, overload

from ragscore.history import private, values
from ragscore.history.runs import RunRow
from ragscore.history.tables import Row, Rows
from ragscore.items import Call, Context, ContextSet, Finding, Item, Record, Score, digest

#: The name of the context set that is what the target itself returned.
RESPONSE_SET = "response"


def item_hash(item: Item) -> str:
    """What tells whether an item is the same in two runs: a hash of its input and reference."""
    return digest(item.input, item.reference)


class _Kept:
    """How the text of one run is kept: as it is, or as fingerprints."""

    def __init__(self, run: RunRow) -> None:
        self.is_full = run.store_text != "hash"

    @overload
    def text(self, text: str) -> str: ...
    @overload
    def text(self, text: str | None) -> str | None: ...
    def text(self, text: str | None) -> str | None:
        """A text that has to stay recognisable: an input, a claim, a context."""
        return values.text(text if self.is_full else private.fingerprint(text))

    def texts(self, parts: Iterable[str]) -> list[str]:
        return [self.text(part) for part in parts]

    def words(self, text: str) -> str:
        """What was said about it: reasons, explanations."""
        return values.text(text) if self.is_full else ""

    def reply(self, text: str | None) -> str | None:
        """What a judge replied: it repeats claims and quotes, and is not needed to tell anything apart."""
        return values.text(text) if self.is_full else None

    def json(self, value: Any) -> str | None:
        """An answer as it came, or metadata of a context."""
        return values.to_json(value) if self.is_full else None

    def metadata(self, value: Any) -> str | None:
        return values.to_json(value if self.is_full else private.labels(value))


def response_rows(run: RunRow, records: Sequence[Record]) -> Rows:
    """`items` and, where the target returned its own, `contexts`, of the records that have a response."""
    created = values.now()
    kept = _Kept(run)
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
                kept.text(item.input),
                kept.text(item.reference),
                _texts(item.reference_context_ids),
                None if item.claims is None else kept.texts(item.claims),
                item.answerable,
                kept.metadata(item.metadata),
                item_hash(item),
                kept.text(response.output),
                kept.json(response.raw),
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
    kept = _Kept(run)
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
                kept.text(context.text),
                values.number(context.score),
                kept.json(context.metadata or None),
                earlier if earlier != rank else None,
            )
        )
    return rows


def score_rows(run: RunRow, records: Sequence[Record]) -> Rows:
    """`scores`, `verdicts`, `judge_calls` and `claims` of the records that are scored."""
    created = values.now()
    kept = _Kept(run)
    rows: Rows = {"scores": [], "verdicts": [], "judge_calls": [], "claims": []}
    claim_sets = set()
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
                    kept.words(score.reason),
                    score.against,
                    len(score.findings),
                    sum(finding.positive is True for finding in score.findings),
                    values.text(score.context_set),
                    score.claim_set,
                    values.text(score.error),
                    kept.text(score.raw),
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
                    item_hash(record.item),
                )
            )
            rows["verdicts"] += _verdict_rows(run, record, score)
            rows["judge_calls"] += _call_rows(run, record.item.id, score.scorer, record.attempt, score.calls)
            if score.claim_set is not None and score.claim_set not in claim_sets:
                claim_sets.add(score.claim_set)
                rows["claims"] += [
                    (
                        score.claim_set,
                        finding.rank,
                        kept.text(finding.text),
                        item_hash(record.item),
                        values.text(run.run_id),
                        created,
                    )
                    for finding in score.findings
                    if finding.kind == "claim"
                ]
    return rows


def _verdict_rows(run: RunRow, record: Record, score: Score) -> list[Row]:
    kept = _Kept(run)
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
            None if _is_held(finding, held) else kept.text(finding.text),
            finding.positive,
            kept.words(finding.why),
            list(finding.sources),
            [kept.words(quote) for quote in finding.quotes],
            finding.verified,
            _texts(finding.warnings),
            values.number(finding.confidence),
            finding.remembered,
            finding.duplicate_of,
        )
        for finding in score.findings
    ]


def probe_rows(run: RunRow, calls: Sequence[Call]) -> list[Row]:
    """`judge_calls` of the requests that made the judge ready; they belong to no item and no scorer: both are ''."""
    return _call_rows(run, "", "", run.attempt, calls)


def _call_rows(run: RunRow, item_id: str, scorer: str, attempt: int, calls: Sequence[Call]) -> list[Row]:
    kept = _Kept(run)
    return [
        (
            values.text(run.run_id),
            values.text(item_id),
            values.text(scorer),
            attempt,
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
            kept.reply(call.reply),
        )
        for number, call in enumerate(calls, start=1)
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
