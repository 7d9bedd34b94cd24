"""The rank metrics as they are made in Python: they ask no judge.

All take `name` (by which its results are found), `scale` (the score of a perfect item, > 0) and, where a judge is
asked, `model`: `offline`, any model that LiteLLM reaches, the keys of a suite's `judge:`, or a judge of one's own.
Those that look at contexts take `context` (static ones) and `context_extractor`; neither, or `context=[]`, is an error
when the scorer is made. What each one counts is said at its counterpart in `ragscore.scorers`.
"""

from __future__ import annotations

from ragscore import scorers as pure
from ragscore.api.arguments import Contexts, Missing, Number, checked, scale_of
from ragscore.api.scoring import Extractor, RunnableScorer, contexts_from
from ragscore.scorers.rank_metrics import Metric


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
        scorer = pure.RankMetric(
            self._metric, name=name or self._metric, scale=scale_of(scale), k=k, missing_reference=missing_reference
        )
        super().__init__(checked(scorer), contexts=contexts_from(self._metric, context, context_extractor))


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
