"""What the model is told: the rubric of a task from its template, then the data between fences.

The system message is the same bytes for every item, so that a provider's prompt cache keeps it; all that differs
comes last, in the user message. The templates stand in `prompts/`, one file per version: a changed template is a new
file, since the version is part of what remembered judgements are kept under.

Data is untrusted. Each block stands between `<<<MARKER name>>>` and `<<<MARKER end>>>`, where MARKER is random and
occurs nowhere in the data: a text cannot close its own fence or open another one.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from ragscore.judges.llm.further_rows import schema_of
from ragscore.judges.llm.replies import clean
from ragscore.judges.tasks import AnswerForm, AttributeClaims, CrossClaims, ExtractClaims, RateContexts, Task

VERSIONS = {
    "extract_claims": "v1",
    "attribute_claims": "v1",
    "rate_contexts": "v1",
    "extract_entities": "v1",
    "map_claims": "v1",
    "cross_claims": "v1",
    "contradict_claims": "v1",
    "rate_statements": "v1",
    "grade_contexts": "v1",
    "answer_form": "v1",
}

Message = dict[str, str]

#: Seeded by the system when this is imported. Whoever writes a context cannot know the markers of a run to come, and
#: asking the system anew for each prompt takes longer than the rest of the prompt.
_random = random.Random()


def _digits(size: int) -> str:
    return _random.randbytes(size).hex()


@dataclass(frozen=True, slots=True)
class Prompt:
    """The messages of one task, the marker of their fences, and the form of the reply."""

    version: str
    messages: tuple[Message, ...]
    marker: str
    schema_name: str
    schema: dict[str, Any]


def prompt_version(task: Task) -> str:
    """The template and reply form in use for a task, e.g. `attribute_claims.v1`."""
    return f"{task.name}.{VERSIONS[task.name]}"


@cache
def template(version: str) -> str:
    """The rubric of that version, as it is sent."""
    return (files("ragscore.judges.llm") / "prompts" / f"{version}.md").read_text(encoding="utf-8").strip()


def prompt(task: Task, *, new_marker: Callable[[int], str] = _digits) -> Prompt:
    """The messages for `task`.

    Args:
        task: What to ask. Ids of claims and passages are shown as they are and must be echoed.
        new_marker: Gives random hexadecimal digits for a number of bytes; asked again until they are not in the data.
    """
    blocks = [(name, clean(text)) for name, text in _blocks(task)]
    marker = _marker((text for _, text in blocks), new_marker)
    data = "\n".join(f"<<<{marker} {name}>>>\n{text}\n<<<{marker} end>>>" for name, text in blocks)
    version = prompt_version(task)
    if isinstance(task, AnswerForm):
        # What the suite's author asks is no data: it stands outside of the fences, after them.
        fields = ", ".join(f'"{name}" ({kind})' for name, kind in task.fields)
        data = f"{data}\n\n{task.instructions.strip()}\nKeys: {fields}"
    messages = ({"role": "system", "content": template(version)}, {"role": "user", "content": data})
    return Prompt(version, messages, marker, task.name, schema_of(task))


def asked_again(messages: tuple[Message, ...], *, reply: str, error: str) -> tuple[Message, ...]:
    """The conversation after a reply that could not be used: the reply itself, and what is wrong with it."""
    return (
        *messages,
        {"role": "assistant", "content": reply[:2000] or "(empty)"},
        {"role": "user", "content": f"This reply cannot be used: {error}. Reply again, JSON only, in the form above."},
    )


def single_line(text: str) -> str:
    """`text` with every run of white space as one space, so that one claim stays one line."""
    return " ".join(text.split())


def _blocks(task: Task) -> list[tuple[str, str]]:
    if isinstance(task, AnswerForm):
        return list(task.blocks)
    blocks = [("question", task.question)]
    match task:
        case ExtractClaims():
            blocks.append(("reference", task.reference))
        case AttributeClaims():
            blocks.append(("claims", "\n".join(f"[{claim.id}] {single_line(claim.text)}" for claim in task.claims)))
            if isinstance(task, CrossClaims):
                blocks += [("reference", task.reference)] if task.reference else []
                blocks.append(("output", task.output))
            blocks += [(f"context {passage.id}", passage.text) for passage in task.passages]
        case RateContexts():
            if task.expected is not None:
                blocks.append(("expected", task.expected))
            blocks += [(f"context {passage.id}", passage.text) for passage in task.passages]
    return blocks


def _marker(texts: Iterable[str], new_marker: Callable[[int], str]) -> str:
    data = "\n".join(texts).lower()
    size = 2
    while (marker := new_marker(size)).lower() in data:
        size = min(size + 1, 16)
    return marker
