"""Scorers: from judgements to scores, exactly."""

from ragscore.scorers.arithmetic import average_precision, band, mean, recall, rounded
from ragscore.scorers.context_precision import ContextPrecision
from ragscore.scorers.context_recall import ContextRecall
from ragscore.scorers.outcome import unscored
from ragscore.scorers.protocol import Judged, Passages, Sample, Scorer

__all__ = [
    "ContextPrecision",
    "ContextRecall",
    "Judged",
    "Passages",
    "Sample",
    "Scorer",
    "average_precision",
    "band",
    "mean",
    "recall",
    "rounded",
    "unscored",
]
