"""The Python API: scorers that judge one item or many, and suites without the command line. Import it from `ragscore`.

A scorer of this package is a scorer of `ragscore.scorers` (the pure parts: what is asked, how it is counted) together
with who judges and where contexts come from. Everything is asynchronous first; the `_sync` twins are for scripts.
"""

from ragscore.api.answer_scorers import (
    AnswerCorrectness,
    AnswerRelevancy,
    AnswerSimilarity,
    Faithfulness,
    Hallucination,
    PromptScorer,
)
from ragscore.api.context_scorers import (
    ContextEntitiesRecall,
    ContextPrecision,
    ContextRecall,
    ContextRelevance,
    ContextUtilization,
    NoiseSensitivity,
)
from ragscore.api.rank_scorers import AveragePrecision, HitRate, MeanReciprocalRank, NdcgAtK, PrecisionAtK, RecallAtK
from ragscore.api.results import EvalResult, ItemResult, Result, Threshold
from ragscore.api.running import run_evals, run_evals_sync
from ragscore.api.scoring import RunnableScorer
from ragscore.api.suites import Evaluation, evaluate, evaluate_sync

__all__ = [
    "AnswerCorrectness",
    "AnswerRelevancy",
    "AnswerSimilarity",
    "AveragePrecision",
    "ContextEntitiesRecall",
    "ContextPrecision",
    "ContextRecall",
    "ContextRelevance",
    "ContextUtilization",
    "EvalResult",
    "Evaluation",
    "Faithfulness",
    "Hallucination",
    "HitRate",
    "ItemResult",
    "MeanReciprocalRank",
    "NdcgAtK",
    "NoiseSensitivity",
    "PrecisionAtK",
    "PromptScorer",
    "RecallAtK",
    "Result",
    "RunnableScorer",
    "Threshold",
    "evaluate",
    "evaluate_sync",
    "run_evals",
    "run_evals_sync",
]
