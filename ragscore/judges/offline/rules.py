"""When words count as support, and when as relevance: coverage of a statement by sentences, in whole numbers.

Everything here is a function of the statement and the passages alone. No word counts as rare or common, because that
would make a verdict depend on the other rows of a data set; words weigh the same, and numbers half as much again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from ragscore.judges.offline.sentences import LONGEST, spans, unmarked
from ragscore.judges.offline.words import Token, tokens

#: The least coverage of a claim by its best two sentences that counts as support.
SUPPORT = Fraction(60, 100)
#: The least coverage of a statement by two adjacent sentences that makes a passage relevant.
RELEVANCE = Fraction(55, 100)
#: Weights. Stop-words count only in a statement that has few other words.
WORD, NUMBER, STOP = 2, 3, 1
#: Kinds of words that must all occur in some passage: numbers, and names such as `__getattr__`, 3D or a quoted "with".
REQUIRED = frozenset({"number", "name"})
#: A statement with fewer words than this, stop-words aside, is read with them, and must stand in one sentence.
FEW = 3
#: An expected answer of at most so many words, stop-words included, is read together with the question.
SHORT = 6


class Sentence(NamedTuple):
    """A sentence of a passage: `passage` is the passage's place, `start` and `end` are offsets in its text."""

    passage: int
    start: int
    end: int


