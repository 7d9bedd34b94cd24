"""A judge that answers from a table or from functions, for tests: of scorers, of pipelines, of one's own code."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from ragscore.errors import RagscoreError
from ragscore.items import Evidence, Judgement, Status, Usage, Verdict
from ragscore.judges.tasks import (
    ELSEWHERE,
    ONLY_HERE,
    AnswerForm,
    AttributeClaims,
    ContradictClaims,
    CrossClaims,
    ExtractClaims,
    ExtractEntities,
    GradeContexts,
    MapClaims,
    Passage,
    RateContexts,
    RateStatements,
    Task,
)

T = TypeVar("T")
#: A table by text, or a function of the text and the task. None: no verdict is given, as a judge that leaves one out.
Script = Mapping[str, T | None] | Callable[[str, Task], T | None]


class ScriptedJudge:
    """Decides as it is told, and counts.

    Args:
        claims: The claims by reference; by default the whole reference is one claim.
        supported: Whether a claim is supported, by claim text.
        relevant: Whether a passage is relevant, by passage text.
        mapped: The texts of the passages that state a claim, by claim text (`map_claims`, `cross_claims`; whether the
            other text states it, `supported` says, asked as for that text alone).
        contradicted: Whether a claim is contradicted, by claim text.
        answers: `yes`, `unsure` or `no`, by claim text (`rate_statements`).
        grades: `high used`, `low`, …, by passage text (`grade_contexts`).
        entities: The entities, by reference.
        forms: The answer to a form as a mapping, by its instructions.
        default: The verdict on texts that a table does not name.
        failing: Tasks that end with a status (ABSTAINED, JUDGE_ERROR or BUDGET), by task name or by a function of the
            task that gives a status or None.
        raises: Raised by every `ask`, e.g. `JudgeUnavailable`.
        name: The judge's name.

    A missing verdict makes the judgement a JUDGE_ERROR, as with any judge; the others are kept.

    >>> import asyncio
    >>> judge = ScriptedJudge(claims={"Water is wet and blue.": ["Water is wet.", "Water is blue."]})
    >>> asyncio.run(judge.ask(ExtractClaims("What is water?", "Water is wet and blue."))).claims
    ('Water is wet.', 'Water is blue.')
    >>> judge.asked
    Counter({'extract_claims': 1})
    """

    def __init__(
        self,
        *,
        claims: Script[tuple[str, ...] | list[str]] | None = None,
        supported: Script[bool] | None = None,
        relevant: Script[bool] | None = None,
        mapped: Script[tuple[str, ...] | list[str]] | None = None,
        contradicted: Script[bool] | None = None,
        answers: Script[str] | None = None,
        grades: Script[str] | None = None,
        entities: Script[tuple[str, ...] | list[str]] | None = None,
        forms: Script[Mapping[str, object]] | None = None,
        default: bool = False,
        failing: Mapping[str, Status] | Callable[[Task], Status | None] | None = None,
        raises: RagscoreError | None = None,
        name: str = "scripted",
    ) -> None:
        self._claims = claims if claims is not None else (lambda text, task: (text,))
        self._supported = supported if supported is not None else {}
        self._relevant = relevant if relevant is not None else {}
        self._mapped = mapped if mapped is not None else {}
        self._contradicted = contradicted if contradicted is not None else {}
        self._answers = answers if answers is not None else {}
        self._grades = grades if grades is not None else {}
        self._entities = entities if entities is not None else {}
        self._forms = forms if forms is not None else {}
        self._default = default
        self._failing = failing if failing is not None else {}
        self._raises = raises
        self._name = name
        #: Every task, in the order asked.
        self.tasks: list[Task] = []
        #: How often `prepare` was awaited.
        self.prepared = 0

    @property
    def name(self) -> str:
        """The judge's name."""
        return self._name

    @property
    def identity(self) -> str:
        """Two scripted judges of one name are the same judge."""
        return json.dumps({"model": self._name}, sort_keys=True)

    @property
    def asked(self) -> Counter[str]:
        """How many tasks were asked, by task name."""
        return Counter(task.name for task in self.tasks)

    def prompt_version(self, task: Task) -> str:
        """A scripted judge has no prompt; this stands for it.

        Args:
            task: What would be asked.

        Returns:
            The task's name and `.scripted`.
        """
        return f"{task.name}.scripted"

    async def prepare(self) -> None:
        """Nothing to make ready; counted."""
        self.prepared += 1

    async def ask(self, task: Task) -> Judgement:
        """The scripted decisions on one task.

        Args:
            task: What is asked; kept in `tasks`.

        Returns:
            One verdict per claim or context that the tables decide, in order.

        Raises:
            RagscoreError: the one given as `raises`.
        """
        self.tasks.append(task)
        if self._raises is not None:
            raise self._raises
        failing = self._failing(task) if callable(self._failing) else self._failing.get(task.name)
        status = failing if failing is not None else Status.OK
        claims: tuple[str, ...] = ()
        verdicts: tuple[Verdict, ...] = ()
        missing: list[str] = []
        if status is Status.OK:
            match task:
                case ExtractEntities():
                    claims = tuple(_told(self._entities, task.reference, task, ()) or ())
                case AnswerForm():
                    nothing: Mapping[str, object] = {}
                    form = _told(self._forms, task.instructions, task, nothing)
                    claims = (json.dumps(form, ensure_ascii=False, sort_keys=True),)
                case MapClaims():
                    verdicts = tuple(self._map(task))
                case ContradictClaims():
                    verdicts, missing = self._decide(self._contradicted, task, [(c.id, c.text) for c in task.claims])
                case RateStatements():
                    verdicts = tuple(_labelled(self._answers, task, [(c.id, c.text) for c in task.claims], "no"))
                case GradeContexts():
                    verdicts = tuple(_labelled(self._grades, task, [(p.id, p.text) for p in task.passages], "none"))
                case ExtractClaims():
                    claims = tuple(_told(self._claims, task.reference, task, (task.reference,)) or ())
                case AttributeClaims():
                    verdicts, missing = self._decide(self._supported, task, [(c.id, c.text) for c in task.claims])
                case RateContexts():
                    verdicts, missing = self._decide(self._relevant, task, [(p.id, p.text) for p in task.passages])
        error = f"scripted to end as {status}" if failing is not None else None
        if missing:
            status, error = Status.JUDGE_ERROR, f"no verdict for {', '.join(missing)}"
        return Judgement(
            judge=self._name,
            status=status,
            claims=claims,
            verdicts=verdicts,
            usage=Usage(calls=1),
            prompt_version=self.prompt_version(task),
            params="{}",
            error=error,
        )

    def _map(self, task: MapClaims) -> Iterator[Verdict]:
        for claim in task.claims:
            nowhere: tuple[str, ...] | list[str] = ()
            texts = _told(self._mapped, claim.text, task, nowhere) or ()
            evidence = tuple(Evidence(p.id, p.text, verified=True) for p in task.passages if p.text in texts)
            label = None
            if isinstance(task, CrossClaims):
                alone = AttributeClaims(task.question, (claim,), (Passage("p1", task.other(claim)),))
                label = ELSEWHERE if _told(self._supported, claim.text, alone, self._default) else ONLY_HERE
            yield Verdict(claim.id, bool(evidence), why="as scripted", evidence=evidence, label=label)

    def _decide(
        self, script: Script[bool], task: Task, texts: list[tuple[str, str]]
    ) -> tuple[tuple[Verdict, ...], list[str]]:
        told = [(id, _told(script, text, task, self._default)) for id, text in texts]
        verdicts = tuple(Verdict(id, positive, why="as scripted") for id, positive in told if positive is not None)
        return verdicts, [id for id, positive in told if positive is None]


def _labelled(script: Script[str], task: Task, texts: list[tuple[str, str]], otherwise: str) -> Iterator[Verdict]:
    for id, text in texts:
        told = _told(script, text, task, otherwise) or otherwise
        yield Verdict(id, told not in ("no", "none", "unsure"), why="as scripted", label=told)


def _told(script: Script[T], text: str, task: Task, default: T) -> T | None:
    if callable(script):
        return script(text, task)
    return script.get(text, default)
