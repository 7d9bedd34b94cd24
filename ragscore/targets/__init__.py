"""The RAG system under test, and the ways to call it."""

from ragscore.targets.making import described, make_target
from ragscore.targets.protocol import Target, TargetFailure, close
from ragscore.targets.python import PythonTarget

__all__ = ["PythonTarget", "Target", "TargetFailure", "close", "described", "make_target"]
