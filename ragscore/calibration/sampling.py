"""Which verdicts of a run people should look at: where the judge is least sure, and some at random."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from ragscore.calibration.labels import Label
from ragscore.history import History, ItemDetail, RunRow, findings, item_detail, item_scores
from ragscore.items import Status
from ragscore.scorers.attribution import OUTPUT_CLAIM

#: Which findings of which scorers a sheet asks people about, and as what kind of label: others answer other questions.
QUESTIONS = {
    ("context_recall", "claim"): "claim",
    ("context_relevance", "claim"): "claim",
    ("faithfulness", OUTPUT_CLAIM): "claim",
    ("context_precision", "context"): "context",
}


def labels_of_run(history: History, run: RunRow, *, sample: int = 100, seed: int = 0) -> list[Label]:
    """A sheet of the run's verdicts, for people to fill in `human`.

    A half is where the judge's evidence was not found in the contexts, then where it is least sure; the other half is
    drawn at random, so that the agreement can be estimated for all verdicts and not only for the hard ones. `chosen`
    says which. In the order of the dataset. What no judge decided is left out: ranks of known ids, and claims of items
    without contexts.

    Args:
        history: Where the run is.
        run: The run.
        sample: At most so many verdicts.
        seed: Of the drawing.

    Raises:
        UsageError: there is no such run.
    """
    scores = {(score.item_id, score.scorer): score for score in item_scores(history, run.run_id)}
    decided = [
        each
        for each in findings(history, run.run_id)
        if (scores[each.item_id, each.scorer].kind, each.finding.kind) in QUESTIONS
        and scores[each.item_id, each.scorer].status is not Status.NO_CONTEXT
        and each.finding.positive is not None
        and each.finding.duplicate_of is None
        and each.finding.text.strip()
    ]
    places = list(range(len(decided)))
    doubtful = sorted(
        (at for at in places if decided[at].finding.verified is False or decided[at].finding.confidence is not None),
        key=lambda at: (decided[at].finding.verified is not False, decided[at].finding.confidence or 0.0, at),
    )
    chosen = {at: "unverified" if decided[at].finding.verified is False else "unsure" for at in doubtful[: sample // 2]}
    rest = [at for at in places if at not in chosen]
    random.Random(seed).shuffle(rest)
    chosen |= dict.fromkeys(rest[: sample - len(chosen)], "random")
    details: dict[str, ItemDetail] = {}
    labels = []
    for at in sorted(chosen):
        each = decided[at]
        detail = details.get(each.item_id) or item_detail(history, run.run_id, each.item_id)
        details[each.item_id] = detail
        score = next(score for score in detail.scores if score.scorer == each.scorer)
        contexts = detail.context_sets.get(score.context_set or "")
        shown = Label(
            kind=QUESTIONS[score.kind, each.finding.kind],
            text=each.finding.text,
            verdict=each.finding.positive,
            question=detail.item.input,
            item_id=each.item_id,
            run_id=run.run_id,
            chosen=chosen[at],
            judge=score.judge,
            prompt_version=score.prompt_version,
            confidence=each.finding.confidence,
            note=each.finding.why,
        )
        if shown.kind == "claim":
            texts = tuple(context.text for context in contexts.contexts) if contexts is not None else ()
            labels.append(replace(shown, contexts=texts))
        else:
            against = score.against or "reference"
            expected = detail.response.output if against == "output" else detail.item.reference
            labels.append(replace(shown, expected=expected, against=against))
    return _distinct(labels)


def _distinct(labels: Sequence[Label]) -> list[Label]:
    """The same question once, however many scorers ask it."""
    return list({label.key: label for label in reversed(labels)}.values())[::-1]