class Index:
    """The sentences of some passages, and where each word stands. Built once, asked by many statements."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = texts
        self.sentences: list[Sentence] = []
        self.places: dict[str, list[int]] = defaultdict(list)  # key -> numbers of sentences, ascending
        self._units: dict[str, set[str | None]] = defaultdict(set)  # number -> the units that it stands with
        self._whole: dict[tuple[str, ...], list[Sentence]] = defaultdict(list)  # all words of a sentence -> where
        for passage, text in enumerate(texts):
            for start, end in spans(text, longest=None):
                self._add(Sentence(passage, start, end))

    def _add(self, sentence: Sentence) -> None:
        text = self.quote(sentence)
        bare = unmarked(text)
        words = tokens(text)
        self._whole[_signature(words if bare == text else tokens(bare))].append(sentence)
        pieces = spans(text) if len(text) > LONGEST else [(0, len(text))]
        for start, end in pieces:
            number = len(self.sentences)
            self.sentences.append(Sentence(sentence.passage, sentence.start + start, sentence.start + end))
            for word in words if len(pieces) == 1 else tokens(text[start:end]):
                for key in (*word.keys, *word.extra):
                    places = self.places[key]
                    if not places or places[-1] != number:
                        places.append(number)
                    if key[0] == "#":
                        self._units[key].add(word.unit)

    def quote(self, sentence: Sentence) -> str:
        """The sentence as it stands in its passage."""
        return self.texts[sentence.passage][sentence.start : sentence.end]

    def has(self, word: Token) -> bool:
        """Whether a word stands in any passage; a number, with a unit that does not contradict its own."""
        if word.kind != "number":
            return any(key in self.places for key in word.keys)
        for key in word.keys:
            units = self._units.get(key)
            if units and (word.unit is None or word.unit in units or (None in units and word.unit != "%")):
                return True
        return False

    def verbatim(self, stated: Statement) -> list[Sentence]:
        """The sentences that have the very words of a statement, in its order, and no others."""
        return self._whole.get(stated.signature, []) if stated.signature else []


@dataclass(frozen=True, slots=True)
class Statement:
    """A text to be found: its distinct words, each with its weight. `signature` is all of its words in order.

    `few` says that it has hardly a word of its own, so that what is found of it must be found in one sentence.
    """

    words: tuple[Token, ...]
    weights: tuple[int, ...]
    signature: tuple[str, ...]
    few: bool = False
    hollow: bool = False

    @property
    def total(self) -> int:
        """The weight of all words; 0 for a text without any."""
        return sum(self.weights)


def statement(text: str) -> Statement:
    """The words of `text` that have to be found; repeated ones count once. Stop-words alone make it `hollow`."""
    words: dict[tuple[str, ...], Token] = {}
    stops: dict[tuple[str, ...], Token] = {}
    every = tokens(unmarked(text))
    for word in every:
        (stops if word.kind == "stop" else words).setdefault(word.keys, word)
    few, hollow = len(words) < FEW, not words
    if few:
        # With a neighbour where there is one, for any sentence has an "in" and a "not".
        words |= {keys: word._replace(keys=word.extra or keys) for keys, word in stops.items() if keys not in words}
    weights = tuple({"number": NUMBER, "stop": STOP}.get(word.kind, WORD) for word in words.values())
    return Statement(tuple(words.values()), weights, _signature(every), few, hollow)


def together(first: Statement, second: Statement) -> Statement:
    """Both read as one, half the weight each, as a short answer is read with its question.

    Words that both have count for the first. The signature stays that of the first.
    """
    known = {word.keys for word in first.words}
    rest = [(word, weight) for word, weight in zip(second.words, second.weights, strict=True) if word.keys not in known]
    total = sum(weight for _, weight in rest)
    if not total or not first.total:
        return first
    return Statement(
        (*first.words, *(word for word, _ in rest)),
        (*(weight * total for weight in first.weights), *(weight * first.total for _, weight in rest)),
        first.signature,
    )


@dataclass(frozen=True, slots=True)
class Coverage:
    """How far `sentences` cover a statement: the `share` of its weight, and which words as bits of `mask`.

    `verbatim` says that one sentence is the statement, word for word.
    """

    share: Fraction = Fraction(0)
    sentences: tuple[Sentence, ...] = ()
    mask: int = 0
    verbatim: bool = False


def best_pair(stated: Statement, index: Index) -> Coverage:
    """The two sentences, of any passages, that cover most of a statement (one, if a second adds nothing).

    The best pair is exact, not greedy: a further passage can therefore never lower the share.
    """
    same = index.verbatim(stated)
    if same:
        shortest = min(same, key=lambda sentence: (len(index.quote(sentence)), index.quote(sentence)))
        return Coverage(Fraction(1), (shortest,), (1 << len(stated.words)) - 1, verbatim=True)
    if stated.hollow:
        return Coverage()
    scale = _Scale(stated.weights)
    chosen: dict[int, Sentence] = {}
    for number, mask in _masks(stated, index).items():
        sentence = index.sentences[number]
        if mask not in chosen or _before(index, sentence, chosen[mask]):
            chosen[mask] = sentence
    ranked = sorted(
        ((scale(mask), mask, sentence) for mask, sentence in chosen.items()), key=lambda it: (-it[0], it[1])
    )
    if not ranked:
        return Coverage()
    best: int = ranked[0][0]
    found: tuple[tuple[int, int, Sentence], ...] = (ranked[0],)
    for at, one in enumerate(ranked):
        if stated.few or 2 * one[0] <= best:
            break
        for other in ranked[at + 1 :]:
            if one[0] + other[0] <= best:
                break
            union = scale(one[1] | other[1])
            if union > best:
                best, found = union, (one, other)
    mask = 0
    for part in found:
        mask |= part[1]
    return Coverage(Fraction(best, stated.total), tuple(part[2] for part in found), mask)


def best_windows(stated: Statement, index: Index) -> dict[int, Coverage]:
    """Per passage that has any word of a statement: the two adjacent sentences that cover most of it."""
    best: dict[int, tuple[int, tuple[int, ...], int]] = {}
    scale = _Scale(stated.weights)
    masks = _masks(stated, index)
    for number, mask in masks.items():
        passage = index.sentences[number].passage
        candidates: list[tuple[tuple[int, ...], int]] = [((number,), mask)]
        if not stated.few:
            candidates += [
                ((min(number, other), max(number, other)), mask | masks[other])
                for other in (number - 1, number + 1)
                if other in masks and index.sentences[other].passage == passage
            ]
        for numbers, union in candidates:
            weight = scale(union)
            if passage not in best or weight > best[passage][0]:
                best[passage] = (weight, numbers, union)
    found = {
        passage: Coverage(Fraction(weight, stated.total), tuple(index.sentences[n] for n in numbers), mask)
        for passage, (weight, numbers, mask) in best.items()
    }
    full = (1 << len(stated.words)) - 1
    return found | {same.passage: Coverage(Fraction(1), (same,), full, True) for same in index.verbatim(stated)}


def supports(stated: Statement, coverage: Coverage, index: Index) -> bool:
    """Whether `coverage`, the best there is, is support: enough weight, and all that is `REQUIRED` in some passage."""
    if coverage.verbatim or coverage.share < SUPPORT:
        return coverage.verbatim
    return all(index.has(word) for word in stated.words if word.kind in REQUIRED)


def _signature(words: Sequence[Token]) -> tuple[str, ...]:
    return tuple(word.keys[0] for word in words)


def _masks(stated: Statement, index: Index) -> dict[int, int]:
    """Per number of a sentence that has any word of the statement: which ones, as bits."""
    masks: dict[int, int] = defaultdict(int)
    for bit, word in enumerate(stated.words):
        for key in word.keys:
            for number in index.places.get(key, ()):
                masks[number] |= 1 << bit
    return dict(masks)


def _before(index: Index, one: Sentence, other: Sentence) -> bool:
    """Whether `one` is the better excerpt of two that cover the same words: the shorter, whatever its passage."""
    a, b = index.quote(one), index.quote(other)
    return (len(a), a) < (len(b), b)


class _Scale:
    """Weighs a mask of words."""

    def __init__(self, weights: Sequence[int]) -> None:
        groups: dict[int, int] = defaultdict(int)
        for bit, weight in enumerate(weights):
            groups[weight] |= 1 << bit
        self._groups = tuple(groups.items())

    def __call__(self, mask: int) -> int:
        return sum(weight * (mask & group).bit_count() for weight, group in self._groups)
