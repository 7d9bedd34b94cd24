"""Result files of ragas, DeepEval, promptfoo and MLflow, read into items and scores.

The shapes are those that the tools write:

- ragas: `result.to_pandas()` as CSV, JSON (records or columns) or JSONL: `user_input, retrieved_contexts, response,
  reference` (older: `question, contexts, answer, ground_truth`), every further number column is a metric.
- DeepEval: `{"testCases": [{"input", "actualOutput", "metricsData": [{"name", "score", "reason"}]}]}`, or the same in
  snake case (`test_results`, `metrics_data`).
- promptfoo: `promptfoo eval -o results.json`: `{"results": {"results": [{"vars", "response", "gradingResult":
  {"componentResults": [{"assertion": {"type", "metric"}, "score", "reason"}]}}]}}`; as JSONL the inner list, as CSV a
  column per variable, `[provider] prompt` for the output, and `Named Scores`.
- MLflow: `eval_results_table.json`: `{"columns": […], "data": [[…]]}` with columns `metric/v1/score` and
  `metric/v1/justification`; scores of its judges go from 1 to 5.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from ragscore.datasets.written import literal
from ragscore.errors import DatasetError
from ragscore.scorers.arithmetic import as_fraction, mean

TOOLS = ("ragas", "deepeval", "promptfoo", "mlflow")
#: Our names for metrics that mean much the same; all others keep theirs.
OURS: Mapping[str, str] = {
    "llm_context_recall": "context_recall",
    "contextual_recall": "context_recall",
    "llm_context_precision_with_reference": "context_precision",
    "llm_context_precision_without_reference": "context_precision",
    "contextual_precision": "context_precision",
    "contextual_relevancy": "context_relevance",
    "context_faithfulness": "faithfulness",
    "response_relevancy": "answer_relevancy",
    "answer_relevance": "answer_relevancy",
}
#: MLflow's own metrics that a model grades, from 1 to 5.
GRADED = frozenset({"answer_similarity", "answer_correctness", "answer_relevance", "relevance", "faithfulness"})
INPUTS = ("user_input", "question", "input", "inputs", "query", "prompt")
OUTPUTS = ("response", "answer", "output", "outputs", "prediction", "predictions", "actual_output", "actualOutput")
REFERENCES = ("reference", "ground_truth", "ground_truths", "targets", "target", "expected_output", "expectedOutput")
CONTEXTS = ("retrieved_contexts", "contexts", "retrieval_context", "retrievalContext", "context", "retrieved_context")
_FIELDS = {*INPUTS, *OUTPUTS, *REFERENCES, *CONTEXTS, "reference_contexts", "rubrics", "id", "name"}


@dataclass(frozen=True, slots=True)
class ForeignScore:
    """One score of another tool: `exact` in 0..1 by its `scale`; None where it has none, and `reason` may say why."""

    exact: Fraction | None
    scale: Fraction = Fraction(1)
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ForeignItem:
    """One row of another tool's results: the columns of an item, and scores by name."""

    row: Mapping[str, Any]
    scores: Mapping[str, ForeignScore]


@dataclass(frozen=True, slots=True)
class ForeignResults:
    """A file of results. `skipped` names columns and metrics that were left out, and why."""

    tool: str
    items: Sequence[ForeignItem]
    skipped: Sequence[str] = field(default_factory=tuple)

    @property
    def scorers(self) -> dict[str, Fraction]:
        """The scorers by name, with their scales."""
        return {name: score.scale for item in self.items for name, score in item.scores.items()}


def read_results(path: Path, *, tool: str | None = None) -> ForeignResults:
    """Read a file of results.

    Args:
        path: JSON, JSONL or CSV.
        tool: Which tool wrote it; found by the shape when left out.

    Raises:
        DatasetError: it cannot be read, is of no known shape, or holds no score.
    """
    document = _document(path)
    found = tool or _tool_of(document)
    if found is None:
        raise DatasetError(
            "is no result file of a tool that is known", where=str(path), mend=f"name it: --tool {TOOLS[0]}"
        )
    skipped: list[str] = []
    readers = {"ragas": _of_ragas, "deepeval": _of_deepeval, "promptfoo": _of_promptfoo, "mlflow": _of_mlflow}
    try:
        items = list(readers[found](document, skipped))
    except DatasetError as error:
        raise DatasetError(error.what, where=str(path), mend=error.mend) from None
    except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
        what = f"is not as {found} writes its results: {type(error).__name__}: {error}"
        raise DatasetError(what, where=str(path), mend="export it anew, or name the tool with --tool") from error
    if not any(item.scores for item in items):
        raise DatasetError(f"holds no scores of {found}", where=str(path), mend="export results, not the dataset")
    return ForeignResults(found, items, tuple(dict.fromkeys(skipped)))


