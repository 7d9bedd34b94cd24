"""Whether the quote that is to support a claim stands in the contexts, and has to do with the claim at all."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ragscore.items import Evidence, Judgement, Verdict
from ragscore.judges.llm.replies import ClaimRow
from ragscore.judges.memory import VersionedJudge
from ragscore.judges.offline.words import tokens
from ragscore.judges.tasks import AttributeClaims, Passage, RateStatements, Task

#: Warnings of a verdict.
NO_QUOTE = "no quote supports this"
NOT_FOUND = "the quote stands in no context"
UNRELATED = "the quote shares no word with the claim"
DEMOTED = "counted as not supported: no verified quote"

#: Characters that models change when they copy: all dashes are one, all quotation marks are one.
_ONE_SPELLING = str.maketrans(
    {
        **dict.fromkeys("‐‑‒–—―−", "-"),
        **dict.fromkeys("“”„‟«»「」『』", '"'),
        **dict.fromkeys("‘’‚‛`´", "'"),
        "*": None,
        "\u00ad": None,
        "\u200b": None,
    }
)
_ELLIPSIS = re.compile(r"\s*(?:\[\s*)?(?:\.{3,}|…)(?:\s*\])?\s*")
_ENDS = " \t\n\"'.,;:!?。，、；：！？"
#: Least characters between two ellipses; less could be found anywhere.
_LEAST = 4


def comparable(text: str) -> str:
    """`text` as quotes are compared: NFKC, case and white space folded, one spelling of dashes and quotation marks."""
    if text.isascii():  # most text; the rest of this is a tenth of the work of judging
        return " ".join(text.translate(_ONE_SPELLING).lower().split())
    # "…" becomes "..." by NFKC, and some signs only after case folding: both twice is stable.
    folded = unicodedata.normalize("NFKC", text.translate(_ONE_SPELLING)).casefold()
    return " ".join(unicodedata.normalize("NFKC", folded).translate(_ONE_SPELLING).split())


def stands_in(quote: str, text: str) -> bool:
    """Whether `quote` is an excerpt of `text`; both as `comparable` gives them.

    Quotation marks and punctuation around the quote may differ; an ellipsis in it stands for anything, its parts must
    follow one another in order.
    """
    parts = [part.strip(_ENDS) for part in _ELLIPSIS.split(quote)]
    parts = [part for part in parts if part]
    if not parts or (len(parts) > 1 and any(len(part) < _LEAST for part in parts)):
        return False
    at = 0
    for part in parts:
        at = text.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return True


def shares(quote: str, claim: str) -> bool:
    """Whether quote and claim have a content word, number or (in scripts without spaces) pair of characters in common.

    True, too, where that cannot be told: a claim without any content word, or texts of different scripts.
    """
    wanted, there = _keys(claim), _keys(quote, found_by=True)
    if not wanted or wanted & there:
        return True
    return bool(there) and not (_scripts(wanted) & _scripts(there))


@dataclass(frozen=True, slots=True)
class Checked:
    """The evidence of one verdict with every quote looked up, and what is to be said about it."""

    evidence: tuple[Evidence, ...]
    warnings: tuple[str, ...]


class Quotes:
    """Looks up quotes in a list of passages; the passages are folded once."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        texts: dict[str, list[str]] = {}
        for passage in passages:
            texts.setdefault(passage.id, []).append(comparable(passage.text))
        self._texts = texts
        self._ids = {id.casefold(): id for id in texts}

    def checked(self, row: ClaimRow, claim: str) -> Checked:
        """The evidence for a claim that was said to be supported.

        A quote that stands in another passage than the one named is counted where it stands; one that was put together
        from several passages, with ellipses between, is taken apart. A quote that stands nowhere keeps the passage that
        was named, and is not verified.
        """
        if not row.quote.strip():
            return Checked((), (NO_QUOTE,))
        known = self.known(row.contexts)
        excerpts = [row.quote]
        places = [self._place(row.quote, known)]
        parts = [part for part in _ELLIPSIS.split(row.quote) if part.strip(_ENDS)]
        if places == [None] and len(parts) > 1 and all(len(part.strip(_ENDS)) >= _LEAST for part in parts):
            excerpts, places = parts, [self._place(part, known) for part in parts]
        found = None not in places
        related = found and shares(row.quote, claim)
        nowhere = known[0] if known else (row.contexts[0] if row.contexts else "")
        evidence = {
            (place or nowhere, excerpt): Evidence(place or nowhere, excerpt, verified=place is not None and related)
            for place, excerpt in zip(places, excerpts, strict=True)
        }
        warnings = () if related else (UNRELATED if found else NOT_FOUND,)
        return Checked(tuple(evidence.values()), warnings)

    def known(self, named: Iterable[str]) -> list[str]:
        """Of the ids that a reply names, those that were given out, each once."""
        ids = (self._ids.get(re.sub(r"^context ", "", id.strip(" []()<>\"'").casefold())) for id in named)
        return [id for id in dict.fromkeys(ids) if id is not None]

    def _place(self, quote: str, named: Sequence[str]) -> str | None:
        looked_up = comparable(quote)
        order = dict.fromkeys((*named, *self._texts))
        return next((id for id in order if any(stands_in(looked_up, text) for text in self._texts[id])), None)


