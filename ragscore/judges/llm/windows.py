"""Contexts that do not fit into one prompt: splitting them, merging what was decided, and one more look.

A claim is supported if any part supports it. What needs two contexts that fell into different parts no part can
support; so the claims that none supports are looked at once more, against the excerpts of all contexts that come
nearest to them. Nearest is by words: for each claim the sentences that share most of its content words, rare ones
counting more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from ragscore.items import Verdict
from ragscore.judges.offline.sentences import spans
from ragscore.judges.offline.words import tokens
from ragscore.judges.tasks import ELSEWHERE, Claim, Passage

#: Share of the window that is left free: counting is by a similar tokenizer at times.
MARGIN = 0.1
#: Tokens that the fences around one passage take, at most.
FENCES = 32
#: Sentences kept for each claim in the last look.
NEAREST = 4

Count = Callable[[str], int]


def room_for_passages(window: int, *, reply: int, rest: int) -> int:
    """Tokens left for passages in a window, beside the reply and the rest of the prompt."""
    return int(window * (1 - MARGIN)) - reply - rest


def split(
    passages: Sequence[Passage], *, tokens: int | None, most: int | None, count: Count
) -> list[tuple[Passage, ...]]:
    """Passages in as few parts as they fit, in order.

    A passage that does not fit by itself is cut, at a sentence's end where there is one; its pieces have its id.

    Args:
        passages: What to split.
        tokens: Tokens of passages in one part; None for no limit.
        most: Passages in one part at most; None for no limit.
        count: Tokens of a text.
    """
    parts: list[list[Passage]] = [[]]
    used = 0
    for passage in _cut(passages, tokens, count):
        size = 0 if tokens is None else _size(passage.text, count)
        full = tokens is not None and used + size > tokens
        if parts[-1] and (full or (most is not None and len(parts[-1]) >= most)):
            parts.append([])
            used = 0
        parts[-1].append(passage)
        used += size
    return [tuple(part) for part in parts if part]


def merged(parts: Iterable[tuple[Sequence[str], Mapping[str, Verdict]]], *, every: bool = False) -> dict[str, Verdict]:
    """One verdict per id: positive if any part's is; negative only if every part that was asked answered.

    Evidence is that of all positive verdicts together. Whether the other text states a claim (`CrossClaims`) is seen
    whole by each part: it does if any part says so.

    Args:
        parts: For each part the ids that were asked about, and the verdicts that came.
        every: A positive verdict, too, needs every part: its evidence is to name all passages that there are.
    """
    verdicts: dict[str, Verdict] = {}
    undecided: set[str] = set()
    for asked, part in parts:
        undecided |= set(asked) - part.keys()
        for id, verdict in part.items():
            verdicts[id] = verdict if id not in verdicts else _united(verdicts[id], verdict)
    return {id: verdict for id, verdict in verdicts.items() if id not in undecided or (verdict.positive and not every)}


def _united(one: Verdict, other: Verdict) -> Verdict:
    """Two verdicts on the same thing: the positive one, or the first, with what the other adds to it."""
    kept = other if other.positive and not one.positive else one
    if one.positive and other.positive:
        both = (*one.evidence, *other.evidence)
        quoted = {each.passage for each in both if each.quote}
        evidence = dict.fromkeys(each for each in both if each.quote or each.passage not in quoted)
        warnings = dict.fromkeys((*one.warnings, *other.warnings))
        kept = replace(kept, evidence=tuple(evidence), warnings=tuple(warnings))
    if ELSEWHERE in (one.label, other.label):
        kept = replace(kept, label=ELSEWHERE)
    return kept


def nearest(claims: Sequence[Claim], passages: Sequence[Passage], *, tokens: int, count: Count) -> tuple[Passage, ...]:
    """Excerpts of `passages` that come nearest to `claims`, within a number of tokens; ids as they are.

    Each claim's best sentence first, then each one's second, and so on, until the tokens are used up. An excerpt keeps
    the order of its passage; left out stretches are shown as "…".
    """
    sentences = [
        (passage_at, start, end, _keys(passage.text[start:end]))
        for passage_at, passage in enumerate(passages)
        for start, end in spans(passage.text)
    ]
    spread = Counter(key for *_, keys in sentences for key in keys)
    ranked = []
    for claim in claims:
        wanted = _keys(claim.text)
        weights = [sum(1 / spread[key] for key in wanted & keys) for *_, keys in sentences]
        best = sorted((at for at, weight in enumerate(weights) if weight > 0), key=lambda at: (-weights[at], at))
        ranked.append(best[:NEAREST])
    chosen: set[int] = set()
    left = tokens
    for place in range(NEAREST):
        for best in ranked:
            if place < len(best) and best[place] not in chosen:
                at, start, end, _ = sentences[best[place]]
                size = _size(passages[at].text[start:end], count)
                if size <= left:
                    chosen.add(best[place])
                    left -= size
    excerpts: dict[int, list[str]] = {}
    last: dict[int, int] = {}
    for number in sorted(chosen):
        at, start, end, _ = sentences[number]
        if at in last and last[at] != number - 1:
            excerpts[at].append("…")
        excerpts.setdefault(at, []).append(passages[at].text[start:end])
        last[at] = number
    return tuple(Passage(passages[at].id, "\n".join(texts)) for at, texts in sorted(excerpts.items()))


def _cut(passages: Iterable[Passage], most: int | None, count: Count) -> Iterable[Passage]:
    for passage in passages:
        if most is None or _size(passage.text, count) <= most:
            yield passage
            continue
        piece_start = piece_end = 0
        for start, end in _short_spans(passage.text, most, count):
            if piece_end > piece_start and _size(passage.text[piece_start:end], count) > most:
                yield Passage(passage.id, passage.text[piece_start:piece_end])
                piece_start = start
            piece_end = end
        if passage.text[piece_start:piece_end].strip():
            yield Passage(passage.id, passage.text[piece_start:piece_end])


def _short_spans(text: str, most: int, count: Count) -> Iterable[tuple[int, int]]:
    """Sentences, and pieces of those that are longer than `most` tokens by themselves."""
    waiting = list(reversed(spans(text)))
    while waiting:
        start, end = waiting.pop()
        if end - start > 8 and _size(text[start:end], count) > most:
            middle = (start + end) // 2
            space = text.rfind(" ", start, middle)
            middle = space if space > start else middle
            waiting += [(middle, end), (start, middle)]
        else:
            yield start, end


def _size(text: str, count: Count) -> int:
    return count(text) + FENCES


def _keys(text: str) -> frozenset[str]:
    return frozenset(key for token in tokens(text) if token.kind != "stop" for key in token.keys)