def _document(path: Path) -> Any:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DatasetError("cannot be read", where=str(path), mend="name a JSON, JSONL or CSV file in UTF-8") from error
    if path.suffix.lower() == ".csv":
        return _table(text, path)
    try:
        if path.suffix.lower() in (".jsonl", ".ndjson"):
            # Only line feeds end a line: JSON.stringify writes U+2028 as it is.
            return [json.loads(line) for line in text.split("\n") if line.strip()]
        return json.loads(text)
    except ValueError as error:
        raise DatasetError(f"is not JSON: {error}", where=str(path), mend="export it anew") from error


def _table(text: str, path: Path) -> list[dict[str, Any]]:
    # The contexts of one item are one cell, longer than the 128 KiB that the csv module allows by itself.
    limit = csv.field_size_limit(max(csv.field_size_limit(), len(text)))
    try:
        return list(csv.DictReader(io.StringIO(text, newline="")))
    except csv.Error as error:
        raise DatasetError(f"is not CSV: {error}", where=str(path), mend="export it anew") from error
    finally:
        csv.field_size_limit(limit)


def _tool_of(document: Any) -> str | None:
    if isinstance(document, Mapping):
        if {"testCases", "test_results", "test_cases"} & document.keys():
            return "deepeval"
        if isinstance(document.get("results"), Mapping) and "results" in document["results"]:
            return "promptfoo"
        if {"columns", "data"} <= document.keys():
            return "mlflow"
        return "ragas" if {"user_input", "question"} & document.keys() else None
    if isinstance(document, list) and document and isinstance(document[0], Mapping):
        if {"gradingResult", "Named Scores"} & document[0].keys():
            return "promptfoo"
        if any(re.search(r"/v\d+/score$", str(name)) for name in document[0]):
            return "mlflow"
        return "ragas" if {"user_input", "question"} & document[0].keys() else None
    return None


def _of_ragas(document: Any, skipped: list[str]) -> Iterator[ForeignItem]:
    if isinstance(document, Mapping):  # pandas' default: {column: {row: value}}
        columns = {name: list(values.values()) for name, values in document.items()}
        document = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    metrics = {
        name for row in document for name, value in row.items() if name not in _FIELDS and _number(value) is not None
    }
    fits = {name for name in metrics if all(_fits(row.get(name)) for row in document)}
    skipped += [f"{name}: not within 0 and 1" for name in sorted(metrics - fits)]
    called = _called(sorted(fits))
    for row in document:
        yield ForeignItem(_row(row), {ours: _scored(row.get(name)) for name, ours in called.items()})


def _of_deepeval(document: Any, skipped: list[str]) -> Iterator[ForeignItem]:
    cases = document.get("testCases") or document.get("test_results") or document["test_cases"]
    metrics = [list(case.get("metricsData") or case.get("metrics_data") or ()) for case in cases]
    called = _called(metric["name"] for each in metrics for metric in each)
    for case, own in zip(cases, metrics, strict=True):
        scores = {}
        for metric in own:
            value = metric.get("score")
            if _fits(value):
                scores[called[metric["name"]]] = _scored(value, metric.get("error") or metric.get("reason") or "")
            else:
                skipped.append(f"{metric['name']}: not within 0 and 1")
        yield ForeignItem(_row(case), scores)


def _of_promptfoo(document: Any, skipped: list[str]) -> Iterator[ForeignItem]:
    results = document if isinstance(document, list) else document["results"]["results"]
    _one_system(results)
    called = _called(
        name for each in results for component in _components(each) if (name := _assertion(component)) is not None
    )
    for result in results:
        if "Named Scores" in result:
            yield _of_promptfoo_table(result, skipped)
            continue
        found: dict[str, list[ForeignScore]] = {}
        for component in _components(result):
            name = _assertion(component)
            if name is None or not _fits(component.get("score")):
                skipped.append(f"{name or 'an assertion without type'}: no score within 0 and 1")
                continue
            found.setdefault(called[name], []).append(_scored(component.get("score"), component.get("reason") or ""))
        response = result.get("response") or {}
        output = response.get("output") if isinstance(response, Mapping) else response
        row = {**(result.get("vars") or {}), "output": output}
        yield ForeignItem(_row(row), {name: _together(each) for name, each in found.items()})


def _one_system(results: Sequence[Mapping[str, Any]]) -> None:
    """Make sure that all results are of one provider and prompt: a run is about one version of one retriever.

    Raises:
        DatasetError: they are of several.
    """
    systems: dict[str, None] = {}
    for each in results:
        if "Named Scores" in each:
            systems |= dict.fromkeys(column for column in each if re.match(r"\[[^\]]*\] ", column))
            continue
        provider = each.get("provider") or {}
        named = provider if isinstance(provider, str) else provider.get("label") or provider.get("id") or "?"
        systems[f"{named}, prompt {int(each.get('promptIdx') or 0) + 1}"] = None
    if len(systems) > 1:
        raise DatasetError(
            f"holds the results of {len(systems)} systems ({'; '.join(list(systems)[:5])})",
            mend="write a file for each, with `promptfoo eval --filter-providers` or a config of one prompt",
        )


