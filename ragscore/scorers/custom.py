"""Scorers of the user's own: a function, a class with `judge` and `score`, or a question to the judge in YAML.

What a function or class gives is read in the scorer's scale: a number from 0 to `scale`, True or False, or a `Score`
(`scored`, `not_scored`). Anything else, NaN and numbers outside included, is an error of that scorer on that item.
"""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Literal, overload

from ragscore.expressions import formula
from ragscore.items import Judgement, Response, Score, Status, digest
from ragscore.judges.claims import ClaimSource
from ragscore.judges.protocol import Judge
from ragscore.judges.tasks import AnswerForm, Task
from ragscore.scorers.arithmetic import as_fraction, rounded
from ragscore.scorers.outcome import outcome
from ragscore.scorers.protocol import Judged, Sample

#: Up to this denominator a fraction is what the double nearest to it was computed from.
SIMPLE = 1_000_000
FieldKind = Literal["boolean", "number", "text"]


def scored(value: float | bool | Fraction, *, reason: str = "") -> Score:
    """A score with a reason, for a scorer of one's own to return.

    Args:
        value: In the scorer's scale; True and False are all and nothing of it.
        reason: What is shown beside it.

    Returns:
        A row of which the scorer's name and kind are filled in later.

    Raises:
        ValueError: it is not finite.
        TypeError: it is no number.

    >>> scored(0.5, reason="one of two").value
    0.5
    """
    plain = _plain(value)
    exact = Fraction(plain) if isinstance(plain, bool) else None
    return Score(scorer="", kind="", status=Status.OK, exact=exact, value=float(_number(plain)), reason=reason)


def not_scored(reason: str) -> Score:
    """Says that an item cannot be scored (status `abstained`, no number), for a scorer of one's own to return.

    Args:
        reason: What is shown instead of a score.

    Returns:
        A row without a score, left out of means and counted against coverage.

    >>> not_scored("no sources to check").status
    <Status.ABSTAINED: 'abstained'>
    """
    return Score(scorer="", kind="", status=Status.ABSTAINED, reason=reason, counted=False)


class _Billed:
    """The judge as a scorer of the user's own asks it: what it answered is kept, so that its cost is, too."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self.answers: list[Judgement] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._judge, name)

    @property
    def name(self) -> str:
        return self._judge.name

    async def ask(self, task: Task) -> Judgement:
        answer = await self._judge.ask(task)
        self.answers.append(answer)
        return answer


@dataclass(frozen=True, eq=False)
class CustomScorer:
    """A function `(item, response)`, or an object with `score(sample, judged)` and perhaps `judge`, as a scorer.

    Args:
        inner: The function (sync or async) or object. `response` has `output` and `contexts`.
        name: The name in the history.
        scale: The score of a perfect item; > 0.
        version: Rises whenever the same item would score differently.
        kind: `python`, or `plugin` for one from an installed package.
    """

    inner: Any
    name: str
    scale: Fraction = Fraction(1)
    version: str = "1"
    kind: str = "python"

    async def judge(self, sample: Sample, *, judge: Judge, claims: ClaimSource) -> Judged:
        """The object's own judge part; a function is called here, a blocking one in a thread."""
        if hasattr(self.inner, "score"):
            if not hasattr(self.inner, "judge"):
                return Judged(Status.OK)
            asked = _Billed(judge)
            found = self.inner.judge(sample, judge=asked, claims=claims)
            found = await found if inspect.isawaitable(found) else found
            judged = found if isinstance(found, Judged) else Judged(Status.OK, value=found)
            known = {id(each) for each in judged.judgements}
            more = {f"asked {n}": each for n, each in enumerate(asked.answers, start=1) if id(each) not in known}
            return replace(judged, also={**judged.also, **more})
        response = Response(output=sample.output, contexts=sample.contexts.contexts)
        if inspect.iscoroutinefunction(self.inner):
            return Judged(Status.OK, value=await self.inner(sample.item, response))
        from ragscore.targets.threads import in_thread  # with the suite, which reading a history needs not

        value = await in_thread(lambda: self.inner(sample.item, response))
        return Judged(Status.OK, value=await value if inspect.isawaitable(value) else value)

    def score(self, sample: Sample, judged: Judged) -> Score:
        """What was found, read in the scorer's scale.

        Raises:
            ValueError, TypeError: it is no score; becomes the item's `scorer_error`.
        """
        if judged.status is not Status.OK:
            return outcome(self, sample, judged)
        value = self.inner.score(sample, judged) if hasattr(self.inner, "score") else judged.value
        given = value if isinstance(value, Score) else Score("", "", Status.OK, exact=_exact(value, self.scale))
        if given.status is not Status.OK:
            told = replace(judged, status=given.status, why=given.reason)
            return outcome(self, sample, told)
        exact = given.exact if given.exact is not None else _exact(given.value, self.scale)
        if not 0 <= exact <= 1:
            raise ValueError(f"gave {float(exact * self.scale):g}, outside of 0 to {float(self.scale):g}")
        row = outcome(self, sample, judged, exact=exact, reason=given.reason, findings=given.findings)
        return replace(row, value=rounded(exact, self.scale))


