"""The gate of a run that ended: its thresholds held against the run, its baseline and its anchor, and kept with it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragscore.counting import counted
from ragscore.errors import UsageError
from ragscore.gate.baselines import Baseline, find_baseline
from ragscore.gate.keeping import NoiseFloor, comparison_rows, noise_floors
from ragscore.gate.pairs import PairedRuns, ScorerComparison, clusters_of, metadata_of, pair_runs
from ragscore.gate.result import Check, GateResult, overall
from ragscore.gate.rule import Answer, Question, Verdict, answers
from ragscore.history import History, ItemScore, RunRow, item_scores, select, summaries
from ragscore.items import Status
from ragscore.scorers import mean, rounded
from ragscore.scorers.arithmetic import as_fraction

if TYPE_CHECKING:
    from ragscore.suite import GatePart, ScorerGatePart, Suite

#: Statuses that say that something failed.
ERRORS = frozenset({Status.TARGET_ERROR, Status.CONTEXT_ERROR, Status.JUDGE_ERROR, Status.SCORER_ERROR})


def evaluate_gate(history: History, run: RunRow, suite: Suite) -> GateResult:
    """Hold a run that ended against the gate of its suite, and keep the verdict and its numbers with the run.

    Where the run is not complete or its coverage is too low, everything is looked at all the same, but there is no
    verdict: whoever is missing may be the hard ones.

    Raises:
        HistoryError: the history cannot be read or written.
    """
    result, comparisons = _evaluated(history, run, suite)
    if suite.gate.asks:
        history.store_gate(run.run_id, result.verdict.value if result.verdict else None, result.as_dict())
        history.store_comparison(comparisons)
    return result


def _evaluated(history: History, run: RunRow, suite: Suite) -> tuple[GateResult, list[dict[str, Any]]]:
    gate = suite.gate
    if not gate.asks:
        return GateResult(run.run_id, None), []
    scores = item_scores(history, run.run_id, texts=False)
    metadata = metadata_of(history, run.run_id) if gate.slices else {}
    slices = _slices(gate, scores, metadata)
    notes = [
        f"slice {name} has fewer than {gate.slices.min_items} items and is not gated"
        for name, ids in slices.items()
        if gate.slices and len(ids) < gate.slices.min_items
    ]
    slices = {name: ids for name, ids in slices.items() if gate.slices and len(ids) >= gate.slices.min_items}
    checks = [*_means(suite, scores, slices), *_errors(gate, scores), *_latency(gate, history, run)]
    against, unpaired, said = _against(history, run, gate)
    checks += unpaired
    notes += said
    dropped, rows = _drops(history, run, suite, against, slices)
    checks += dropped
    notes += [
        f"{each.scorer}: {counted(len(each.one_sided), 'item')} scored on one side only: not compared with {found.said}"
        for found, paired in against.values()
        for each in paired.scorers
        if each.one_sided
    ]
    faults = _why_not_evaluated(history, run)
    named = {name: found.said for name, (found, _) in against.items()}
    return GateResult(
        run_id=run.run_id,
        # Nothing to check yet is a pass, said so: else no run could ever become the first baseline.
        verdict=None if faults else overall(checks) or Verdict.PASS,
        checks=checks,
        baseline=named.get("baseline"),
        anchor=named.get("anchor"),
        notes=[*(f"no verdict: {fault}" for fault in faults), *notes],
        on_inconclusive=gate.on_inconclusive,
    ), rows


def _why_not_evaluated(history: History, run: RunRow) -> list[str]:
    faults = [] if run.status == "complete" else [f"the run is {run.status}"]
    for each in summaries(history, run.run_id):
        if each.coverage is not None and each.coverage < run.min_coverage:
            faults.append(
                f"coverage of {each.scorer} is {each.coverage:.3g}, below {run.min_coverage:g}: the mean is over the"
                " survivors"
            )
    return faults


# --- thresholds on the run itself ---------------------------------------------------------------------------------


def _means(suite: Suite, scores: Sequence[ItemScore], slices: Mapping[str, set[str]]) -> list[Check]:
    checks = []
    for name, part in suite.gate.scorers.items():
        if part.min is not None:
            checks.append(_mean(name, part.min, scores))
    for place, ids in slices.items():
        for name, part in _slice_parts(suite.gate).items():
            if part.min is not None:
                checks.append(_mean(name, part.min, [s for s in scores if s.item_id in ids], place))
    return checks


def _mean(name: str, least: float, scores: Sequence[ItemScore], place: str | None = None) -> Check:
    # A scorer of the user's own may bring its scale along: the rows have it, the suite need not.
    scale = next((as_fraction(s.scale) for s in scores if s.scorer == name), Fraction(1))
    values = [s.exact for s in scores if s.scorer == name and s.exact is not None and s.counted]
    found = mean(values)
    numbers = {"mean": None if found is None else float(found * scale), "min": least, "n": len(values)}
    if found is None:
        return Check("mean", Verdict.INCONCLUSIVE, "nothing was scored", name, place, None, numbers, place is None)
    is_low = found * scale < as_fraction(least)
    said = f"mean {_shown(found, scale, least if is_low else None)} {'<' if is_low else '≥'} {least:g}"
    return Check("mean", Verdict.FAIL if is_low else Verdict.PASS, said, name, place, None, numbers, place is None)


def _shown(exact: Fraction, scale: Fraction, missed: float | None) -> str:
    # 0.7996 must not be shown as "0.80 < 0.8".
    shown = rounded(exact, scale)
    return f"{float(exact * scale):.6g}" if missed is not None and shown >= missed else f"{shown:.2f}"


def _errors(gate: GatePart, scores: Sequence[ItemScore]) -> list[Check]:
    if gate.max_error_rate is None:
        return []
    items = {s.item_id for s in scores}
    failed = {s.item_id for s in scores if s.status in ERRORS}
    if not items:
        return [Check("error_rate", Verdict.INCONCLUSIVE, "no item was written")]
    is_high = Fraction(len(failed), len(items)) > as_fraction(gate.max_error_rate)
    said = (
        f"{len(failed)} of {len(items)} items failed, {'more than' if is_high else 'at most'} {gate.max_error_rate:g}"
    )
    numbers = {"failed": len(failed), "n": len(items), "max": gate.max_error_rate}
    return [Check("error_rate", Verdict.FAIL if is_high else Verdict.PASS, said, numbers=numbers)]


def _latency(gate: GatePart, history: History, run: RunRow) -> list[Check]:
    if gate.latency_p95_ms is None:
        return []
    query = "SELECT quantile_cont(latency_ms, 0.95) FROM latest_items WHERE run_id = ?"
    ((found,),) = select(history.path, query, [run.run_id]).rows
    numbers = {"p95_ms": found, "max_ms": gate.latency_p95_ms}
    if found is None:
        return [Check("latency_p95_ms", Verdict.INCONCLUSIVE, "the target's latency is not known", numbers=numbers)]
    is_slow = found > gate.latency_p95_ms
    said = f"p95 {found:.0f} ms {'>' if is_slow else '≤'} {gate.latency_p95_ms:g} ms"
    return [Check("latency_p95_ms", Verdict.FAIL if is_slow else Verdict.PASS, said, numbers=numbers)]


# --- drops against baseline and anchor ----------------------------------------------------------------------------

#: By `baseline` and `anchor`: the run, and the pairs with it.
_Against = Mapping[str, tuple[Baseline, PairedRuns]]


def _against(history: History, run: RunRow, gate: GatePart) -> tuple[_Against, list[Check], list[str]]:
    parts = [*gate.scorers.values(), *_slice_parts(gate).values()]
    against: dict[str, tuple[Baseline, PairedRuns]] = {}
    checks: list[Check] = []
    notes: list[str] = []
    if all(part.max_drop is None for part in parts):
        return against, checks, notes
    for name, ref in (("baseline", gate.baseline), ("anchor", gate.anchor)):
        if ref is None:
            continue
        try:
            found = find_baseline(
                ref,
                history,
                suite=run.suite,
                retriever=run.retriever,
                base_dir=Path(run.base_dir) if run.base_dir else None,
                than=run,
            )
        except UsageError as error:  # it was there when the run began
            checks.append(Check("drop", Verdict.INCONCLUSIVE, error.what, against=name))
            continue
        if found is None:
            notes.append(f"there is no {name} yet ({ref}): drops are not checked")
            continue
        try:
            against[name] = found, pair_runs(history, found.run, run, before_in=found.history, facts=False)
        except UsageError as error:
            checks.append(
                Check("drop", Verdict.INCONCLUSIVE, error.what, against=name, numbers={"baseline": found.run.run_id})
            )
    return against, checks, notes


@dataclass(frozen=True, slots=True)
class _Asked:
    name: str  # baseline | anchor
    baseline: Baseline
    paired: ScorerComparison
    question: Question
    slice: str | None
    noise: NoiseFloor | None


def _drops(
    history: History, run: RunRow, suite: Suite, against: _Against, slices: Mapping[str, set[str]]
) -> tuple[list[Check], list[dict[str, Any]]]:
    floors = noise_floors(history, run)
    asked: list[_Asked] = []
    for name, (found, runs) in against.items():
        for paired in runs.scorers:
            floor = floors.get(paired.scorer)
            for place, ids, parts in [
                (None, None, suite.gate.scorers),
                *((place, ids, _slice_parts(suite.gate)) for place, ids in slices.items()),
            ]:
                part = parts.get(paired.scorer)
                if part is not None and part.max_drop is not None:
                    limit = as_fraction(part.max_drop) / as_fraction(paired.scale)
                    question = question_of(paired, limit=limit, floor=floor, only=ids)
                    asked.append(_Asked(name, found, paired, question, place, floor))
    checks: list[Check] = []
    by_comparison: dict[str, tuple[RunRow, list[tuple[ScorerComparison, Answer]]]] = {}
    for each, answer in zip(asked, answers([one.question for one in asked]), strict=True):
        checks.append(_drop_check(each, answer, each.paired.scale))
        if each.slice is None:
            by_comparison.setdefault(each.name, (each.baseline.run, []))[1].append((each.paired, answer))
    rows = [
        row
        for name, (before, found) in by_comparison.items()
        for row in comparison_rows(before, run, found, purpose=f"gate {name}")
    ]
    return checks, rows


def question_of(
    paired: ScorerComparison,
    *,
    limit: Fraction,
    floor: NoiseFloor | None = None,
    only: set[str] | None = None,
) -> Question:
    """What the rule is asked about one scorer.

    Args:
        paired: The pairs.
        limit: The drop that is tolerated, within 0 and 1; the judge's noise may raise it.
        floor: The judge's measured noise.
        only: The items of a slice; all when left out.
    """
    pairs = [pair for pair in paired.pairs if only is None or pair.after.item_id in only]
    if floor is not None and pairs:
        # Fewer items than the noise was measured on: their mean is noisier.
        limit = max(limit, as_fraction(floor.floor * math.sqrt(max(1.0, floor.n / len(pairs)))))
    return Question(
        before=[pair.before.exact for pair in pairs if pair.before.exact is not None],
        after=[pair.after.exact for pair in pairs if pair.after.exact is not None],
        limit=limit,
        clusters=clusters_of(pairs),
        less_is_better=paired.less_is_better,
    )


def _drop_check(asked: _Asked, answer: Answer, scale: float) -> Check:
    numbers = {
        **answer.as_dict(scale),
        "baseline": asked.baseline.run.run_id,
        "noise_floor": asked.noise.floor * scale if asked.noise else None,
    }
    return Check(
        "drop",
        answer.verdict,
        said_of(answer, scale),
        asked.paired.scorer,
        asked.slice,
        asked.name,
        numbers,
        asked.slice is None,
    )


def said_of(answer: Answer, scale: float) -> str:
    """An answer in one line: the change, its interval, p, and what could be seen here."""
    if answer.difference is None:
        return "no item is scored in both runs"
    parts = [f"{float(answer.difference) * scale:+.3f} over {answer.n} items"]
    if answer.interval is not None:
        parts.append(f"95% interval {answer.interval.low * scale:+.3f} to {answer.interval.high * scale:+.3f}")
    parts.append(f"p {answer.p_adjusted:.3g}, tolerated {float(answer.limit) * scale:.3g}")
    if answer.detectable is None:
        parts.append("too few items to detect any drop")
    else:
        parts.append(f"detectable {answer.detectable * scale:.3f}")
    if answer.needed is not None:
        parts.append(f"about {answer.needed} items would tell")
    return "; ".join(parts)


# --- slices -------------------------------------------------------------------------------------------------------


def _slices(
    gate: GatePart, scores: Sequence[ItemScore], metadata: Mapping[str, Mapping[str, Any]]
) -> dict[str, set[str]]:
    """The ids of the items of each slice, by its name (`lang=de`)."""
    slices: dict[str, set[str]] = {}
    if gate.slices is None:
        return slices
    keys = gate.slices.by.split(".")[1:]
    for item_id in dict.fromkeys(score.item_id for score in scores):
        value: Any = metadata.get(item_id, {})
        for key in keys:
            value = value.get(key) if isinstance(value, Mapping) else None
        slices.setdefault(f"{'.'.join(keys)}={'none' if value is None else value}", set()).add(item_id)
    return dict(sorted(slices.items()))


def _slice_parts(gate: GatePart) -> dict[str, ScorerGatePart]:
    return {**gate.scorers, **gate.slices.scorers} if gate.slices else {}
