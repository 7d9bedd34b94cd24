"""A scorer that can be run: what it counts, who judges, and where its contexts come from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from ragscore.api.blocking import waited
from ragscore.api.judging import Model, judge_of
from ragscore.contexts import NOTHING, Resolver, resolver_for
from ragscore.contexts.function import from_function
from ragscore.errors import ConfigError, UsageError
from ragscore.items import Context, Score, digest
from ragscore.judges import ClaimSource, Judge
from ragscore.scorers import Judged, Sample, Scorer
from ragscore.suite import ContextsPart, JudgePart
from ragscore.targets.shapes import contexts_of

if TYPE_CHECKING:
    from ragscore.api.results import Result

#: What `context_extractor` may be: a function `(input, output)` (and `item` if it takes one), sync or async, that gives
#: texts or objects with a text, best first; `response`, `item` or `tool_results`; or the keys of a suite's `contexts:`.
Extractor = Callable[..., Any] | str | Mapping[str, Any] | ContextsPart
#: Names under which other tools pass the reference.
REFERENCE_NAMES = ("ground_truth", "groundTruth", "expected_output")


class RunnableScorer:
    """A scorer with its judge and its contexts. Made by the constructors of `ragscore` (`ContextRecall(…)`, …).

    It is a `Scorer` itself, so that `run_evals` and suites take it as any other.

    Args:
        scorer: What is asked and counted.
        model: Who judges: `offline`, a model that LiteLLM reaches, the keys of a suite's `judge:`, or a judge.
        contexts: Where the contexts come from.
    """

    def __init__(self, scorer: Scorer, *, model: Model = "offline", contexts: Resolver = NOTHING) -> None:
        self.scorer = scorer
        self.model: JudgePart | Judge = judge_of(model)
        self.contexts = contexts

    @property
    def name(self) -> str:
        """The name by which results are found."""
        return self.scorer.name

    @property
    def kind(self) -> str:
        """The kind of scorer, as in a suite."""
        return self.scorer.kind

    @property
    def version(self) -> str:
        """Rises whenever the same judgements would score differently."""
        return self.scorer.version

    @property
    def scale(self) -> Fraction:
        """The score of a perfect item."""
        return self.scorer.scale

    def __repr__(self) -> str:
        return f"<ragscore {self.kind} {self.name!r} scale {self.scale}>"

    async def judge(self, sample: Sample, *, judge: Judge, claims: ClaimSource) -> Judged:
        """The judge part: ask for what the score needs.

        Args:
            sample: The item, its output and the contexts.
            judge: Who is asked.
            claims: Where the claims of references come from.

        Returns:
            The judgements, or the status that says why there are none.

        Raises:
            JudgeRefused, JudgeUnavailable: the judge cannot be asked at all.
        """
        return await self.scorer.judge(sample, judge=judge, claims=claims)

    def score(self, sample: Sample, judged: Judged) -> Score:
        """The score part: compute, exactly and without asking anybody.

        Args:
            sample: The item, its output and the contexts.
            judged: What the judge part gave.

        Returns:
            One row: `exact` in 0..1, `value` in 0..scale, both None where `status` says why there is none.
        """
        return self.scorer.score(sample, judged)

    async def run(
        self,
        *,
        input: Any,
        output: Any = None,
        reference: str | None = None,
        contexts: Sequence[Any] | None = None,
        **more: Any,
    ) -> Result:
        """Judge and score one item.

        Args:
            input: The question: text, or an agent's messages.
            output: What the system answered: text, or an agent's messages.
            reference: The trusted answer; also accepted as `ground_truth`, `groundTruth` or `expected_output`.
            contexts: What was retrieved, best first, for `context_extractor="item"`: texts or objects with a text.
            more: Further fields of an item: `id`, `claims`, `reference_context_ids`, `metadata`, `answerable`.

        Returns:
            The score (0..scale, 2 decimals; None where `status` says why), with its verdicts and what it cost.

        Raises:
            DatasetError: a field is wrong.
            UsageError: the reference is given under two names.
            JudgeRefused, JudgeUnavailable: the judge cannot be asked. What befalls this item alone is a status.
        """
        from ragscore.api.running import run_evals

        row = {"input": input, "output": output, "reference": reference, "contexts": contexts, **more}
        for name in REFERENCE_NAMES:
            if (given := row.pop(name, None)) is not None:
                if row["reference"] is not None:
                    raise UsageError(f"`reference` and `{name}` are the same", mend="give one of them")
                row["reference"] = given
        row = {key: value for key, value in row.items() if value is not None}
        result = await run_evals(data=[row], scorers=[self], progress=False)
        return result.items[0].scores[self.name]

    def run_sync(self, **named: Any) -> Result:
        """`run`, for scripts.

        Args:
            named: As for `run`.

        Returns:
            As `run`.

        Raises:
            UsageError: an event loop is running (Jupyter, async code): await `run` there.
        """
        return waited(lambda: self.run(**named), name=f"{self.name}.run_sync", instead="scorer.run")


def contexts_from(
    kind: str,
    context: Sequence[Any] | None,
    extractor: Extractor | None,
) -> Resolver:
    """Where a scorer's contexts come from (DESIGN §4).

    Of both, precision takes the extractor, and recall takes it only for agent messages, else the static contexts.

    Args:
        kind: The scorer's kind.
        context: Static contexts, best first; the same for every item.
        extractor: Gives the contexts of an item.

    Raises:
        ConfigError: neither is given, `context` is empty or has an entry without text, or the extractor is none.
    """
    if context is None and extractor is None:
        raise ConfigError(
            f"{kind} has no contexts to judge",
            mend="give context=[…], or context_extractor=… (a function of input and output, 'response' or 'item')",
        )
    extracted = None if extractor is None else _extractor(kind, extractor)
    if context is None:
        assert extracted is not None
        return extracted
    if isinstance(context, str):
        context = [context]
    given = contexts_of(list(context))
    if not context or given is None or not all(each.text.strip() for each in given):
        what = "`context` is empty" if not context else "`context` has an entry without text"
        raise ConfigError(what, mend="give at least one text, or leave it out and give context_extractor=…")
    if extracted is not None and kind != "context_recall":
        return extracted
    static: tuple[Context, ...] = given
    source = f"static:{digest([each.text for each in static])[:8]}"
    return Resolver(source, lambda item, response: static, of_messages=extracted)


def _extractor(kind: str, extractor: Extractor) -> Resolver:
    if isinstance(extractor, str):
        if extractor not in ("response", "item", "tool_results"):
            raise ConfigError(
                f"context_extractor={extractor!r} is not known",
                mend="write 'response', 'item', 'tool_results', {'path': 'hits[*].text'} or a function",
            )
        extractor = {extractor: True}
    if isinstance(extractor, Mapping):
        try:
            extractor = ContextsPart.model_validate(dict(extractor))
        except ValidationError as error:
            said = error.errors(include_url=False)[0]["msg"]
            raise ConfigError(str(said), where="context_extractor", mend="see docs/contexts.md") from None
    if isinstance(extractor, ContextsPart):
        return resolver_for(kind, extractor, where="context_extractor")
    if not callable(extractor):
        raise ConfigError(
            f"context_extractor is a {type(extractor).__name__}", mend="give a function of input and output"
        )
    named = getattr(extractor, "__name__", type(extractor).__name__)
    # Two functions of one name (lambdas) are two sources.
    return Resolver(
        f"function:{named}@{id(extractor):x}", from_function(extractor, name=named, where="context_extractor")
    )
