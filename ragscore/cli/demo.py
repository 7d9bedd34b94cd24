"""`ragscore demo`: two versions of a real retriever, evaluated and compared."""

from __future__ import annotations

from ragscore.cli.options import Engine, HistoryFile


def demo(*, engine: Engine = "auto", history: HistoryFile = None) -> int:
    """Evaluate two versions of a documentation assistant, and compare them.

    The corpus is Python's own language reference, the retriever is BM25, and version v2 has a fault. Needs no
    network and no key.
    """
    from ragscore.assembly import Parts, assemble
    from ragscore.cli.execution import execute, exit_code
    from ragscore.demo.suite import VERSIONS, demo_suite
    from ragscore.flows.engine import choose
    from ragscore.history import History, RunRow
    from ragscore.home import history_path
    from ragscore.report.comparison import compare_runs
    from ragscore.report.summary import summary_of
    from ragscore.report.terminal import console, print_comparison, print_summary
    from ragscore.runs import Observer, Run, begin

    out = console()
    store = History(history_path(history))
    chosen = choose(engine)
    ended: list[RunRow] = []
    codes = []
    for version in VERSIONS:
        parts = assemble(demo_suite(version))

        def opened(observer: Observer, parts: Parts = parts) -> Run:
            return begin(parts, store, trigger="demo", engine=chosen.name, observer=observer)

        row = execute(parts, opened, chosen)
        summary = summary_of(store, row)
        print_summary(summary, out, footer=False)
        codes.append(exit_code(summary))
        ended.append(row)
        if row.status != "complete":
            return max(codes)
    comparison = compare_runs(store, *ended)
    print_comparison(comparison, out)
    worse = comparison.scorers[0].worse
    _print_next(ended[-1].run_id, worse[0].after.item_id if worse else "ID", str(store.path))
    return max(codes)


def _print_next(run_id: str, item_id: str, history: str) -> None:
    import sys

    sys.stdout.write(
        "\nWhere to look next:\n"
        f"  ragscore show {run_id} --item {item_id}\n"
        '  ragscore sql "select retriever, version, scorer, mean, n from score_history order by 1,2,3"\n'
        f"Every verdict is kept in {history}.\n"
    )
