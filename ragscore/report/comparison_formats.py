"""A comparison as Markdown, for a comment on a pull request, and as JUnit XML, for CI servers."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from fractions import Fraction

from ragscore.gate import Answer, Move, Pair, ScorerComparison, Verdict, said_of
from ragscore.report.comparison import Comparison
from ragscore.scorers import rounded
from ragscore.scorers.arithmetic import as_fraction
from ragscore.scorers.reasons import shortened

SIGNS = {Verdict.PASS: "✅ pass", Verdict.FAIL: "❌ fail", Verdict.INCONCLUSIVE: "❔ inconclusive"}
#: How many items of each kind are told at most.
MOST = 10
_MARKED = re.compile(r"([\\`*_{}\[\]<>#|~!@])")
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def as_markdown(comparison: Comparison) -> str:
    """The comparison as GitHub-flavoured Markdown. Text from outside is escaped: it cannot mark up or notify."""
    before, after = comparison.before, comparison.after
    lines = [
        f"### {_escaped(after.suite)}: {_escaped(before.version or '')} → {_escaped(after.version or '')}",
        "",
        f"{_escaped(after.retriever or '')}, item by item; judge: {_escaped(after.judge)}",
        "",
    ]
    for reason in comparison.not_whole:
        lines += [f"> ⚠️ {_escaped(reason)}", ""]
    for reason in comparison.unlike:
        lines += [f"> ⚠️ compared by force: {_escaped(reason)}", ""]
    lines += [
        "| scorer | verdict | items | before | after | change | 95% interval | p | detectable drop |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    lines += [_markdown_row(each, comparison.answers[each.scorer]) for each in comparison.scorers]
    for each in comparison.scorers:
        for word, pairs in (("worse", each.worse), ("better", each.better)):
            if pairs:
                lines += ["", f"<details><summary>{_escaped(each.scorer)}: {word} in {len(pairs)}</summary>", ""]
                for pair in pairs[:MOST]:
                    lines += _markdown_pair(pair, each)
                if len(pairs) > MOST:
                    lines.append(f"- … and {len(pairs) - MOST} more")
                lines += ["", "</details>"]
        left = left_out(each)
        if left:
            lines += ["", f"{_escaped(each.scorer)}: {_escaped('; '.join(left))}"]
    return "\n".join(lines) + "\n"


def as_junit(comparison: Comparison) -> str:
    """The comparison as JUnit XML: one test case per scorer; inconclusive ones are skipped, with the reason."""
    name = f"ragscore {comparison.after.suite}"
    found = [comparison.answers[each.scorer] for each in comparison.scorers]
    suite = ET.Element(
        "testsuite",
        name=_plain(name),
        tests=str(len(found)),
        failures=str(sum(answer.verdict is Verdict.FAIL for answer in found)),
        errors="0",
        skipped=str(sum(answer.verdict is Verdict.INCONCLUSIVE for answer in found)),
    )
    title = f"{comparison.before.version} → {comparison.after.version}"
    for each, answer in zip(comparison.scorers, found, strict=True):
        case = ET.SubElement(suite, "testcase", classname=_plain(name), name=_plain(f"{each.scorer} {title}"))
        said = said_of(answer, each.scale)
        if answer.verdict is Verdict.FAIL:
            ET.SubElement(case, "failure", message=_plain(said)).text = _plain(_worst(each))
        elif answer.verdict is Verdict.INCONCLUSIVE:
            ET.SubElement(case, "skipped", message=_plain(f"inconclusive: {said}"))
        ET.SubElement(case, "system-out").text = _plain(
            "\n".join([said, *comparison.not_whole, *comparison.unlike, *left_out(each)])
        )
    ET.indent(suite)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(suite, encoding="unicode") + "\n"


def left_out(each: ScorerComparison) -> list[str]:
    """What is not compared and why, in words; ids of at most five items each."""
    kinds = (
        ("scored on one side only", each.one_sided),
        ("changed since, not compared", each.changed),
        ("new, not compared", each.came),
        ("gone, not compared", each.went),
    )
    return [
        f"{word}: {', '.join(ids[:5])}" + (f" and {len(ids) - 5} more" if len(ids) > 5 else "")
        for word, ids in kinds
        if ids
    ]


def moved(move: Move) -> str:
    """A move in words: `#1 → #3`, `#2 → gone`, `new at #1`, without the text."""
    if move.before is None:
        return f"new at #{move.after}"
    return f"#{move.before} → {'gone' if move.after is None else f'#{move.after}'}"


def _markdown_row(each: ScorerComparison, answer: Answer) -> str:
    scale = each.scale
    interval = (
        f"{answer.interval.low * scale:+.3f} … {answer.interval.high * scale:+.3f}" if answer.interval else "unknown"
    )
    cells = [
        _escaped(each.scorer),
        SIGNS[answer.verdict],
        str(answer.n),
        _score(answer.mean_before, scale),
        _score(answer.mean_after, scale),
        "–" if answer.difference is None else f"{float(answer.difference) * scale:+.3f}",
        interval,
        "–" if answer.p_adjusted is None else f"{answer.p_adjusted:.3g}",
        "none" if answer.detectable is None else f"{answer.detectable * scale:.3f}",
    ]
    return "| " + " | ".join(cells) + " |"


def _markdown_pair(pair: Pair, each: ScorerComparison) -> list[str]:
    change = f"{_score(pair.before.exact, each.scale)} → {_score(pair.after.exact, each.scale)}"
    asked = _escaped(shortened(pair.after.input or "", 120))
    lines = [f"- **{_escaped(pair.after.item_id)}** {change} {asked}".rstrip()]
    lines += [f"  - lost: {_escaped(shortened(claim, 300))}" for claim in pair.lost]
    lines += [f"  - won: {_escaped(shortened(claim, 300))}" for claim in pair.won]
    if not pair.lost and not pair.won:
        lines += [f"  - {moved(move)}: {_escaped(shortened(move.text, 120))}" for move in pair.moves]
    return lines


def _worst(each: ScorerComparison) -> str:
    lines = []
    for pair in each.worse[:MOST]:
        change = f"{_score(pair.before.exact, each.scale)} -> {_score(pair.after.exact, each.scale)}"
        lines.append(f"{pair.after.item_id}: {change}")
        lines += [f"  lost: {claim}" for claim in pair.lost]
    return "\n".join(lines)


def _score(exact: Fraction | None, scale: float) -> str:
    return "–" if exact is None else f"{rounded(exact, as_fraction(scale)):.2f}"


def _escaped(text: str) -> str:
    return _MARKED.sub(r"\\\1", " ".join(_plain(text).split())).replace("\\@", "@\u200b").replace("\\<", "&lt;")


def _plain(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)