class _Outside:
    """A judge around another one and around its memory: what was judged stays as it was judged."""

    def __init__(self, inner: VersionedJudge) -> None:
        self._inner = inner

    @property
    def name(self) -> str:
        """The name of the inner judge."""
        return self._inner.name

    @property
    def identity(self) -> str:
        """The identity of the inner judge."""
        return self._inner.identity

    async def prepare(self) -> None:
        """Make the inner judge ready."""
        await self._inner.prepare()

    def prompt_version(self, task: Task) -> str:
        """The inner judge's version of its prompt for `task`."""
        return self._inner.prompt_version(task)

    async def ask(self, task: Task) -> Judgement:
        """The inner judgement, its verdicts on claims read as the option says."""
        judgement = await self._inner.ask(task)
        if not isinstance(task, AttributeClaims) or isinstance(task, RateStatements):  # those have no passages to quote
            return judgement
        return replace(
            judgement, judge=self.name, verdicts=tuple(self._read(verdict) for verdict in judgement.verdicts)
        )

    def _read(self, verdict: Verdict) -> Verdict:
        raise NotImplementedError


class RequireEvidence(_Outside):
    """Counts a claim as supported only where a verified quote supports it (`evidence: require`)."""

    @property
    def name(self) -> str:
        """Another name than that of the inner judge, since its verdicts may differ."""
        return f"{self._inner.name}+evidence"

    def _read(self, verdict: Verdict) -> Verdict:
        if not verdict.positive or any(evidence.verified for evidence in verdict.evidence):
            return verdict
        return replace(verdict, positive=False, warnings=(*verdict.warnings, DEMOTED))


class UncheckedEvidence(_Outside):
    """Says nothing about quotes (`evidence: off`); whether they are verified stays in the record."""

    def _read(self, verdict: Verdict) -> Verdict:
        about_quotes = {NO_QUOTE, NOT_FOUND, UNRELATED}
        return replace(verdict, warnings=tuple(said for said in verdict.warnings if said not in about_quotes))


def with_evidence_policy(judge: VersionedJudge, policy: Literal["flag", "require", "off"]) -> VersionedJudge:
    """`judge` as the suite's option `evidence` wants it; `flag` is what a judge does by itself."""
    if policy == "require":
        return RequireEvidence(judge)
    return UncheckedEvidence(judge) if policy == "off" else judge


def _keys(text: str, *, found_by: bool = False) -> frozenset[str]:
    """What the content words of `text` ask for; with `found_by` also what else they can be found by."""
    content = [token for token in tokens(text) if token.kind != "stop"]
    return frozenset(key for token in content for key in (*token.keys, *(token.extra if found_by else ())))


def _scripts(keys: Iterable[str]) -> frozenset[str]:
    """The scripts of the letters in `keys`, by the first word of their Unicode names (LATIN, CYRILLIC, CJK …)."""
    return frozenset(
        unicodedata.name(letter, "?").partition(" ")[0] for key in keys for letter in key if letter.isalpha()
    )
