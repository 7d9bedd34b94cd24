"""Sheets of human verdicts: read from and written to JSONL or CSV, for people to correct in whatever they like.

A row is one verdict: `kind` (claim or context), `text` (of the claim or context), `human` (yes or no; blank rows are
passed over), `question`, and what the judge is shown beside: `contexts` for claims, `expected` for contexts.
`verdict` is what a judge said.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from ragscore.errors import DatasetError
from ragscore.items import digest, normalised

YES = frozenset({"yes", "y", "true", "1", "1.0", "supported", "relevant", "ja", "x"})
NO = frozenset({"no", "n", "false", "0", "0.0", "not supported", "unsupported", "missing", "not relevant", "nein"})
#: What a spreadsheet would take for a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True, slots=True)
class Label:
    """One verdict to hold a judge against.

    Attributes:
        kind: claim (supported?) or context (relevant?).
        text: Of the claim or the context.
        human: What a person says; None when nobody has said yet.
        verdict: What a judge said; None when none was asked.
        question: That the item asks.
        contexts: All that the claim may be supported by, in the order retrieved.
        expected: The answer that the context should help with.
        against: What `expected` is: reference or output.
        chosen: Why the row was sampled: unverified, unsure, random; empty where a person chose it.
        judge, prompt_version: Who gave the verdict.
        note: The judge's reason.
    """

    kind: str
    text: str
    human: bool | None = None
    verdict: bool | None = None
    question: str = ""
    contexts: tuple[str, ...] = ()
    expected: str | None = None
    against: str = "reference"
    item_id: str = ""
    run_id: str = ""
    chosen: str = ""
    judge: str = ""
    prompt_version: str = ""
    confidence: float | None = None
    note: str = ""

    @property
    def key(self) -> str:
        """What is judged: equal for the same question about the same texts, whatever anybody says to it."""
        beside = sorted(map(normalised, self.contexts)) if self.kind == "claim" else [self.expected or ""]
        return digest(self.kind, self.question, normalised(self.text), beside)[:16]

    @property
    def cluster(self) -> str:
        """What verdicts share: the item, or else the question."""
        return self.item_id or self.question or self.key


def labels_hash(labels: Iterable[Label]) -> str:
    """Equal for the same verdicts of people on the same questions."""
    return digest(sorted((label.key, label.human) for label in labels if label.human is not None))


def read_labels(path: Path) -> list[Label]:
    """Read a sheet, `.csv` or JSONL.

    Raises:
        DatasetError: it cannot be read, or a row is wrong; names file, row and field.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise DatasetError("no such file", where=str(path), mend="`ragscore label RUN` writes one") from None
    except UnicodeDecodeError:
        raise DatasetError("is not UTF-8 text", where=str(path), mend="save it as UTF-8") from None
    except OSError as error:
        raise DatasetError(f"cannot be read: {error.strerror}", where=str(path)) from None
    rows = _csv_rows(text) if path.suffix.lower() == ".csv" else _json_rows(text, path)
    labels = [_label(row, f"{path}:{number}") for number, row in rows]
    if not labels:
        raise DatasetError("holds no row", where=str(path), mend="one verdict a row: kind, text, human, question, …")
    return labels


def write_labels(labels: Sequence[Label], path: Path) -> None:
    """Write a sheet, `.csv` or JSONL; `human` stands first, for people to fill in.

    In CSV, cells that a spreadsheet would take for a formula begin with an apostrophe, which `read_labels` takes off.
    """
    names = ["human", *(field.name for field in fields(Label) if field.name != "human")]
    rows = [{name: _written(asdict(label)[name]) for name in names} for label in labels]
    if path.suffix.lower() != ".csv":
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
        return
    out = io.StringIO()
    writer = csv.DictWriter(out, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _cell(value) for name, value in row.items()} for row in rows)
    path.write_text(out.getvalue(), encoding="utf-8-sig")  # so that spreadsheets take it for UTF-8


def _written(value: Any) -> Any:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return list(value) if isinstance(value, tuple) else value


def _cell(value: Any) -> str:
    if value is None:
        return ""
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, list) else str(value)
    return f"'{text}" if text.startswith((*_FORMULA, "'")) else text


def _csv_rows(text: str) -> Iterable[tuple[int, dict[str, Any]]]:
    reader = csv.DictReader(io.StringIO(text))
    for row in reader:
        cells = {str(name).strip(): value for name, value in row.items() if name and isinstance(value, str)}
        yield (
            reader.line_num,
            {name: value[1:] if value.startswith("'") else value for name, value in cells.items()},
        )


def _json_rows(text: str, path: Path) -> Iterable[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise DatasetError(
                f"is not JSON: {error.msg}", where=f"{path}:{number}", mend="one object a line"
            ) from None
        if not isinstance(row, dict):
            raise DatasetError("is not an object", where=f"{path}:{number}", mend='write {"kind": "claim", …}')
        yield number, row


def _label(row: Mapping[str, Any], where: str) -> Label:
    kind = str(row.get("kind") or ("context" if row.get("expected") else "claim")).strip().lower()
    if kind not in ("claim", "context"):
        raise DatasetError(f"{kind!r} is not claim or context", where=f"{where}: kind", mend="write claim or context")
    text = row.get("text") or row.get(kind)
    if not isinstance(text, str) or not text.strip():
        raise DatasetError(f"the {kind} has no text", where=f"{where}: text", mend=f"write the {kind}")
    confidence = row.get("confidence")
    try:
        sure = float(confidence) if confidence not in (None, "") else None
    except (TypeError, ValueError):
        raise DatasetError(f"{confidence!r} is not a number", where=f"{where}: confidence") from None
    return Label(
        kind=kind,
        text=text,
        human=_yes_or_no(row.get("human"), f"{where}: human"),
        verdict=_yes_or_no(row.get("verdict"), f"{where}: verdict"),
        question=str(row.get("question") or row.get("input") or ""),
        contexts=_texts(row.get("contexts"), f"{where}: contexts"),
        expected=str(row.get("expected") or row.get("reference") or "") or None,
        against=str(row.get("against") or "reference"),
        **{
            name: str(row.get(name) or "")
            for name in ("item_id", "run_id", "chosen", "judge", "prompt_version", "note")
        },
        confidence=sure,
    )


def _texts(value: Any, where: str) -> tuple[str, ...]:
    if value in (None, ""):
        return ()
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = json.loads(value)
        except json.JSONDecodeError:
            raise DatasetError("is not a JSON list", where=where, mend='write ["first", "second"]') from None
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise DatasetError("is not a list of texts", where=where, mend='write ["first", "second"]')
    return tuple(value)


def _yes_or_no(value: Any, where: str) -> bool | None:
    if value is None or isinstance(value, bool):
        return value
    said = str(value).strip().lower()
    if said in YES:
        return True
    if said in NO:
        return False
    if said:
        raise DatasetError(f"{value!r} is not yes or no", where=where, mend="write yes or no, or leave it blank")
    return None
