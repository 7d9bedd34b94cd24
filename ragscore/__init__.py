"""ragscore: is your retrieval better or worse than last time, on which questions, for which facts?"""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("ragscore-evals")
except PackageNotFoundError:  # a source tree that was never installed
    __version__ = "0.0.0"
