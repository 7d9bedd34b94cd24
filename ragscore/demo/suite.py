"""The suite of the demo, once per version of its retriever."""

from __future__ import annotations

from pathlib import Path

from ragscore.suite_file import SuiteFile, check_suite

VERSIONS = ("v1", "v2")


def demo_suite(version: str) -> SuiteFile:
    """The demo's suite against one version of the documentation assistant, `v1` or `v2`."""
    document = {
        "name": "python-reference",
        "dataset": "questions.jsonl",
        "target": {
            "retriever": "docs-search",
            "version": version,
            "python": f"ragscore.demo.assistant:retrieve_{version}",
        },
        "judge": "offline",
        "scorers": ["context_recall", "context_precision"],
    }
    return check_suite(document, base_dir=Path(__file__).parent)