@overload
def scorer(function: Callable[..., Any], /) -> CustomScorer: ...
@overload
def scorer(
    *, name: str | None = None, scale: float | Fraction = 1, version: str = "1"
) -> Callable[[Callable[..., Any]], CustomScorer]: ...
def scorer(
    function: Callable[..., Any] | None = None,
    *,
    name: str | None = None,
    scale: float | Fraction = 1,
    version: str = "1",
) -> CustomScorer | Callable[[Callable[..., Any]], CustomScorer]:
    """Make a scorer of a function `(item, response) -> float | bool | Score`, sync or async; as a decorator.

    Args:
        function: The function; None when the decorator has arguments.
        name: Its name in the history; that of the function when left out.
        scale: The score of a perfect item; what the function gives lies between 0 and this.
        version: Rises whenever the same item would score differently.

    Returns:
        The scorer; of the decorator with arguments, what makes it.

    >>> @scorer
    ... def is_short(item, response):
    ...     return len(response.output or "") < 20
    >>> is_short.name, is_short.scale
    ('is_short', Fraction(1, 1))
    """

    def made(function: Callable[..., Any]) -> CustomScorer:
        named = name or str(getattr(function, "__name__", type(function).__name__))
        return CustomScorer(function, named, as_fraction(scale), version)

    return made if function is None else made(function)


@dataclass(frozen=True, slots=True)
class PromptScorer:
    """A question to the judge, the form of its reply, and an expression over it that gives the score.

    The judge sees the item's question, output, reference and contexts, those that there are, as data between fences.

    Args:
        question: What the judge is told to decide.
        reply: The fields of its reply: `boolean`, `number` or `text`. A text field `why` becomes the reason.
        formula: The score in the scorer's scale, by the fields; an expression of Jinja2, sandboxed.
        name: The name in the history.
        scale: The score of a perfect item; > 0.
    """

    question: str
    reply: Mapping[str, FieldKind]
    formula: str
    name: str = "prompt"
    scale: Fraction = Fraction(1)
    kind: str = "prompt"
    version: str = field(init=False)

    def __post_init__(self) -> None:
        # Another question is another scorer: its scores are not compared with those of this one.
        mark = digest(self.question, dict(self.reply), self.formula)[:8]
        object.__setattr__(self, "version", f"1-{mark}")

    async def judge(self, sample: Sample, *, judge: Judge, claims: ClaimSource) -> Judged:
        """One call."""
        item = sample.item
        given = [("question", item.input), ("output", sample.output), ("reference", item.reference)]
        given += [(f"context {n}", context.text) for n, context in enumerate(sample.contexts.contexts, start=1)]
        blocks = tuple((name, text) for name, text in given if text is not None and text.strip())
        judgement = await judge.ask(AnswerForm(self.question, blocks, tuple(self.reply.items())))
        return Judged(judgement.status, judgement=judgement)

    def score(self, sample: Sample, judged: Judged) -> Score:
        """The expression's value.

        Raises:
            ValueError: the expression fails or gives no number from 0 to the scale; becomes the item's `scorer_error`.
        """
        if judged.status is not Status.OK or judged.judgement is None:
            return outcome(self, sample, judged)
        answer = json.loads(judged.judgement.claims[0])
        found = formula(self.formula, answer)
        exact = _exact(found, self.scale)
        if not 0 <= exact <= 1:
            raise ValueError(f"gave {float(exact * self.scale):g}, outside of 0 to {float(self.scale):g}")
        said = answer.get("why") if isinstance(answer.get("why"), str) else None
        shown = said or ", ".join(f"{name}: {value}" for name, value in answer.items())
        return outcome(self, sample, judged, exact=exact, reason=shown)


def _plain(value: Any) -> Any:
    """What numpy and its like give (`np.True_`, an array of one number) as Python has it; all else as it is."""
    item = getattr(value, "item", None)
    return item() if callable(item) else value


def _exact(value: Any, scale: Fraction) -> Fraction:
    """The share of `scale` that `value` is; True and False are all and nothing of it."""
    value = _plain(value)
    return Fraction(value) if isinstance(value, bool) else _number(value) / scale


def _number(value: Any) -> Fraction:
    if isinstance(value, Fraction):
        return value
    if not isinstance(value, (int, float)):
        raise TypeError(f"gave {value!r}, which is no number, True, False or Score")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"gave {value}, which is no finite number")
    if isinstance(value, float):
        # 1 / 3 is a third, and three of them are 1: of all fractions that are this double the simplest is meant.
        simple = Fraction(value).limit_denominator(SIMPLE)
        return simple if float(simple) == value else as_fraction(value)
    return Fraction(value)
