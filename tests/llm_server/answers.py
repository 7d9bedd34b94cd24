"""What an honest model answers: read from the fences of the prompt, decided by words, the same every time.

The data of a prompt stands in fences, whose marker is a random word of the call:

    <<<MARKER claims>>>       lines `[c1] text`
    <<<MARKER context p1>>>   text
    <<<MARKER question>>>, <<<MARKER reference>>>, <<<MARKER expected>>>, <<<MARKER output>>>
    <<<MARKER end>>>          closes each

Only fences with the marker of the first one count, as honest models are asked to do: text inside a context cannot add
an id. A verdict about one claim or context does not depend on the others that are asked about.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Any

FENCE = re.compile(r"^<<<([0-9A-Za-z]{4,}) ([a-z]+)(?: ([^>\n]+))?>>>$", re.MULTILINE)
_CLAIM = re.compile(r"^\[([^\]\n]+)\] (.*)$", re.MULTILINE)
_KEYS = re.compile(r"^Keys: (.*)$", re.MULTILINE)
_KEY = re.compile(r'"(\w+)" \((boolean|number|text)\)')
_SENTENCE = re.compile(r"(?:[^\n.!?。！？।]|[.!?](?!\s|$))*(?:[.!?。！？।]|(?=\n|$))")
#: Scripts written without spaces between words: compared by pairs of characters.
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")


@dataclass(frozen=True, slots=True)
class Prompt:
    """The data of one prompt. `task` is extraction, attribution, relevance, or probe when there is no data."""

    task: str
    claims: Mapping[str, str] = field(default_factory=dict)
    contexts: Mapping[str, str] = field(default_factory=dict)
    question: str = ""
    reference: str = ""
    expected: str = ""
    output: str = ""
    rubric: str = ""  # the system messages
    marker: str | None = None
    content: str = ""  # what was asked, without the marker and without what was said about an earlier reply


def read(messages: Sequence[Mapping[str, Any]]) -> Prompt:
    """The data in the last user message that has a fence."""
    texts = [_text(message.get("content")) for message in messages]
    data = -1
    for place, message in enumerate(messages):
        if message.get("role") == "user" and FENCE.search(texts[place]):
            data = place
    if data < 0:
        return Prompt("probe", content="\x00".join(texts))
    text = texts[data]
    first = FENCE.search(text)
    assert first is not None
    marker = first.group(1)
    blocks: dict[str, str] = {}
    contexts: dict[str, str] = {}
    fences = [fence for fence in FENCE.finditer(text) if fence.group(1) == marker]
    for opening, closing in pairwise(fences):
        if opening.group(2) == "end" or closing.group(2) != "end":
            continue
        body = text[opening.end() + 1 : max(opening.end() + 1, closing.start() - 1)]
        if opening.group(2) == "context":
            contexts.setdefault(opening.group(3) or "", body)
        else:
            blocks.setdefault(opening.group(2), body)
    claims = dict(_CLAIM.findall(blocks.get("claims", "")))
    task = "attribution" if "claims" in blocks else "relevance" if contexts else "extraction"
    return Prompt(
        task,
        claims,
        contexts,
        blocks.get("question", ""),
        blocks.get("reference", ""),
        blocks.get("expected", ""),
        blocks.get("output", ""),
        "\n".join(text for text, message in zip(texts, messages, strict=True) if message.get("role") == "system"),
        marker,
        "\x00".join([*(t for t, m in zip(texts, messages, strict=True) if m.get("role") == "system"), text]).replace(
            marker, "MARKER"
        ),
    )


def honest(prompt: Prompt, schema: Mapping[str, Any] | None) -> dict[str, Any]:
    """The reply of an honest model; for a probe, an example of what `schema` asks for."""
    if (keys := _KEYS.search(prompt.content)) is not None:  # a form of the user's own
        usual: dict[str, Any] = {"boolean": True, "number": 1, "text": "so"}
        return {name: usual[kind] for name, kind in _KEY.findall(keys[1])}
    if prompt.task == "probe":
        example = example_of(schema or {})
        return example if isinstance(example, dict) else {"ok": True}
    if prompt.task == "extraction":
        return {"claims": list(dict.fromkeys(sentences(prompt.reference)))}
    if prompt.task == "attribution":
        return {"verdicts": [_claim(id, text, prompt) for id, text in prompt.claims.items()]}
    expected = sentences(prompt.expected) or [prompt.question]
    rows = [_rated(id, text, expected) for id, text in prompt.contexts.items()]
    if '"used"' in prompt.rubric:
        rows = [{**row, "relevance": "high" if row["relevant"] else "none", "used": row["relevant"]} for row in rows]
    return {"verdicts": rows}


@lru_cache(maxsize=20_000)
def words(text: str) -> frozenset[str]:
    """What texts are compared by: words, or pairs of characters where there are no spaces.

    Words of three letters and fewer are left out where there are longer ones: most of them stand in every text.
    """
    found: set[str] = set()
    for word in re.findall(r"\w+", text.casefold()):
        if _UNSPACED.search(word) and len(word) > 1:
            found.update(word[at : at + 2] for at in range(len(word) - 1))
        else:
            found.add(word)
    telling = {word for word in found if len(word) > 3 or not word.isascii() or word.isdigit()}
    return frozenset(telling or found)


def sentences(text: str) -> list[str]:
    """The sentences of `text`, verbatim."""
    return [found.strip() for found in _SENTENCE.findall(text) if words(found)]


def supports(claim: str, text: str) -> bool:
    """Whether at least half of the claim's words stand in `text`."""
    wanted = words(claim)
    return bool(wanted) and 2 * len(wanted & words(text)) >= len(wanted)


