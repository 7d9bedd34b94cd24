"""The kinds of scorers that a suite can name, and which options each of them has."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

#: Options that all kinds have.
COMMON = frozenset({"kind", "name", "scale", "contexts"})
_RANKS = frozenset({"k"})
#: The options of each kind besides.
OPTIONS: Mapping[str, frozenset[str]] = {
    "context_recall": frozenset(),
    "context_precision": frozenset({"against"}),
    "context_relevance": frozenset({"weights", "unused", "missing", "most_missing"}),
    "context_utilization": frozenset(),
    "context_entities_recall": frozenset(),
    "noise_sensitivity": frozenset(),
    "faithfulness": frozenset(),
    "hallucination": frozenset(),
    "answer_relevancy": frozenset({"unsure"}),
    "answer_similarity": frozenset({"measure"}),
    "answer_correctness": frozenset({"measure"}),
    "precision_at_k": _RANKS,
    "recall_at_k": _RANKS,
    "hit_rate": _RANKS,
    "mrr": _RANKS,
    "average_precision": _RANKS,
    "ndcg_at_k": _RANKS,
    "python": frozenset({"call", "options"}),
    "prompt": frozenset({"question", "reply", "score"}),
    "plugin": frozenset({"call", "options"}),
}
#: Options by which the same verdicts make another score: runs that differ in one of them are not compared.
COUNTED_BY = frozenset({"k", "options"})
#: More of these, by kind, with what they are where they are left out.
SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "context_relevance": {
        "weights": {"high": 1.0, "medium": 0.7, "low": 0.3, "none": 0.0},
        "unused": 0.1,
        "missing": 0.15,
        "most_missing": 0.5,
    },
    "answer_relevancy": {"unsure": 0.3},
    "answer_similarity": {"measure": "f1"},
    "answer_correctness": {"measure": "precision"},
}
#: Kinds that look at no contexts: nothing is extracted for them, and a target that returns none is no fault.
WITHOUT_CONTEXTS = frozenset({"answer_relevancy", "answer_similarity", "answer_correctness"})
#: Kinds that take whatever contexts there are, none included, unless the suite says where they come from.
CONTEXTS_IF_ANY = frozenset({"python", "prompt", "plugin"})
#: Kinds that ask no judge, as far as we know.
WITHOUT_JUDGE = frozenset(
    {"precision_at_k", "recall_at_k", "hit_rate", "mrr", "average_precision", "ndcg_at_k", "python", "plugin"}
)
#: Kinds that look at what the system said; `prompt` shows it to the judge where there is some.
READS_OUTPUT = frozenset(
    {
        "context_relevance",
        "context_utilization",
        "noise_sensitivity",
        "faithfulness",
        "hallucination",
        "answer_relevancy",
        "answer_similarity",
        "answer_correctness",
        "prompt",
    }
)
#: Kinds of which less is better. A gate's `min` and `max_drop` would mean the contrary there.
LESS_IS_BETTER = frozenset({"hallucination", "noise_sensitivity"})


def settings_of(declared: Mapping[str, Any]) -> str:
    """The settings of a scorer, as a run keeps it, by which the same verdicts make another score; defaults filled in.

    >>> settings_of({"kind": "recall_at_k", "k": 5}), settings_of({"kind": "context_recall"})
    ('k: 5', 'as it is usual')
    """
    usual = SETTINGS.get(str(declared.get("kind")), {})
    told = {key: declared[key] for key in (*COUNTED_BY, *usual) if declared.get(key) is not None}
    if isinstance(weights := usual.get("weights"), Mapping):
        told["weights"] = {**weights, **told.get("weights", {})}
    whole = {**usual, **told}
    return ", ".join(f"{key}: {json.dumps(whole[key], sort_keys=True)}" for key in sorted(whole)) or "as it is usual"
