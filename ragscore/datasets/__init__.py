"""Labelled questions, from where users keep them."""

from ragscore.datasets.dataset import Dataset, Streamed
from ragscore.datasets.jsonl import read_jsonl
from ragscore.datasets.loading import load_dataset

__all__ = ["Dataset", "Streamed", "load_dataset", "read_jsonl"]
