"""Scorers: from judgements to scores, exactly."""

from ragscore.scorers.answers import AnswerMatch, AnswerRelevancy
from ragscore.scorers.arithmetic import average_precision, band, mean, recall, rounded
from ragscore.scorers.context_precision import ContextPrecision
from ragscore.scorers.context_recall import ContextRecall
from ragscore.scorers.context_relevance import ContextRelevance
from ragscore.scorers.context_use import ContextUtilization, NoiseSensitivity
from ragscore.scorers.custom import CustomScorer, PromptScorer, not_scored, scored, scorer
from ragscore.scorers.entities_recall import ContextEntitiesRecall
from ragscore.scorers.faithfulness import Faithfulness, Hallucination
from ragscore.scorers.outcome import unscored
from ragscore.scorers.protocol import Judged, Passages, Sample, Scorer
from ragscore.scorers.rank_metrics import RankMetric

__all__ = [
    "AnswerMatch",
    "AnswerRelevancy",
    "ContextEntitiesRecall",
    "ContextPrecision",
    "ContextRecall",
    "ContextRelevance",
    "ContextUtilization",
    "CustomScorer",
    "Faithfulness",
    "Hallucination",
    "Judged",
    "NoiseSensitivity",
    "Passages",
    "PromptScorer",
    "RankMetric",
    "Sample",
    "Scorer",
    "average_precision",
    "band",
    "mean",
    "not_scored",
    "recall",
    "rounded",
    "scored",
    "scorer",
    "unscored",
]
