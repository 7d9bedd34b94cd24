"""The judge that needs no model: it looks for the words of a claim in the passages, and says which it did not find."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ragscore.counting import counted
from ragscore.items import Evidence, Judgement, Status, Verdict
from ragscore.judges.offline import sentences
from ragscore.judges.offline.function_words import has_negation
from ragscore.judges.offline.quantities import CURRENCIES
from ragscore.judges.offline.rules import (
    RELEVANCE,
    SHORT,
    Coverage,
    Index,
    Sentence,
    Statement,
    best_pair,
    best_windows,
    statement,
    supports,
    together,
)
from ragscore.judges.offline.words import Token, tokens
from ragscore.judges.tasks import (
    ELSEWHERE,
    ONLY_HERE,
    AttributeClaims,
    ContradictClaims,
    CrossClaims,
    ExtractClaims,
    ExtractEntities,
    GradeContexts,
    MapClaims,
    Passage,
    RateContexts,
    RateStatements,
    Task,
)

#: How many words that were not found a verdict names, and how much of a claim it quotes, in characters.
_NAMED = 12
_QUOTED = 80


class OfflineJudge:
    """Judges by words alone: no network, no key, the same verdict every time, each independent of all others.

    It does not understand: a paraphrase in other words is missing to it, and a sentence that contradicts a claim in
    the claim's own words supports it. How far it agrees with people is measured in docs/offline-judge.md. A verdict's
    `confidence` is the share of the claim's words that was found, 0..1, and its evidence stands verbatim in a passage.

    >>> import asyncio
    >>> task = ExtractClaims(question="Who?", reference="Dr. Bell was born in 1847; he died in 1922.")
    >>> asyncio.run(OfflineJudge().ask(task)).claims
    ('Dr. Bell was born in 1847', 'he died in 1922.')
    """

    name = "offline-lexical-1"
    prompt_version = "lexical-1"

    async def ask(self, task: Task) -> Judgement:
        """Decide on one task. Takes about a millisecond a claim, and never fails.

        Args:
            task: What is asked.

        Returns:
            One verdict per claim or context, in order; status ABSTAINED for what words alone cannot tell.
        """
        if isinstance(task, MapClaims):
            return self._map(task)
        if isinstance(task, (ContradictClaims, RateStatements, GradeContexts, ExtractEntities)):
            # Words alone tell none of these: a contradiction mostly has the claim's own words.
            return self._judgement(abstained=f"the offline judge cannot do this ({task.name}); name a model")
        if isinstance(task, ExtractClaims):
            return self._judgement(claims=sentences.claims(task.reference))
        if isinstance(task, AttributeClaims):
            return self._attribute(task)
        if isinstance(task, RateContexts):
            return self._rate(task)
        return self._judgement(abstained=f"the offline judge cannot do this ({task.name}); name a model")

    def _judgement(
        self, *, claims: tuple[str, ...] = (), verdicts: Iterable[Verdict] = (), abstained: str | None = None
    ) -> Judgement:
        return Judgement(
            judge=self.name,
            status=Status.OK if abstained is None else Status.ABSTAINED,
            claims=claims,
            verdicts=tuple(verdicts),
            prompt_version=self.prompt_version,
            error=abstained,
        )

    def _attribute(self, task: AttributeClaims) -> Judgement:
        index = Index([passage.text for passage in task.passages])
        return self._judgement(verdicts=[_support(claim.id, claim.text, index, task.passages) for claim in task.claims])

    def _map(self, task: MapClaims) -> Judgement:
        """As `_attribute`, and then each passage by itself: the evidence names every one that states the claim."""
        together = self._attribute(task)
        alone = [self._attribute(replace(task, passages=(passage,))) for passage in task.passages]
        verdicts = []
        for number, verdict in enumerate(together.verdicts):
            evidence = {each.passage: each for each in verdict.evidence}
            for judgement in alone:
                for each in judgement.verdicts[number].evidence if verdict.positive else ():
                    evidence.setdefault(each.passage, each)
            label = None
            if isinstance(task, CrossClaims):
                claim = task.claims[number]
                other = (Passage("p1", task.other(claim)),)
                there = _support(claim.id, claim.text, Index([other[0].text]), other).positive
                label = ELSEWHERE if there else ONLY_HERE
            verdicts.append(replace(verdict, evidence=tuple(evidence.values()), label=label))
        return self._judgement(verdicts=verdicts)

    def _rate(self, task: RateContexts) -> Judgement:
        if task.expected is None or not task.expected.strip():
            return self._judgement(abstained="the offline judge does not rate relevance without an expected answer")
        stated = _parts(task.question, task.expected)
        if not stated:
            return self._judgement(abstained="the offline judge finds no words in the expected answer")
        index = Index([passage.text for passage in task.passages])
        windows = [(text, part, best_windows(part, index)) for text, part in stated]
        verdicts = []
        for place, passage in enumerate(task.passages):
            # max() takes the first of equals, so the earliest claim of the answer is named.
            text, part, coverage = max(
                ((text, part, found.get(place, Coverage())) for text, part, found in windows),
                key=lambda candidate: candidate[2].share,
            )
            relevant = coverage.share >= RELEVANCE
            count = f"{_counted(part.words, coverage.mask)} found"
            verdicts.append(
                Verdict(
                    id=passage.id,
                    positive=relevant,
                    why=f'serves "{text}": {count}' if relevant else f'serves no claim; nearest "{text}": {count}',
                    evidence=_evidence(coverage.sentences, index, task.passages) if relevant else (),
                    confidence=float(coverage.share),
                )
            )
        return self._judgement(verdicts=verdicts)


def _support(claim_id: str, text: str, index: Index, passages: Sequence[Passage]) -> Verdict:
    stated = statement(text)
    if not stated.words:
        return Verdict(claim_id, False, "the claim has no words to look for", confidence=0.0)
    coverage = best_pair(stated, index)
    share = float(coverage.share)
    absent, apart, mask = [], [], coverage.mask
    for bit, word in enumerate(stated.words):
        if not index.has(word):
            absent.append(word)
            mask &= ~(1 << bit)  # a number may stand there with another unit
        elif not mask >> bit & 1:
            apart.append(word)
    count = _counted(stated.words, mask)
    if not supports(stated, coverage, index):
        if stated.hollow:
            return Verdict(
                claim_id, False, "no word of its own to find, and no sentence says just this", confidence=share
            )
        parts = [f"not found: {_listed(absent)}"] if absent else []
        if apart:
            parts.append(f"not found together with the rest: {_listed(apart)}")
        return Verdict(claim_id, False, f"{'; '.join(parts)} ({count} found)", confidence=share)
    quotes = [index.quote(sentence) for sentence in coverage.sentences]
    why = f"{count} found in {counted(len(quotes), 'sentence')}"
    if absent or apart:
        why += f"; not found: {_listed(sorted([*absent, *apart], key=lambda word: word.start))}"
    return Verdict(
        id=claim_id,
        positive=True,
        why=why,
        evidence=_evidence(coverage.sentences, index, passages),
        warnings=_negation(text, quotes),
        confidence=share,
    )


def _parts(question: str, expected: str) -> list[tuple[str, Statement]]:
    """The statements of an expected answer that a passage may serve, each with its text as a verdict quotes it."""
    asked = statement(question)
    texts = [" ".join(expected.split())] if len(tokens(expected)) <= SHORT else sentences.claims(expected)
    found = []
    for text in texts:
        part = statement(text)
        if not part.words:
            continue
        quoted = text if len(text) <= _QUOTED else text[: _QUOTED - 1].rstrip() + "…"
        # "Yes." inside a longer answer says as little by itself as a short answer does.
        alone = len(texts) > 1 and not part.few
        found.append((quoted, part if alone or len(tokens(text)) > SHORT else together(part, asked)))
    return found


def _negation(claim: str, quotes: Sequence[str]) -> tuple[str, ...]:
    """The warning that one side negates and the other does not. The first quote is the one that covers most."""
    if has_negation(claim):
        return () if any(has_negation(quote) for quote in quotes) else ("the claim negates, the excerpt does not",)
    return ("the excerpt negates, the claim does not",) if has_negation(quotes[0]) else ()


def _evidence(found: Sequence[Sentence], index: Index, passages: Sequence[Passage]) -> tuple[Evidence, ...]:
    return tuple(Evidence(passages[sentence.passage].id, index.quote(sentence), True) for sentence in found)


def _counted(words: Sequence[Token], mask: int) -> str:
    pairs = sum(word.kind == "pair" for word in words)
    noun = "words" if not pairs else "character pairs" if pairs == len(words) else "words and character pairs"
    return f"{mask.bit_count()} of {len(words)} {noun}"


def _listed(words: Sequence[Token]) -> str:
    """The words as they stand in the claim; neighbouring character pairs are put together again."""
    shown: list[str] = []
    last: Token | None = None
    for word in words:
        if last is not None and last.kind == word.kind == "pair" and word.start == last.start + 1:
            shown[-1] += word.surface[-1]
        else:
            shown.append(_shown(word))
        last = word
    more = f" and {len(shown) - _NAMED} more" if len(shown) > _NAMED else ""
    return ", ".join(shown[:_NAMED]) + more


def _shown(word: Token) -> str:
    if word.unit is None or word.surface.casefold().endswith(word.unit):
        return word.surface
    return f"{word.unit}{word.surface}" if word.unit in CURRENCIES else f"{word.surface} {word.unit}"
