"""From the part of a suite that names a scorer to the scorer itself."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

from ragscore import plugins
from ragscore.errors import ConfigError
from ragscore.scorers.answers import AnswerMatch, AnswerRelevancy, Measure
from ragscore.scorers.arithmetic import as_fraction
from ragscore.scorers.context_precision import ContextPrecision
from ragscore.scorers.context_recall import ContextRecall
from ragscore.scorers.context_relevance import MISSING, MOST_MISSING, UNUSED, WEIGHTS, ContextRelevance
from ragscore.scorers.context_use import ContextUtilization, NoiseSensitivity
from ragscore.scorers.custom import CustomScorer, PromptScorer
from ragscore.scorers.entities_recall import ContextEntitiesRecall
from ragscore.scorers.faithfulness import Faithfulness, Hallucination
from ragscore.scorers.fused import Fused
from ragscore.scorers.protocol import Scorer
from ragscore.scorers.rank_metrics import RankMetric
from ragscore.secrets import Secrets
from ragscore.suite import ScorerPart, Suite
from ragscore.targets.python import load_object


def make_scorer(
    part: ScorerPart, suite: Suite, *, base_dir: Path, where: str, secrets: Secrets | None = None
) -> Scorer:
    """The scorer that a suite names, with the suite's settings for all scorers.

    Args:
        part: What the suite says of it.
        suite: The suite.
        base_dir: Where the module of a scorer in Python is looked for first.
        where: The place in the suite, for messages.
        secrets: Kept out of messages.

    Raises:
        ConfigError: there is no such module, function, class or package, or it cannot be made.
    """
    name, scale, missing = part.name, as_fraction(part.scale), suite.missing_reference
    fused = fused_in(suite)
    match part.kind:
        case "context_recall":
            return ContextRecall(name=name, scale=scale, missing_reference=missing, fused=fused)
        case "context_precision":
            return ContextPrecision(
                name=name,
                scale=scale,
                against=part.against,
                duplicates=suite.duplicates,
                missing_reference=missing,
                fused=fused,
            )
        case "context_relevance":
            weights: dict[str, Fraction] = dict(WEIGHTS)
            weights.update((grade, as_fraction(each)) for grade, each in (part.weights or {}).items())
            return ContextRelevance(
                name=name,
                scale=scale,
                weights=weights,
                unused=UNUSED if part.unused is None else as_fraction(part.unused),
                missing=MISSING if part.missing is None else as_fraction(part.missing),
                most_missing=MOST_MISSING if part.most_missing is None else as_fraction(part.most_missing),
            )
        case "context_utilization":
            return ContextUtilization(name=name, scale=scale, missing_reference=missing, fused=suite.fused)
        case "context_entities_recall":
            return ContextEntitiesRecall(name=name, scale=scale, missing_reference=missing)
        case "noise_sensitivity":
            return NoiseSensitivity(name=name, scale=scale, fused=suite.fused)
        case "faithfulness":
            return Faithfulness(name=name, scale=scale)
        case "hallucination":
            return Hallucination(name=name, scale=scale)
        case "answer_relevancy":
            return AnswerRelevancy(
                name=name, scale=scale, unsure=as_fraction(0.3 if part.unsure is None else part.unsure)
            )
        case "answer_similarity" | "answer_correctness":
            usual: Measure = "f1" if part.kind == "answer_similarity" else "precision"
            return AnswerMatch(
                kind=part.kind, measure=part.measure or usual, name=name, scale=scale, missing_reference=missing
            )
        case "prompt":
            return PromptScorer(part.question or "", part.reply or {}, part.score or "", name=name, scale=scale)
        case "python" | "plugin":
            return custom_scorer(part, base_dir=base_dir, where=where, secrets=secrets)
        case _:
            return RankMetric(part.kind, name=name, scale=scale, k=part.k, missing_reference=missing)


def fused_in(suite: Suite) -> Fused:
    """What the scorers of a suite ask at once: with the output where one of them needs it, so that all ask the same."""
    if suite.fused and any(each.kind in ("context_utilization", "noise_sensitivity") for each in suite.scorers):
        return "answer"
    return suite.fused


def custom_scorer(part: ScorerPart, *, base_dir: Path, where: str, secrets: Secrets | None = None) -> Scorer:
    """The scorer that a function or class of the user's, or of an installed package, is.

    Raises:
        ConfigError: it is not there, cannot be made, or is neither a function nor has a `score`.
    """
    found: Any
    if part.kind == "plugin":
        found = plugins.load("scorers", part.call or "", where=where)
    else:
        found = load_object(part.call or "", base_dir=base_dir, where=where)
    found = plugins.instance(found, part.options or {}, name=part.call or "", where=where, secrets=secrets)
    scale = as_fraction(getattr(found, "scale", 1) if part.brings_its_scale else part.scale)
    if isinstance(found, CustomScorer):  # made by the decorator
        return CustomScorer(found.inner, part.name, scale, found.version, part.kind)
    if not callable(found) and not hasattr(found, "score"):
        raise ConfigError(f"{part.call} is no scorer", where=where, mend="name a function, or a class with `score`")
    version = str(getattr(found, "version", "1"))
    return CustomScorer(found, part.name, scale, version, part.kind)
