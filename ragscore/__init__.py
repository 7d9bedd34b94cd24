"""ragscore: is your retrieval better or worse than last time, on which questions, for which facts?"""

__version__: str


def __getattr__(name: str) -> str:
    # Asking the installed metadata takes longer than the rest of `ragscore --help`.
    if name == "__version__":
        from importlib.metadata import PackageNotFoundError, version

        try:
            return version("ragscore-evals")
        except PackageNotFoundError:  # a source tree that was never installed
            return "0.0.0"
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
