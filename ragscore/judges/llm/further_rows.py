"""The replies to the further tasks (map, contradict, rate, grade, answer a form), and the verdicts that they give.

Each row turns itself into a verdict, so that asking, re-asking and splitting need not know what is asked.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from ragscore.items import Evidence, Verdict
from ragscore.judges.llm.quotes import Quotes
from ragscore.judges.llm.replies import (
    SCHEMAS,
    ClaimRow,
    ClaimsReply,
    Label,
    ReplyError,
    Text,
    VerdictRow,
    _joined,
    _listed,
    _Reply,
    clean,
    json_values,
    label,
    strict_schema,
)
from ragscore.judges.tasks import ELSEWHERE, ONLY_HERE, AnswerForm, Claim

Names = Annotated[list[Text], BeforeValidator(_listed)]
Quote = Annotated[Text, BeforeValidator(_joined)]
Why = Annotated[Text, BeforeValidator(lambda value: value if isinstance(value, str) else "")]


def _word(value: object) -> object:
    return value.strip(" .\"'`*").casefold() if isinstance(value, str) else value


def _answer(value: object) -> object:
    """`yes`, `no` or `unsure`, as models spell them."""
    word = _word(value)
    if word in ("unsure", "unclear", "partially", "partly", "maybe", "idk"):
        return "unsure"
    return "yes" if label(value) else "no"


class FurtherRow(VerdictRow):
    """A row that knows the verdict it gives."""

    def verdict(self, id: str, claim: Claim | None, quotes: Quotes) -> Verdict:
        """The verdict, for the id that was given out."""
        raise NotImplementedError


class MapRow(FurtherRow):
    """Which contexts state a claim: all of them."""

    supported: Label
    contexts: Names = Field(default_factory=list)
    quote: Quote = ""

    def verdict(self, id: str, claim: Claim | None, quotes: Quotes) -> Verdict:
        """Evidence names every context that states the claim; the quote is kept where it stands."""
        if not self.supported:
            return Verdict(id, positive=False)
        row = ClaimRow(id=self.id, supported=True, contexts=self.contexts, quote=self.quote)
        checked = quotes.checked(row, claim.text if claim is not None else "")
        evidence = {each.passage: each for each in checked.evidence}
        for passage in quotes.known(self.contexts):
            evidence.setdefault(passage, Evidence(passage, "", verified=False))
        return Verdict(id, positive=True, evidence=tuple(evidence.values()), warnings=checked.warnings)


class CrossRow(MapRow):
    """Which contexts state a claim, and whether the other text does."""

    elsewhere: Label

    def verdict(self, id: str, claim: Claim | None, quotes: Quotes) -> Verdict:
        """As for a mapped claim; the other text is the label."""
        verdict = super().verdict(id, claim, quotes)
        return replace(verdict, label=ELSEWHERE if self.elsewhere else ONLY_HERE)


class ContradictionRow(FurtherRow):
    """Whether contexts contradict a claim, and the words that do."""

    contradicted: Label
    contexts: Names = Field(default_factory=list)
    quote: Quote = ""

    def verdict(self, id: str, claim: Claim | None, quotes: Quotes) -> Verdict:
        """Positive where the claim is contradicted."""
        if not self.contradicted:
            return Verdict(id, positive=False)
        row = ClaimRow(id=self.id, supported=True, contexts=self.contexts, quote=self.quote)
        checked = quotes.checked(row, claim.text if claim is not None else "")
        return Verdict(id, positive=True, evidence=checked.evidence, warnings=checked.warnings)


class StatementRow(FurtherRow):
    """Whether a statement answers the question."""

    answers: Annotated[Literal["yes", "unsure", "no"], BeforeValidator(_answer)]
    why: Why = ""

    def verdict(self, id: str, claim: Claim | None, quotes: Quotes) -> Verdict:
        """Positive for yes; the answer itself is the label."""
        return Verdict(id, positive=self.answers == "yes", why=self.why, label=self.answers)


class GradeRow(FurtherRow):
    """How relevant a context is, and whether the answer uses it."""

    relevance: Annotated[Literal["high", "medium", "low", "none"], BeforeValidator(_word)]
    used: Label
    why: Why = ""

    def verdict(self, id: str, claim: Claim | None, quotes: Quotes) -> Verdict:
        """Positive for any relevance but none; grade and use are the label."""
        grade = f"{self.relevance} used" if self.used else str(self.relevance)
        return Verdict(id, positive=self.relevance != "none", why=self.why, label=grade)


class MapReply(_Reply):
    """Claims and the contexts that state them."""

    verdicts: list[MapRow]


class CrossReply(_Reply):
    """Claims, the contexts that state them, and the other text."""

    verdicts: list[CrossRow]


class ContradictionReply(_Reply):
    """Verdicts on contradiction."""

    verdicts: list[ContradictionRow]


class StatementReply(_Reply):
    """Verdicts on statements."""

    verdicts: list[StatementRow]


class GradeReply(_Reply):
    """Grades of contexts."""

    verdicts: list[GradeRow]


#: The form of a row by task.
ROWS: Mapping[str, type[FurtherRow]] = {
    "map_claims": MapRow,
    "cross_claims": CrossRow,
    "contradict_claims": ContradictionRow,
    "rate_statements": StatementRow,
    "grade_contexts": GradeRow,
}
FURTHER_SCHEMAS: Mapping[str, dict[str, Any]] = {
    "extract_entities": strict_schema(ClaimsReply),
    "map_claims": strict_schema(MapReply),
    "cross_claims": strict_schema(CrossReply),
    "contradict_claims": strict_schema(ContradictionReply),
    "rate_statements": strict_schema(StatementReply),
    "grade_contexts": strict_schema(GradeReply),
}
_KINDS = {"boolean": "boolean", "number": "number", "text": "string"}


def schema_of(task: Any) -> dict[str, Any]:
    """The JSON schema of the reply to a task."""
    if isinstance(task, AnswerForm):
        properties = {name: {"type": _KINDS[kind]} for name, kind in task.fields}
        return {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }
    return SCHEMAS.get(task.name) or FURTHER_SCHEMAS[task.name]


def parse_form(text: str, task: AnswerForm) -> tuple[str, ...]:
    """The answer to a form, as one canonical JSON text.

    Raises:
        ReplyError: the reply holds no object, or a field is missing or of another kind.
    """
    wanted = task.fields[0][0]
    problem = "it holds no JSON object"
    for value in json_values(text, wanted):
        if not isinstance(value, Mapping):
            continue
        answer: dict[str, Any] = {}
        try:
            for name, kind in task.fields:
                answer[name] = _field(value.get(name), kind, name)
        except ReplyError as error:
            problem = str(error)
            continue
        return (json.dumps(answer, ensure_ascii=False, sort_keys=True),)
    raise ReplyError(problem)


def _field(value: object, kind: str, name: str) -> object:
    if kind == "boolean":
        try:
            return label(value)
        except ValueError:
            raise ReplyError(f'"{name}" must be true or false') from None
    if kind == "number":
        try:
            number = float(value) if isinstance(value, (int, float, str)) and not isinstance(value, bool) else None
        except ValueError:
            number = None
        if number is None or number != number or abs(number) == float("inf"):
            raise ReplyError(f'"{name}" must be a number')
        return int(number) if number == int(number) else number
    if not isinstance(value, str):
        raise ReplyError(f'"{name}" must be text')
    return clean(value).strip()
