"""A documentation assistant over `ragscore.demo.corpus`: its retriever in two versions, both real BM25 (bm25s).

`v1` looks at text as a reader of code does. `v2` is what a hurried rewrite makes of it: a "cleaner" analyser that
keeps nothing but long runs of letters, and fewer results to save prompt tokens. Nothing crashes, no test of the
plumbing fails, and facts go missing: the kind of fault that an evaluation is for.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Sequence
from typing import Any

from ragscore.demo.corpus import Chunk, chunks

#: How many chunks a question brings back.
K_V1 = 5
K_V2 = 3

_STOP_WORDS = """
    a an and are as at be been but by can could did do does for from had has have how i if in into is it its may my no
    not of on or other s so such t than that the their them then there these they this those to was were what when
    where which while who why will with would you your
"""
_STOPPED = frozenset(_STOP_WORDS.split())

_CODE = re.compile(r"`([^`]+)`|\"([^\"\n]{1,60})\"")
_WORD = re.compile(r"\w+")
_LONG_WORD = re.compile(r"[a-z]{5,}")


def retrieve_v1(question: str) -> list[dict[str, Any]]:
    """The five best chunks for `question` in rank order, as `{"id", "text", "score"}`; fewer where fewer match."""
    return _V1.search(question)


def retrieve_v2(question: str) -> list[dict[str, Any]]:
    """As `retrieve_v1`, with the fault: three chunks, found by long words only."""
    return _V2.search(question)


def analyse_v1(text: str) -> list[str]:
    """Lower-case, lightly stemmed words and identifiers, without stop-words.

    `with`, `for`, `is` and their like are stop-words in prose and the very topic in code, so that what stands in
    quotes or backticks is kept. An identifier counts as itself and by its parts (`__set_name__`, `set`, `name`).
    """
    tokens = [f"`{word}" for match in _CODE.finditer(text.lower()) for word in _WORD.findall(match[1] or match[2])]
    for word in _WORD.findall(text.lower()):
        parts = [part for part in word.split("_") if part]
        if parts != [word]:
            tokens.append(word)
        tokens.extend(_stem(part) for part in parts if part not in _STOPPED)
    return tokens


def analyse_v2(text: str) -> list[str]:
    """The fault: only runs of five letters and more. Short words, digits and underscores are gone, stop-words stay."""
    return _LONG_WORD.findall(text.lower())


def _stem(word: str) -> str:
    for ending, least in (("ing", 6), ("ies", 6), ("ed", 5), ("es", 6), ("s", 4), ("e", 5)):
        if word.endswith(ending) and len(word) >= least and not word.endswith("ss"):
            return word[: -len(ending)]
    return word


class Retriever:
    """A BM25 index over the corpus, built at the first question; safe to ask from several threads.

    Args:
        analyse: Turns a text, chunk or question, into tokens.
        k: How many hits a question gets at most.
    """

    def __init__(self, analyse: Callable[[str], list[str]], k: int) -> None:
        self._analyse = analyse
        self._k = k
        self._lock = threading.Lock()
        self._index: tuple[Any, Sequence[Chunk]] | None = None

    def search(self, question: str) -> list[dict[str, Any]]:
        """The best hits for `question` in rank order, as `{"id", "text", "score"}`; chunks without a match are none."""
        index, corpus = self._built()
        tokens = self._analyse(question)
        scores = index.get_scores(tokens).tolist() if tokens else [0.0] * len(corpus)
        # Equal scores are ordered by id: the order of a heap or of a partial sort would differ between machines.
        ranked = sorted(zip(scores, corpus, strict=True), key=lambda pair: (-pair[0], pair[1].id))
        return [{"id": c.id, "text": c.text, "score": round(score, 4)} for score, c in ranked[: self._k] if score > 0]

    def _built(self) -> tuple[Any, Sequence[Chunk]]:
        with self._lock:
            if self._index is None:
                # Imported here: `import ragscore.demo` must not cost what numpy costs.
                import bm25s

                # It sets its own logger to DEBUG at import, which any configured root handler then prints.
                logging.getLogger("bm25s").setLevel(logging.WARNING)
                corpus = chunks()
                index = bm25s.BM25(k1=1.2, b=0.75)
                index.index([self._analyse(chunk.text) for chunk in corpus], show_progress=False)
                self._index = (index, corpus)
            return self._index


_V1 = Retriever(analyse_v1, K_V1)
_V2 = Retriever(analyse_v2, K_V2)
