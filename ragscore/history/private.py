"""What is kept of text under `store_text: hash`: a fingerprint that is the same for the same text, and nothing to read.

Kept as they are: ids, scores, statuses, ranks, counts, costs, and metadata of items that is no long text (numbers,
booleans, labels), by which results are sliced. Not kept at all: raw answers, the judge's replies, metadata of contexts,
evidence, reasons.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, overload

#: A string of metadata up to this length, on one line, is a label (a language, a topic) and stays.
LABEL_LENGTH = 40


@overload
def fingerprint(text: str) -> str: ...
@overload
def fingerprint(text: str | None) -> str | None: ...
def fingerprint(text: str | None) -> str | None:
    """`sha256:` and 32 hex digits; None and the empty string stay what they are."""
    if not text:
        return text
    return "sha256:" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def labels(metadata: Any) -> Any:
    """Metadata with every long text in it replaced by its fingerprint."""
    if isinstance(metadata, Mapping):
        return {key: labels(value) for key, value in metadata.items()}
    if isinstance(metadata, list | tuple):
        return [labels(value) for value in metadata]
    if isinstance(metadata, str) and (len(metadata) > LABEL_LENGTH or "\n" in metadata):
        return fingerprint(metadata)
    return metadata