def example_of(schema: Mapping[str, Any]) -> Any:
    """A smallest value that a JSON schema allows."""
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type", "object")
    if kind == "object":
        return {name: example_of(part) for name, part in schema.get("properties", {}).items()}
    return {"string": "ok", "boolean": True, "array": [], "integer": 1, "number": 1, "null": None}.get(kind, {})


def _attributed(id: str, claim: str, contexts: Mapping[str, str]) -> dict[str, Any]:
    wanted = words(claim)
    best = max(contexts, key=lambda name: len(wanted & words(contexts[name])), default=None)
    if best is None or not supports(claim, contexts[best]):
        return {"id": id, "supported": False, "contexts": [], "quote": "", "why": "fewer than half of its words"}
    quote = max(sentences(contexts[best]), key=lambda sentence: len(wanted & words(sentence)))
    return {"id": id, "supported": True, "contexts": [best], "quote": quote[:200], "why": "its words stand there"}


def _claim(id: str, claim: str, prompt: Prompt) -> dict[str, Any]:
    """The verdict on a claim, with what else the rubric asks for: every context that states it, the other text, …"""
    row = _attributed(id, claim, prompt.contexts)
    if row["supported"] and "every context" in prompt.rubric:
        row["contexts"] = [name for name, text in prompt.contexts.items() if supports(claim, text)]
    if '"elsewhere"' in prompt.rubric:
        row["elsewhere"] = supports(claim, prompt.reference if id.startswith("o") else prompt.output)
    if '"contradicted"' in prompt.rubric:
        row["contradicted"] = False  # words do not tell
    if '"answers"' in prompt.rubric:
        row["answers"] = "yes" if supports(prompt.question, claim) else "unsure"
    return row


def _rated(id: str, text: str, expected: Sequence[str]) -> dict[str, Any]:
    served = next((sentence for sentence in expected if supports(sentence, text)), None)
    why = f"It serves: {served}" if served is not None else "It serves no part of the answer."
    return {"id": id, "relevant": served is not None, "why": why}


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "".join(part.get("text", "") for part in parts if isinstance(part, dict))
