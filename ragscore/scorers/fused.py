"""One question, many scores: what `fused: true` asks, and how the parts of the answer are read.

`MapClaims` asks which contexts state which claims of the reference; recall and precision need no more. `CrossClaims`
also holds the sentences of the output against the contexts, and reference and output against each other; utilisation
and noise sensitivity are counted from that. Statements of the output are its sentences here, found by rules: were they
extracted by the judge, their number would not be known before the reply, and a reply that leaves some out could not be
told from a complete one.

A context is relevant when it states a claim of the reference, or a part of one that the contexts together support.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from ragscore.items import Judgement, Status, Verdict
from ragscore.judges.offline import sentences
from ragscore.judges.tasks import ELSEWHERE, AttributeClaims, Claim, CrossClaims, MapClaims, Passage
from ragscore.scorers.attribution import Inquiry, numbered
from ragscore.scorers.outcome import by_id
from ragscore.scorers.protocol import Sample
from ragscore.scorers.reasons import shortened

#: False: each scorer asks its own questions; True: claims × contexts once; `answer`: the output in the same question.
Fused = bool | Literal["answer"]


def version_of(version: str, fused: Fused) -> str:
    """The version of a scorer that asks all at once: `1-fused`, `1-fused-answer` with the output, `version` if not.

    Another question is another scorer, whatever a judge says of its own version.
    """
    if not fused:
        return version
    return f"{version}-fused-answer" if fused == "answer" else f"{version}-fused"


def attribution(sample: Sample, claims: Sequence[str], passages: Sequence[Passage], *, fused: Fused) -> AttributeClaims:
    """The question about the reference's claims and the contexts, as all scorers of one item ask it.

    Args:
        sample: What is scored; an output that is missing or blank is asked about as an empty one, without statements.
        claims: The claims of the reference.
        passages: The contexts.
        fused: What is to be asked at once.
    """
    stated = numbered(claims)
    question = sample.item.input
    if not fused:
        return AttributeClaims(question, stated, tuple(passages))
    output, reference = sample.output or "", sample.item.reference or ""
    if fused is True:
        return MapClaims(question, stated, tuple(passages))
    # Without an output the question stays the same, so that the item is compared with its runs that have one.
    said = statements(output) if reference.strip() else ()
    output = output if output.strip() else ""
    return CrossClaims(question, (*stated, *said), tuple(passages), reference=reference, output=output)


def statements(output: str) -> tuple[Claim, ...]:
    """The sentences of an output, with the ids o1, o2, … that verdicts echo."""
    return tuple(Claim(f"o{number}", text) for number, text in enumerate(sentences.claims(output), start=1))


def about(judgement: Judgement, claims: Sequence[Claim]) -> Judgement:
    """The part of a judgement that is about `claims`; it stands where each of them is decided, whatever others lack."""
    verdicts = by_id(judgement)
    own = tuple(verdicts[claim.id] for claim in claims if claim.id in verdicts)
    if judgement.status is Status.JUDGE_ERROR and own and len(own) == len(claims):
        return replace(judgement, status=Status.OK, verdicts=own, error=None, raw=None)
    return replace(judgement, verdicts=own)


async def crossed(inquiry: Inquiry, claims: Sequence[str], *, of: Literal["reference", "output"]) -> None:
    """Ask all at once, and keep the part on the claims of one side: `found` in the contexts, and `other`.

    Both have the ids c1, c2, …; what they cost stands with `found`.

    Raises:
        Stopped: there is no statement to judge, or the answer did not come.
    """
    task = attribution(inquiry.sample, claims, inquiry.passages.passages, fused="answer")
    own = tuple(claim for claim in task.claims if claim.id.startswith("o" if of == "output" else "c"))
    if of == "output":
        inquiry.output_claims = tuple(claim.text for claim in own)
    if not own:
        raise inquiry.stop(Status.NO_CLAIMS, f"the {of} states no claim")
    found = about(await inquiry.ask.ask(task), own)
    verdicts = by_id(found)
    missing = [claim.id for claim in own if claim.id not in verdicts]
    told = [replace(verdicts[c.id], id=f"c{n}") for n, c in enumerate(own, start=1) if c.id in verdicts]
    inquiry.made["found"] = replace(found, verdicts=tuple(told))
    if found.status is not Status.OK:
        raise inquiry.stop(found.status)
    if missing:
        raise inquiry.stop(Status.JUDGE_ERROR, f"no verdict for {', '.join(missing)}")
    other = tuple(Verdict(each.id, each.label == ELSEWHERE, remembered=each.remembered) for each in told)
    inquiry.made["other"] = replace(found, verdicts=other).unbilled()


def relevance_of(mapped: Judgement, claims: Sequence[Claim], passages: Sequence[Passage]) -> Judgement:
    """The judgement on passages that follows from the one on claims: one verdict per passage, naming the claims.

    Status, cost and calls are those of `mapped`; with a verdict missing there, a passage that no claim names is
    undecided and has none.
    """
    texts = {claim.id: claim.text for claim in claims}
    first = by_id(mapped)
    complete = all(claim.id in first for claim in claims)
    verdicts = []
    for passage in passages:
        stated = [v for v in first.values() if v.positive and any(e.passage == passage.id for e in v.evidence)]
        evidence = tuple(e for v in stated for e in v.evidence if e.passage == passage.id and e.quote)
        if stated or complete:
            named = "; ".join(shortened(texts[v.id], 80) for v in stated if v.id in texts)
            why = f"states: {named}" if stated else "states no claim of the reference"
            remembered = bool(first) and all(v.remembered for v in first.values())
            verdicts.append(Verdict(passage.id, bool(stated), why=why, evidence=evidence, remembered=remembered))
    return replace(mapped, verdicts=tuple(verdicts))
