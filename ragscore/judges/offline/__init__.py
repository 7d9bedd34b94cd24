"""The offline judge: decides by words, without a model, a key or a network."""

from ragscore.judges.offline.judge import OfflineJudge

__all__ = ["OfflineJudge"]
