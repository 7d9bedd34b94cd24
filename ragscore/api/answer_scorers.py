"""The scorers of what was answered as they are made in Python, and scorers by a question of one's own.

All take `name` (by which its results are found), `scale` (the score of a perfect item, > 0) and, where a judge is
asked, `model`: `offline`, any model that LiteLLM reaches, the keys of a suite's `judge:`, or a judge of one's own.
Those that look at contexts take `context` (static ones) and `context_extractor`; neither, or `context=[]`, is an error
when the scorer is made. What each one counts is said at its counterpart in `ragscore.scorers`.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from ragscore import scorers as pure
from ragscore.api.arguments import Contexts, Missing, Number, checked, scale_of
from ragscore.api.judging import Model
from ragscore.api.scoring import Extractor, RunnableScorer, contexts_from
from ragscore.contexts import IF_ANY
from ragscore.errors import ConfigError
from ragscore.expressions import formula_fault
from ragscore.scorers.answers import Measure
from ragscore.scorers.arithmetic import as_fraction
from ragscore.scorers.custom import FieldKind


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
        scorer = pure.Faithfulness(name=name, scale=scale_of(scale))
        super().__init__(
            checked(scorer), model=model, contexts=contexts_from("faithfulness", context, context_extractor)
        )


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
        scorer = pure.Hallucination(name=name, scale=scale_of(scale))
        super().__init__(
            checked(scorer), model=model, contexts=contexts_from("hallucination", context, context_extractor)
        )


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
        scorer = pure.AnswerRelevancy(name=name, scale=scale_of(scale), unsure=as_fraction(unsure))
        super().__init__(checked(scorer), model=model)


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
            scale=scale_of(scale),
            missing_reference=missing_reference,
        )
        super().__init__(checked(scorer), model=model)


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
        scorer = pure.PromptScorer(question, reply, score, name=name, scale=scale_of(scale))
        super().__init__(checked(scorer), model=model, contexts=contexts)
