"""What a comparison says in one sentence, for people who do not read statistics."""

from __future__ import annotations

from fractions import Fraction

from ragscore.counting import counted
from ragscore.gate import Answer, ScorerComparison, Verdict
from ragscore.scorers import rounded
from ragscore.scorers.arithmetic import as_fraction


def in_words(each: ScorerComparison, answer: Answer, before: str, after: str) -> str:
    """One scorer of two runs in a sentence or two.

    Args:
        each: The pairs.
        answer: What the rule of the gate says about them.
        before, after: How the runs are called.
    """
    name = readable(each.scorer)
    if each.before is None or each.after is None or answer.difference is None:
        return f"No question is scored in both runs, so that nothing can be said about {name}."
    scale = as_fraction(each.scale)
    was, now = f"{rounded(each.before, scale):.2f}", f"{rounded(each.after, scale):.2f}"
    gain = -answer.difference if each.less_is_better else answer.difference
    way = "stayed at" if was == now else "rose from" if answer.difference > 0 else "fell from"
    values = was if was == now else f"{was} to {now}"
    moved = f"{counted(len(each.worse), 'question')} got worse and {len(each.better)} better"
    said = f"From {before} to {after}, {name} {way} {values} over {counted(answer.n, 'question')}: {moved}. "
    return said + _chance(each, answer, gain)


def readable(scorer: str) -> str:
    """`context_recall` as it is read: context recall."""
    return scorer.replace("_", " ")


def _chance(each: ScorerComparison, answer: Answer, gain: Fraction) -> str:
    limit = float(answer.limit) * each.scale
    tolerated = f"the tolerated {limit:.3g}" if limit else "no change"
    if answer.verdict is Verdict.FAIL:
        return "Chance hardly explains this: it is worse" + (f" by more than {tolerated}." if limit else ".")
    span = answer.interval
    better = span is not None and (span.high < 0 if each.less_is_better else span.low > 0)
    if better:
        return "Chance hardly explains this: it is better."
    if answer.verdict is Verdict.PASS:
        return (
            "Nothing changed."
            if not gain and span is not None and span.low == span.high
            else (f"A loss of more than {tolerated} is unlikely." if limit else "No loss is to be seen.")
        )
    told = "That may be chance: there are too few questions to tell" if gain < 0 else "Whether there is a loss is open"
    if answer.detectable is not None:
        told += f"; a loss of {answer.detectable * each.scale:.2f} or more would have shown"
    return told + (f"; about {answer.needed} questions would tell." if answer.needed is not None else ".")
