"""Two runs, item by item: what is paired, what is left out and why, and what makes runs unlike.

Only items that both runs scored are compared, and only where input, reference and claims are the same: a mean over
whoever survived says nothing. What is left out is listed, never dropped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from ragscore.errors import UsageError
from ragscore.history import History, ItemFinding, ItemScore, RunRow, findings, item_scores, select
from ragscore.items import normalised
from ragscore.scorer_kinds import LESS_IS_BETTER, settings_of
from ragscore.scorers import mean

#: Runs that share less than this of the smaller one's items are not compared unless forced.
SHARED = Fraction(1, 2)


@dataclass(frozen=True, slots=True)
class Move:
    """A useful context that changed its place: ranks are None where it was not retrieved, or was not useful."""

    text: str
    before: int | None
    after: int | None


@dataclass(frozen=True, slots=True)
class Pair:
    """One item under one scorer in both runs.

    `lost` and `won` are claims that are supported on one side only, `moves` useful contexts with another rank.
    `metadata` is the item's, as of the later run.
    """

    before: ItemScore
    after: ItemScore
    change: Fraction
    lost: Sequence[str] = ()
    won: Sequence[str] = ()
    moves: Sequence[Move] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ScorerComparison:
    """One scorer in both runs; means and pairs are over the items scored on both sides.

    Attributes:
        pairs: Every item that both runs scored, in the order of the dataset.
        before, after: Means of `exact` over the pairs; None when there are none.
        one_sided: Items in both runs that only one of them scored.
        changed: Items whose input, reference or claims differ; they are not compared.
        came, went: Items that only the later run, only the earlier run has.
        shared: How many items are the same in both, scored or not.
    """

    scorer: str
    scale: float
    pairs: Sequence[Pair]
    before: Fraction | None
    after: Fraction | None
    one_sided: Sequence[str]
    changed: Sequence[str]
    came: Sequence[str] = ()
    went: Sequence[str] = ()
    shared: int = 0

    @property
    def less_is_better(self) -> bool:
        """Whether a rise is worse."""
        return any(pair.after.kind in LESS_IS_BETTER for pair in self.pairs[:1])

    @property
    def worse(self) -> list[Pair]:
        """The items that got worse, the largest change first."""
        return self._changed(1 if self.less_is_better else -1)

    @property
    def better(self) -> list[Pair]:
        """The items that got better, the largest change first."""
        return self._changed(-1 if self.less_is_better else 1)

    def _changed(self, way: int) -> list[Pair]:
        return sorted((pair for pair in self.pairs if pair.change * way > 0), key=lambda pair: -abs(pair.change))


@dataclass(frozen=True, slots=True)
class PairedRuns:
    """Run `after` against run `before`; `unlike` says why a difference may say nothing about the retriever."""

    before: RunRow
    after: RunRow
    scorers: Sequence[ScorerComparison]
    unlike: Sequence[str] = ()


def pair_runs(
    history: History,
    before: RunRow,
    after: RunRow,
    *,
    before_in: History | None = None,
    force: bool = False,
    facts: bool = True,
) -> PairedRuns:
    """Pair the items of two runs.

    Args:
        history: Where the runs are.
        before: The earlier run, or the baseline.
        after: The later run.
        before_in: Where `before` is, if that is another history.
        force: Pair runs that are unlike all the same.
        facts: Whether it is asked which claims and contexts changed, and what the scores say in words. A gate needs
            the figures alone, and a large run takes a fraction of the memory then.

    Raises:
        UsageError: the runs were judged or scored differently, so that a difference would say nothing about the
            retriever; they share too few items; or they have no scorer in common.
    """
    theirs = before_in or history
    names = [
        str(scorer["name"])
        for scorer in after.scorers
        if any(str(scorer["name"]) == str(other["name"]) for other in before.scorers)
    ]
    if not names:
        raise UsageError(
            "the runs cannot be compared: they have no scorer in common", mend="name their scorers alike in the suite"
        )
    old = item_scores(theirs, before.run_id, texts=facts)
    new = item_scores(history, after.run_id, texts=facts)
    unlike = _Unlike()
    unlike.note("treatment of repeated contexts", before.duplicates, after.duplicates)
    for name in names:
        unlike.note_settings(name, *(_declared(run, name) for run in (before, after)))
    found_before = _found(theirs, before.run_id) if facts else {}
    found_after = _found(history, after.run_id) if facts else {}
    metadata = metadata_of(history, after.run_id)
    paired = [
        _paired(
            name,
            {score.item_id: score for score in old if score.scorer == name},
            {score.item_id: score for score in new if score.scorer == name},
            found_before,
            found_after,
            metadata,
            unlike,
        )
        for name in names
    ]
    if not unlike.reasons:  # unlike judges find unlike claims: the first reason is enough
        for each in paired:
            shared = each.shared
            smaller = shared + len(each.changed) + min(len(each.came), len(each.went))
            if shared < SHARED * smaller:
                unlike.reasons[f"they share {shared} of {smaller} items"] = None
    if unlike.reasons and not force:
        raise UsageError(
            f"the runs cannot be compared: {'; '.join(unlike.reasons)}",
            mend="judge both runs the same way, or compare them all the same with --force",
        )
    return PairedRuns(before, after, paired, list(unlike.reasons))


def metadata_of(history: History, run_id: str) -> dict[str, dict[str, Any]]:
    """The metadata of the items of a run."""
    import json

    rows = select(history.path, "SELECT item_id, metadata::VARCHAR FROM latest_items WHERE run_id = ?", [run_id]).rows
    return {str(item_id): json.loads(stored) if stored else {} for item_id, stored in rows}


def clusters_of(pairs: Sequence[Pair]) -> list[object] | None:
    """What items share (`cluster` in their metadata), as `ragscore.stats` takes it; None when none share anything."""
    named = [pair.metadata.get("cluster") for pair in pairs]
    if all(name is None for name in named):
        return None
    return [("item", at) if name is None else ("cluster", str(name)) for at, name in enumerate(named)]


class _Unlike:
    """Collects in what the runs differ, each once."""

    def __init__(self) -> None:
        self.reasons: dict[str, None] = {}

    def note(self, what: str, was: str | None, now: str | None) -> None:
        if was and now and was != now:
            self.reasons[f"their {what} differs ({was}, {now})"] = None

    def note_settings(self, name: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
        # Of two kinds the scores tell; what a context is held against, they tell, too.
        if old.get("kind") == new.get("kind"):
            self.note(f"way of counting {name}", settings_of(old), settings_of(new))

    def note_scores(self, old: ItemScore, new: ItemScore) -> None:
        self.note(f"kind of scorer called {new.scorer}", old.kind, new.kind)
        self.note("judge", old.judge, new.judge)
        if old.judge == new.judge:
            if "{}" not in (old.judge_params, new.judge_params):
                self.note("judge's parameters", old.judge_params, new.judge_params)
            self.note("judge's prompt", old.prompt_version, new.prompt_version)
        self.note("scorer version", old.scorer_version, new.scorer_version)


def _declared(run: RunRow, name: str) -> Mapping[str, Any]:
    return next(scorer for scorer in run.scorers if str(scorer["name"]) == name)


#: Findings by (item, scorer).
_Found = Mapping[tuple[str, str], Sequence[ItemFinding]]


def _paired(
    name: str,
    before: Mapping[str, ItemScore],
    after: Mapping[str, ItemScore],
    found_before: _Found,
    found_after: _Found,
    metadata: Mapping[str, Mapping[str, Any]],
    unlike: _Unlike,
) -> ScorerComparison:
    pairs, one_sided, changed = [], [], []
    for item_id, new in after.items():
        old = before.get(item_id)
        if old is None:
            continue
        unlike.note_scores(old, new)
        if old.item_hash != new.item_hash or _claims_differ(old, new):
            changed.append(item_id)
            continue
        if old.exact is None or new.exact is None or not (old.counted and new.counted):
            if old.exact is not None or new.exact is not None:
                one_sided.append(item_id)
            continue
        unlike.note(f"expected answer of {name}", old.against, new.against)
        was, now = found_before.get((item_id, name), ()), found_after.get((item_id, name), ())
        claims_was, claims_now = _claims(was), _claims(now)
        pairs.append(
            Pair(
                old,
                new,
                new.exact - old.exact,
                lost=[claim for claim, supported in claims_was.items() if supported and not claims_now.get(claim)],
                won=[claim for claim, supported in claims_now.items() if supported and not claims_was.get(claim)],
                moves=_moves(was, now),
                metadata=metadata.get(item_id, {}),
            )
        )
    return ScorerComparison(
        name,
        next((score.scale for score in [*after.values(), *before.values()]), 1.0),
        pairs,
        mean([pair.before.exact for pair in pairs if pair.before.exact is not None]),
        mean([pair.after.exact for pair in pairs if pair.after.exact is not None]),
        one_sided,
        changed,
        came=[item_id for item_id in after if item_id not in before],
        went=[item_id for item_id in before if item_id not in after],
        shared=sum(item_id in before for item_id in after) - len(changed),
    )


def _claims_differ(old: ItemScore, new: ItemScore) -> bool:
    # A side without contexts never needed its claims; that alone is no change of the dataset.
    return old.claim_set is not None and new.claim_set is not None and old.claim_set != new.claim_set


def _found(history: History, run_id: str) -> dict[tuple[str, str], list[ItemFinding]]:
    found: dict[tuple[str, str], list[ItemFinding]] = {}
    for each in findings(history, run_id):
        found.setdefault((each.item_id, each.scorer), []).append(each)
    return found


def _claims(found: Sequence[ItemFinding]) -> dict[str, bool]:
    return {each.finding.text: bool(each.finding.positive) for each in found if each.finding.kind == "claim"}


def _moves(was: Sequence[ItemFinding], now: Sequence[ItemFinding]) -> list[Move]:
    before, after = _ranks(was), _ranks(now)
    moves = []
    for key in dict.fromkeys([*before, *after]):
        (rank_before, text), (rank_after, _) = before.get(key, (None, "")), after.get(key, (None, ""))
        if rank_before != rank_after:
            moves.append(Move(text or after[key][1], rank_before, rank_after))
    return moves


def _ranks(found: Sequence[ItemFinding]) -> dict[str, tuple[int | None, str]]:
    """By normalised text the first rank of each useful context."""
    ranks: dict[str, tuple[int | None, str]] = {}
    for each in found:
        if each.finding.kind == "context" and each.finding.positive:
            ranks.setdefault(normalised(each.finding.text), (each.finding.rank, each.finding.text))
    return ranks