def _components(result: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return (result.get("gradingResult") or {}).get("componentResults") or ()


def _assertion(component: Mapping[str, Any]) -> str | None:
    assertion = component.get("assertion") or {}
    return assertion.get("metric") or assertion.get("type")


def _together(scores: Sequence[ForeignScore]) -> ForeignScore:
    """The mean of the assertions of one name in one test."""
    known = [each.exact for each in scores if each.exact is not None]
    reason = "\n".join(each.reason for each in scores if each.reason)
    return ForeignScore(mean(known), reason=reason)


def _of_promptfoo_table(row: Mapping[str, str], skipped: list[str]) -> ForeignItem:
    scores = {}
    for name, value in json.loads(row["Named Scores"] or "{}").items():
        if _fits(value):
            scores[_ours(name)] = _scored(value)
        else:
            skipped.append(f"{name}: no score within 0 and 1")
    output = next((value for column, value in row.items() if re.match(r"\[[^\]]*\] ", column)), None)
    return ForeignItem(_row({**row, "output": output}), scores)


def _of_mlflow(document: Any, skipped: list[str]) -> Iterator[ForeignItem]:
    if isinstance(document, Mapping):
        document = [dict(zip(document["columns"], values, strict=True)) for values in document["data"]]
    named = {
        name: found[1] for row in document for name in row if (found := re.fullmatch(r"(.+)/v\d+/score", str(name)))
    }
    scales: dict[str, Fraction] = {}
    for column in named:
        values = [each for row in document if (each := _number(row.get(column))) is not None]
        graded = all(each in (1, 2, 3, 4, 5) for each in values)
        # Where every grade is 1, the worst, the values alone look like a perfect share.
        if all(0 <= each <= 1 for each in values) and not (graded and named[column] in GRADED):
            scales[column] = Fraction(1)
        elif graded:
            scales[column] = Fraction(5)
        else:
            skipped.append(f"{column}: neither within 0 and 1 nor grades of 1 to 5")
    called = _called(named[column] for column in scales)
    for row in document:
        scores = {
            called[named[column]]: _scored(
                row.get(column), row.get(column.removesuffix("score") + "justification") or "", scale
            )
            for column, scale in scales.items()
        }
        yield ForeignItem(_row(row), scores)


def _row(row: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of an item."""
    found: dict[str, Any] = {}
    for name, names in (("input", INPUTS), ("output", OUTPUTS), ("reference", REFERENCES)):
        value = next((row[each] for each in names if row.get(each) not in (None, "")), None)
        if value is not None:
            found[name] = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    contexts = next((row[each] for each in CONTEXTS if row.get(each) not in (None, "")), None)
    if isinstance(contexts, str):
        parsed = literal(contexts) if contexts.lstrip().startswith("[") else None
        contexts = parsed if isinstance(parsed, list) else [contexts]
    if isinstance(contexts, list):
        found["contexts"] = [
            each if isinstance(each, str) else json.dumps(each, ensure_ascii=False) for each in contexts
        ]
    return found


def _slug(name: str) -> str:
    return re.sub(r"[^\w]+", "_", re.sub(r"\[GEval\]|\(GEval\)", "", str(name))).strip("_").lower()


def _ours(name: str) -> str:
    slug = _slug(name)
    return OURS.get(slug, slug)


def _called(names: Iterable[str]) -> dict[str, str]:
    """Our name for each; where two would have the same, both keep their own, and neither takes the other's place."""
    slugs = {name: _slug(name) for name in names}
    shared = Counter(OURS.get(slug, slug) for slug in set(slugs.values()))
    return {name: slug if shared[OURS.get(slug, slug)] > 1 else OURS.get(slug, slug) for name, slug in slugs.items()}


def _number(value: Any) -> Fraction | None:
    """A number as it is written; None for what is none, or not finite."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, str) and not re.fullmatch(r"\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*", value):
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return (
        as_fraction(value.strip() if isinstance(value, str) else value)
        if isinstance(value, (int, float, str))
        else None
    )


def _fits(value: Any) -> bool:
    number = _number(value)
    return number is None or 0 <= number <= 1


def _scored(value: Any, reason: Any = "", scale: Fraction = Fraction(1)) -> ForeignScore:
    number = _number(value)
    return ForeignScore(None if number is None else number / scale, scale, str(reason))
