"""`ragscore demo`: two versions of a real retriever, evaluated and compared."""

from __future__ import annotations

from ragscore.cli.options import Engine, HistoryFile


def demo(*, engine: Engine = "auto", history: HistoryFile = None) -> int:
    """Evaluate two versions of a documentation assistant, and compare them.

    The corpus is Python's own language reference, the retriever is BM25, and version v2 has a fault. Needs no
    network and no key.
    """
    from ragscore.cli.execution import run_suites
    from ragscore.demo.suite import VERSIONS, demo_suite
    from ragscore.flows.engine import choose
    from ragscore.history import History
    from ragscore.home import history_path

    files = [demo_suite(version) for version in VERSIONS]
    return run_suites(files, lambda: choose(engine), History(history_path(history)), trigger="demo")
