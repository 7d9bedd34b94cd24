"""The RAG system under test, and the ways to call it."""

from ragscore.targets.protocol import Target, TargetFailure
from ragscore.targets.python import PythonTarget

__all__ = ["PythonTarget", "Target", "TargetFailure"]
