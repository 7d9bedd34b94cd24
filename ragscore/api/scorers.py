"""The scorers as they are made in Python. What each one counts is said at its counterpart in `ragscore.scorers`.

All take `name` (by which its results are found), `scale` (the score of a perfect item, > 0) and, where a judge is
asked, `model`: `offline`, any model that LiteLLM reaches, the keys of a suite's `judge:`, or a judge of one's own.
Those that look at contexts take `context` (static ones) and `context_extractor`; neither, or `context=[]`, is an error
when the scorer is made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Literal

from ragscore import scorers as pure
from ragscore.api.judging import Model
from ragscore.api.scoring import Extractor, RunnableScorer, contexts_from
from ragscore.contexts import IF_ANY
from ragscore.errors import ConfigError
from ragscore.expressions import formula_fault
from ragscore.scorers.answers import Measure
from ragscore.scorers.arithmetic import as_fraction
from ragscore.scorers.context_precision import Against
from ragscore.scorers.context_relevance import MISSING, MOST_MISSING, UNUSED, WEIGHTS
from ragscore.scorers.custom import FieldKind
from ragscore.scorers.fused import Fused
from ragscore.scorers.rank_metrics import Metric

Number = float | int | Fraction
Contexts = Sequence[Any] | None
Missing = Literal["zero", "exclude"]


def _scale(scale: Number) -> Fraction:
    exact = as_fraction(scale)
    if exact <= 0:
        raise ConfigError(f"scale is {scale}", mend="give a number above 0")
    return exact


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
        scorer = pure.ContextRecall(name=name, scale=_scale(scale), missing_reference=missing_reference, fused=fused)
        super().__init__(scorer, model=model, contexts=contexts_from("context_recall", context, context_extractor))


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
            scale=_scale(scale),
            against=against,
            duplicates=duplicates,
            missing_reference=missing_reference,
            fused=fused,
        )
        super().__init__(scorer, model=model, contexts=contexts_from("context_precision", context, context_extractor))


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
            scale=_scale(scale),
            weights=grades,
            unused=as_fraction(unused),
            missing=as_fraction(missing),
            most_missing=as_fraction(most_missing),
        )
        super().__init__(scorer, model=model, contexts=contexts_from("context_relevance", context, context_extractor))


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
            name=name, scale=_scale(scale), missing_reference=missing_reference, fused=fused
        )
        super().__init__(scorer, model=model, contexts=contexts_from("context_utilization", context, context_extractor))


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
        scorer = pure.ContextEntitiesRecall(name=name, scale=_scale(scale), missing_reference=missing_reference)
        contexts = contexts_from("context_entities_recall", context, context_extractor)
        super().__init__(scorer, model=model, contexts=contexts)


class Faithfulness(RunnableScorer):
    """Claims of the output that the contexts support ÷ all its claims × scale.

    Source: faithfulness of RAGAS (https://arxiv.org/abs/2309.15217).

    Args:
        model: Who judges: `offline`, a model as LiteLLM names it, the keys of a suite's `judge:`, or a judge.
        context: Static contexts, best first: texts, or objects with a text; the same for every item.
        context_extractor: Gives an item's contexts, best first: a function of input and output (and item), async or
            not, or `response`, `item`, `tool_results`, or `{"path": …}`.
        scale: The score of a perfect item; > 0. Scores lie in 0..scale.
        name: The name by which results are found.

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
        name: str = "faithfulness",
    ) -> None:
        scorer = pure.Faithfulness(name=name, scale=_scale(scale))
        super().__init__(scorer, model=model, contexts=contexts_from("faithfulness", context, context_extractor))


