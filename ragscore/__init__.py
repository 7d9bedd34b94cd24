"""ragscore: is your retrieval better or worse than last time, on which questions, for which facts?

>>> import ragscore
>>> scorer = ragscore.ContextRecall(context=["The receipt is needed."])
>>> scorer.run_sync(input="What do I need?", reference="The receipt is needed.").score
1.0
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ragscore.api import (
        AnswerCorrectness,
        AnswerRelevancy,
        AnswerSimilarity,
        AveragePrecision,
        ContextEntitiesRecall,
        ContextPrecision,
        ContextRecall,
        ContextRelevance,
        ContextUtilization,
        EvalResult,
        Evaluation,
        Faithfulness,
        Hallucination,
        HitRate,
        ItemResult,
        MeanReciprocalRank,
        NdcgAtK,
        NoiseSensitivity,
        PrecisionAtK,
        PromptScorer,
        RecallAtK,
        Result,
        Threshold,
        evaluate,
        evaluate_sync,
        run_evals,
        run_evals_sync,
    )
    from ragscore.items import Context, Finding, Item, Response, Score, Status, Usage
    from ragscore.judges.jury import Jury
    from ragscore.judges.offline import OfflineJudge
    from ragscore.judges.scripted import ScriptedJudge
    from ragscore.scorers.custom import not_scored, scored, scorer

    __version__: str

#: Where each public name lives. Modules are imported when a name is first used, so that `import ragscore` stays light.
_HOMES = {
    **dict.fromkeys(("Context", "Finding", "Item", "Response", "Score", "Status", "Usage"), "ragscore.items"),
    **dict.fromkeys(("not_scored", "scored", "scorer"), "ragscore.scorers.custom"),
    "Jury": "ragscore.judges.jury",
    "OfflineJudge": "ragscore.judges.offline",
    "ScriptedJudge": "ragscore.judges.scripted",
}

__all__ = [
    "AnswerCorrectness",
    "AnswerRelevancy",
    "AnswerSimilarity",
    "AveragePrecision",
    "Context",
    "ContextEntitiesRecall",
    "ContextPrecision",
    "ContextRecall",
    "ContextRelevance",
    "ContextUtilization",
    "EvalResult",
    "Evaluation",
    "Faithfulness",
    "Finding",
    "Hallucination",
    "HitRate",
    "Item",
    "ItemResult",
    "Jury",
    "MeanReciprocalRank",
    "NdcgAtK",
    "NoiseSensitivity",
    "OfflineJudge",
    "PrecisionAtK",
    "PromptScorer",
    "RecallAtK",
    "Response",
    "Result",
    "Score",
    "ScriptedJudge",
    "Status",
    "Threshold",
    "Usage",
    "evaluate",
    "evaluate_sync",
    "not_scored",
    "run_evals",
    "run_evals_sync",
    "scored",
    "scorer",
]


def __getattr__(name: str) -> Any:
    # Asking the installed metadata takes longer than the rest of `ragscore --help`.
    if name == "__version__":
        from importlib.metadata import PackageNotFoundError, version

        try:
            return version("ragscore-evals")
        except PackageNotFoundError:  # a source tree that was never installed
            return "0.0.0"
    if name in __all__:
        from importlib import import_module

        found = getattr(import_module(_HOMES.get(name, "ragscore.api")), name)
        globals()[name] = found
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
