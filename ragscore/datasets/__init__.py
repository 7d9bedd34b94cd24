"""Labelled questions, from where users keep them."""

from ragscore.datasets.dataset import Dataset
from ragscore.datasets.jsonl import read_jsonl

__all__ = ["Dataset", "read_jsonl"]