class Hallucination(RunnableScorer):
    """Claims of the output that the contexts contradict ÷ all its claims × scale. Less is better.

    The offline judge cannot tell a contradiction. Source: the contradiction label of RAGChecker (Ru et al., 2024,
    https://arxiv.org/abs/2408.08067).

    Args:
        model: Who judges: `offline`, a model as LiteLLM names it, the keys of a suite's `judge:`, or a judge.
        context: Static contexts, best first: texts, or objects with a text; the same for every item.
        context_extractor: Gives an item's contexts, best first: a function of input and output (and item), async or
            not, or `response`, `item`, `tool_results`, or `{"path": …}`.
        scale: The score of a perfect item; > 0. Scores lie in 0..scale.
        name: The name by which results are found.

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
        name: str = "hallucination",
    ) -> None:
        scorer = pure.Hallucination(name=name, scale=_scale(scale))
        super().__init__(scorer, model=model, contexts=contexts_from("hallucination", context, context_extractor))


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
        scorer = pure.NoiseSensitivity(name=name, scale=_scale(scale), fused=fused)
        super().__init__(scorer, model=model, contexts=contexts_from("noise_sensitivity", context, context_extractor))


class AnswerRelevancy(RunnableScorer):
    """Mean over the output's claims × scale: 1 where one answers the question, `unsure` where it may, 0 where not.

    Looks at no contexts; the offline judge cannot tell. Source: the statement-wise answer relevancy of DeepEval
    (https://deepeval.com/docs/metrics-answer-relevancy) and Mastra, with 0.3 for unsure.

    Args:
        model: Who judges: `offline`, a model as LiteLLM names it, the keys of a suite's `judge:`, or a judge.
        scale: The score of a perfect item; > 0. Scores lie in 0..scale.
        name: The name by which results are found.
        unsure: What a claim counts that may answer, 0..1.

    Raises:
        ConfigError: an argument is wrong.
    """

    def __init__(
        self,
        *,
        model: Model = "offline",
        scale: Number = 1,
        name: str = "answer_relevancy",
        unsure: Number = Fraction(3, 10),
    ) -> None:
        super().__init__(pure.AnswerRelevancy(name=name, scale=_scale(scale), unsure=as_fraction(unsure)), model=model)


class AnswerSimilarity(RunnableScorer):
    """How far output and reference say the same: F1 of their claims matched both ways × scale.

    Looks at no contexts. Source: RAGChecker (https://arxiv.org/abs/2408.08067).

    Args:
        model: Who judges: `offline`, a model as LiteLLM names it, the keys of a suite's `judge:`, or a judge.
        scale: The score of a perfect item; > 0. Scores lie in 0..scale.
        name: The name by which results are found.
        measure: Which is the score: `f1`, or one of its parts, `precision` or `recall`.
        missing_reference: Whether an item without reference takes part in means with its 0 (`zero`) or not (`exclude`).

    Raises:
        ConfigError: an argument is wrong.
    """

    _kind = "answer_similarity"
    _measure: Measure = "f1"

    def __init__(
        self,
        *,
        model: Model = "offline",
        scale: Number = 1,
        name: str | None = None,
        measure: Measure | None = None,
        missing_reference: Missing = "zero",
    ) -> None:
        scorer = pure.AnswerMatch(
            kind=self._kind,
            measure=measure or self._measure,
            name=name or self._kind,
            scale=_scale(scale),
            missing_reference=missing_reference,
        )
        super().__init__(scorer, model=model)


class AnswerCorrectness(AnswerSimilarity):
    """Claims of the output that the reference supports ÷ all its claims × scale (`measure="f1"` for both ways).

    Looks at no contexts. Source: claim-level precision of RAGChecker (https://arxiv.org/abs/2408.08067).

    Args:
        model: Who judges: `offline`, a model as LiteLLM names it, the keys of a suite's `judge:`, or a judge.
        scale: The score of a perfect item; > 0. Scores lie in 0..scale.
        name: The name by which results are found.
        measure: Which is the score: `precision`, `recall` or `f1`.
        missing_reference: Whether an item without reference takes part in means with its 0 (`zero`) or not (`exclude`).

    Raises:
        ConfigError: an argument is wrong.
    """

    _kind = "answer_correctness"
    _measure: Measure = "precision"


class _RankMetric(RunnableScorer):
    """A rank metric: no judge; what is relevant stands in the item's `reference_context_ids` or `relevance`."""

    _metric: Metric

    def __init__(
        self,
        k: int | None = None,
        *,
        context: Contexts = None,
        context_extractor: Extractor | None = None,
        scale: Number = 1,
        name: str | None = None,
        missing_reference: Missing = "zero",
    ) -> None:
        if k is not None and k < 1:
            raise ConfigError(f"k is {k}", mend="give at least 1, or leave it out for all ranks")
        scorer = pure.RankMetric(
            self._metric, name=name or self._metric, scale=_scale(scale), k=k, missing_reference=missing_reference
        )
        super().__init__(scorer, contexts=contexts_from(self._metric, context, context_extractor))


class PrecisionAtK(_RankMetric):
    """Relevant ids among the first k ÷ k × scale; without k, ÷ all that were retrieved.

    Source: trec_eval's `P_k`; Manning et al., *Introduction to Information Retrieval*, §8.4.

    Args:
        k: How many ranks are looked at, from 1; all when left out.
        context: Static contexts, best first: texts, or objects with a text; the same for every item.
        context_extractor: Gives an item's contexts, best first: a function of input and output (and item), async or
            not, or `response`, `item`, `tool_results`, or `{"path": …}`.
        scale: The score of a perfect item; > 0. Scores lie in 0..scale.
        name: The name by which results are found.
        missing_reference: Whether an item without reference takes part in means with its 0 (`zero`) or not (`exclude`).

    Raises:
        ConfigError: there are no contexts to look at, or an argument is wrong.
    """

    _metric = "precision_at_k"


class RecallAtK(_RankMetric):
    """Relevant ids among the first k ÷ all relevant ids × scale.

    Source: trec_eval's `recall_k`; Manning et al., *Introduction to Information Retrieval*, §8.3.

    Args:
        k: How many ranks are looked at, from 1; all when left out.
        context: Static contexts, best first: texts, or objects with a text; the same for every item.
        context_extractor: Gives an item's contexts, best first: a function of input and output (and item), async or
            not, or `response`, `item`, `tool_results`, or `{"path": …}`.
        scale: The score of a perfect item; > 0. Scores lie in 0..scale.
        name: The name by which results are found.
        missing_reference: Whether an item without reference takes part in means with its 0 (`zero`) or not (`exclude`).

    Raises:
        ConfigError: there are no contexts to look at, or an argument is wrong.
    """

    _metric = "recall_at_k"


class HitRate(_RankMetric):
    """1 where one of the first k ids is relevant, else 0, × scale.

    Source: trec_eval's `success_k`.

    Args:
        k: How many ranks are looked at, from 1; all when left out.
        context: Static contexts, best first: texts, or objects with a text; the same for every item.
        context_extractor: Gives an item's contexts, best first: a function of input and output (and item), async or
            not, or `response`, `item`, `tool_results`, or `{"path": …}`.
        scale: The score of a perfect item; > 0. Scores lie in 0..scale.
        name: The name by which results are found.
        missing_reference: Whether an item without reference takes part in means with its 0 (`zero`) or not (`exclude`).

    Raises:
        ConfigError: there are no contexts to look at, or an argument is wrong.
    """

    _metric = "hit_rate"


class MeanReciprocalRank(_RankMetric):
    """1 ÷ the rank of the first relevant id, 0 without one, × scale; the mean over items is the MRR.

    Source: trec_eval's `recip_rank`; Voorhees, *The TREC-8 Question Answering Track Report*, 1999, §3.

    Args:
        k: How many ranks are looked at, from 1; all when left out.
        context: Static contexts, best first: texts, or objects with a text; the same for every item.
        context_extractor: Gives an item's contexts, best first: a function of input and output (and item), async or
            not, or `response`, `item`, `tool_results`, or `{"path": …}`.
        scale: The score of a perfect item; > 0. Scores lie in 0..scale.
        name: The name by which results are found.
        missing_reference: Whether an item without reference takes part in means with its 0 (`zero`) or not (`exclude`).

    Raises:
        ConfigError: there are no contexts to look at, or an argument is wrong.
    """

    _metric = "mrr"


class AveragePrecision(_RankMetric):
    """Precision at the ranks of relevant ids, summed, ÷ all relevant ids × scale.

    Source: trec_eval's `map`; Manning et al., *Introduction to Information Retrieval*, §8.4.

    Args:
        k: How many ranks are looked at, from 1; all when left out.
        context: Static contexts, best first: texts, or objects with a text; the same for every item.
        context_extractor: Gives an item's contexts, best first: a function of input and output (and item), async or
            not, or `response`, `item`, `tool_results`, or `{"path": …}`.
        scale: The score of a perfect item; > 0. Scores lie in 0..scale.
        name: The name by which results are found.
        missing_reference: Whether an item without reference takes part in means with its 0 (`zero`) or not (`exclude`).

    Raises:
        ConfigError: there are no contexts to look at, or an argument is wrong.
    """

    _metric = "average_precision"


class NdcgAtK(_RankMetric):
    """Graded gain, discounted by log2(rank + 1), ÷ that of the ideal order × scale.

    Source: trec_eval's `ndcg_cut_k`; Järvelin and Kekäläinen, *Cumulated gain-based evaluation of IR techniques*,
    2002.

    Args:
        k: How many ranks are looked at, from 1; all when left out.
        context: Static contexts, best first: texts, or objects with a text; the same for every item.
        context_extractor: Gives an item's contexts, best first: a function of input and output (and item), async or
            not, or `response`, `item`, `tool_results`, or `{"path": …}`.
        scale: The score of a perfect item; > 0. Scores lie in 0..scale.
        name: The name by which results are found.
        missing_reference: Whether an item without reference takes part in means with its 0 (`zero`) or not (`exclude`).

    Raises:
        ConfigError: there are no contexts to look at, or an argument is wrong.
    """

    _metric = "ndcg_at_k"


class PromptScorer(RunnableScorer):
    """A question to the judge, the fields of its reply, and an expression over them that gives the score.

    Contexts are shown to the judge where there are some. Source: see `ragscore.scorers.PromptScorer`.

    Args:
        question: What the judge is told to decide.
        reply: The fields of its reply: `boolean`, `number` or `text`; a text field `why` becomes the reason.
        score: The score in the scorer's scale, by the fields; an expression of Jinja2.
        model: Who judges, as for other scorers; the offline judge cannot.
        context: Static contexts, best first: texts, or objects with a text; the same for every item.
        context_extractor: Gives an item's contexts, best first: a function of input and output (and item), async or
            not, or `response`, `item`, `tool_results`, or `{"path": …}`.
        scale: The score of a perfect item; > 0. Scores lie in 0..scale.
        name: The name by which results are found.

    Raises:
        ConfigError: the expression names an unknown field or is none, or an argument is wrong.
    """

    def __init__(
        self,
        question: str,
        *,
        reply: Mapping[str, FieldKind],
        score: str,
        model: Model,
        context: Contexts = None,
        context_extractor: Extractor | None = None,
        scale: Number = 1,
        name: str = "prompt",
    ) -> None:
        if (fault := formula_fault(score, reply)) is not None:
            raise ConfigError(fault, where="score", mend="name fields of `reply` only")
        there = context is not None or context_extractor is not None
        contexts = contexts_from("prompt", context, context_extractor) if there else IF_ANY
        scorer = pure.PromptScorer(question, reply, score, name=name, scale=_scale(scale))
        super().__init__(scorer, model=model, contexts=contexts)
