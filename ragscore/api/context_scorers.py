"""The scorers of contexts as they are made in Python.

All take `name` (by which its results are found), `scale` (the score of a perfect item, > 0) and, where a judge is
asked, `model`: `offline`, any model that LiteLLM reaches, the keys of a suite's `judge:`, or a judge of one's own.
Those that look at contexts take `context` (static ones) and `context_extractor`; neither, or `context=[]`, is an error
when the scorer is made. What each one counts is said at its counterpart in `ragscore.scorers`.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Literal

from ragscore import scorers as pure
from ragscore.api.arguments import Contexts, Missing, Number, checked, scale_of
from ragscore.api.judging import Model
from ragscore.api.scoring import Extractor, RunnableScorer, contexts_from
from ragscore.errors import ConfigError
from ragscore.scorers.arithmetic import as_fraction
from ragscore.scorers.context_precision import Against
from ragscore.scorers.context_relevance import MISSING, MOST_MISSING, UNUSED, WEIGHTS
from ragscore.scorers.fused import Fused


class ContextRecall(RunnableScorer):
    """Claims of the reference that the contexts support ÷ all its claims × scale. Order plays no part.

    With both `context` and `context_extractor` the static contexts are judged, but for items whose input and output are
    agent messages. Source: context recall of RAGAS (https://arxiv.org/abs/2309.15217), over frozen claims.

    Args:
        model: Who judges: `offline`, a model as LiteLLM names it, the keys of a suite's `judge:`, or a judge.
        context: Static contexts, best first: texts, or objects with a text; the same for every item.
        context_extractor: Gives an item's contexts, best first: a function of input and output (and item), async or
            not, or `response`, `item`, `tool_results`, or `{"path": …}`.
        scale: The score of a perfect item; > 0. Scores lie in 0..scale.
        name: The name by which results are found.
        missing_reference: Whether an item without reference takes part in means with its 0 (`zero`) or not (`exclude`).
        fused: True: ask what a fused `context_precision` asks; `answer`: what the fused scorers of the output ask, too.

    Raises:
        ConfigError: there are no contexts to judge, or an argument is wrong.

    >>> recall = ContextRecall(context=["Lamps can be returned within 30 days."])
    >>> recall.run_sync(input="May I return a lamp?", reference="Lamps can be returned within 30 days.").score
    1.0
    """

    def __init__(
        self,
        *,
        model: Model = "offline",
        context: Contexts = None,
        context_extractor: Extractor | None = None,
        scale: Number = 1,
        name: str = "context_recall",
        missing_reference: Missing = "zero",
        fused: Fused = False,
    ) -> None:
        scorer = pure.ContextRecall(name=name, scale=scale_of(scale), missing_reference=missing_reference, fused=fused)
        super().__init__(
            checked(scorer), model=model, contexts=contexts_from("context_recall", context, context_extractor)
        )


class ContextPrecision(RunnableScorer):
    """Average precision of the contexts × scale: are they useful for the expected answer, the useful ones first?

    With both `context` and `context_extractor` the extracted contexts are judged. `against` is the expected answer:
    `reference`, `output`, or `auto` (the reference if there is one). Source: average precision (Manning et al.,
    *Introduction to Information Retrieval*, §8.4); context precision of RAGAS (https://arxiv.org/abs/2309.15217).

    Args:
        model: Who judges: `offline`, a model as LiteLLM names it, the keys of a suite's `judge:`, or a judge.
        context: Static contexts, best first: texts, or objects with a text; the same for every item.
        context_extractor: Gives an item's contexts, best first: a function of input and output (and item), async or
            not, or `response`, `item`, `tool_results`, or `{"path": …}`.
        scale: The score of a perfect item; > 0. Scores lie in 0..scale.
        name: The name by which results are found.
        against: The expected answer: `reference`, `output`, or `auto` (the reference if there is one, else the output).
        duplicates: Whether a repeated context counts at each of its ranks (`count`) or is not relevant later on
            (`once`).
        missing_reference: Whether an item without reference takes part in means with its 0 (`zero`) or not (`exclude`).
        fused: True: take relevance from claims × contexts; `answer`: ask about the output in the same question.

    Raises:
        ConfigError: there are no contexts to judge, or an argument is wrong.
    """

    def __init__(
        self,
        *,
        model: Model = "offline",
        context: Contexts = None,
        context_extractor: Extractor | None = None,
        scale: Number = 1,
        name: str = "context_precision",
        against: Against = "auto",
        duplicates: Literal["count", "once"] = "count",
        missing_reference: Missing = "zero",
        fused: Fused = False,
    ) -> None:
        scorer = pure.ContextPrecision(
            name=name,
            scale=scale_of(scale),
            against=against,
            duplicates=duplicates,
            missing_reference=missing_reference,
            fused=fused,
        )
        super().__init__(
            checked(scorer), model=model, contexts=contexts_from("context_precision", context, context_extractor)
        )


class ContextRelevance(RunnableScorer):
    """Mean grade of the contexts (high 1, medium 0.7, low 0.3, none 0) less penalties × scale.

    Off go `unused` per highly relevant context that the output does not use, and `missing` per claim of the reference
    that no context supports, up to `most_missing`. Source: the weights and penalties of Mastra's
    context relevance (https://mastra.ai/docs), with missing claims counted from the reference.

    Args:
        model: Who judges: `offline`, a model as LiteLLM names it, the keys of a suite's `judge:`, or a judge.
        context: Static contexts, best first: texts, or objects with a text; the same for every item.
        context_extractor: Gives an item's contexts, best first: a function of input and output (and item), async or
            not, or `response`, `item`, `tool_results`, or `{"path": …}`.
        scale: The score of a perfect item; > 0. Scores lie in 0..scale.
        name: The name by which results are found.
        weights: What a grade counts, 0..1; grades left out keep their weights.
        unused: Off per highly relevant context that the output does not use, 0..1.
        missing: Off per claim of the reference that no context supports, 0..1.
        most_missing: Off for missing claims at most, 0..1.

    Raises:
        ConfigError: there are no contexts to judge, or an argument is wrong.
    """

    def __init__(
        self,
        *,
        model: Model = "offline",
        context: Contexts = None,
        context_extractor: Extractor | None = None,
        scale: Number = 1,
        name: str = "context_relevance",
        weights: Mapping[Literal["high", "medium", "low", "none"], Number] | None = None,
        unused: Number = UNUSED,
        missing: Number = MISSING,
        most_missing: Number = MOST_MISSING,
    ) -> None:
        grades: dict[str, Fraction] = dict(WEIGHTS)
        for grade, weight in (weights or {}).items():
            if grade not in WEIGHTS or not 0 <= as_fraction(weight) <= 1:
                raise ConfigError(f"weights: {grade}: {weight} is wrong", mend="weigh high, medium, low, none by 0..1")
            grades[grade] = as_fraction(weight)
        scorer = pure.ContextRelevance(
            name=name,
            scale=scale_of(scale),
            weights=grades,
            unused=as_fraction(unused),
            missing=as_fraction(missing),
            most_missing=as_fraction(most_missing),
        )
        super().__init__(
            checked(scorer), model=model, contexts=contexts_from("context_relevance", context, context_extractor)
        )


class ContextUtilization(RunnableScorer):
    """Of the reference's claims that the contexts support, the share that the output states, × scale.

    Source: RAGChecker (https://arxiv.org/abs/2408.08067).

    Args:
        model: Who judges: `offline`, a model as LiteLLM names it, the keys of a suite's `judge:`, or a judge.
        context: Static contexts, best first: texts, or objects with a text; the same for every item.
        context_extractor: Gives an item's contexts, best first: a function of input and output (and item), async or
            not, or `response`, `item`, `tool_results`, or `{"path": …}`.
        scale: The score of a perfect item; > 0. Scores lie in 0..scale.
        name: The name by which results are found.
        missing_reference: Whether an item without reference takes part in means with its 0 (`zero`) or not (`exclude`).
        fused: Ask all at once, as recall and precision do with `fused="answer"` (docs/scorers.md).

    Raises:
        ConfigError: there are no contexts to judge, or an argument is wrong.
    """

    def __init__(
        self,
        *,
        model: Model = "offline",
        context: Contexts = None,
        context_extractor: Extractor | None = None,
        scale: Number = 1,
        name: str = "context_utilization",
        missing_reference: Missing = "zero",
        fused: bool = False,
    ) -> None:
        scorer = pure.ContextUtilization(
            name=name, scale=scale_of(scale), missing_reference=missing_reference, fused=fused
        )
        super().__init__(
            checked(scorer), model=model, contexts=contexts_from("context_utilization", context, context_extractor)
        )


class ContextEntitiesRecall(RunnableScorer):
    """Names, dates and amounts of the reference that stand in the contexts ÷ all of them × scale.

    The judge lists them; the offline judge cannot. Source: context entities recall of RAGAS
    (https://docs.ragas.io), which extracts both sides with a model.

    Args:
        model: Who judges: `offline`, a model as LiteLLM names it, the keys of a suite's `judge:`, or a judge.
        context: Static contexts, best first: texts, or objects with a text; the same for every item.
        context_extractor: Gives an item's contexts, best first: a function of input and output (and item), async or
            not, or `response`, `item`, `tool_results`, or `{"path": …}`.
        scale: The score of a perfect item; > 0. Scores lie in 0..scale.
        name: The name by which results are found.
        missing_reference: Whether an item without reference takes part in means with its 0 (`zero`) or not (`exclude`).

    Raises:
        ConfigError: there are no contexts to judge, or an argument is wrong.
    """

    def __init__(
        self,
        *,
        model: Model = "offline",
        context: Contexts = None,
        context_extractor: Extractor | None = None,
        scale: Number = 1,
        name: str = "context_entities_recall",
        missing_reference: Missing = "zero",
    ) -> None:
        scorer = pure.ContextEntitiesRecall(name=name, scale=scale_of(scale), missing_reference=missing_reference)
        contexts = contexts_from("context_entities_recall", context, context_extractor)
        super().__init__(checked(scorer), model=model, contexts=contexts)


class NoiseSensitivity(RunnableScorer):
    """Claims of the output that the contexts support and the reference does not ÷ all its claims × scale.

    Less is better. Source: RAGChecker (https://arxiv.org/abs/2408.08067).

    Args:
        model: Who judges: `offline`, a model as LiteLLM names it, the keys of a suite's `judge:`, or a judge.
        context: Static contexts, best first: texts, or objects with a text; the same for every item.
        context_extractor: Gives an item's contexts, best first: a function of input and output (and item), async or
            not, or `response`, `item`, `tool_results`, or `{"path": …}`.
        scale: The score of a perfect item; > 0. Scores lie in 0..scale.
        name: The name by which results are found.
        fused: Ask all at once, as recall and precision do with `fused="answer"` (docs/scorers.md).

    Raises:
        ConfigError: there are no contexts to judge, or an argument is wrong.
    """

    def __init__(
        self,
        *,
        model: Model = "offline",
        context: Contexts = None,
        context_extractor: Extractor | None = None,
        scale: Number = 1,
        name: str = "noise_sensitivity",
        fused: bool = False,
    ) -> None:
        scorer = pure.NoiseSensitivity(name=name, scale=scale_of(scale), fused=fused)
        super().__init__(
            checked(scorer), model=model, contexts=contexts_from("noise_sensitivity", context, context_extractor)
        )
