"""Which column of a source is which field of an item: the names that common tools use, and the suite's `columns:`."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from ragscore.datasets.faults import RowFault
from ragscore.datasets.rows import COLUMNS, item_of
from ragscore.datasets.written import as_json, folded, from_text, joined_columns
from ragscore.errors import DatasetError
from ragscore.items import Item

#: The columns are those of this many rows; a common name that first appears later is a fault.
SETTLED_BY = 1000
#: Names of each field in other tools: ragas, DeepEval, promptfoo, LangSmith, Phoenix, BEIR. Our own comes first and
#: wins; two of the others at once are an error.
ALIASES: Mapping[str, tuple[str, ...]] = {
    "id": ("_id", "example_id", "item_id", "question_id", "query_id", "qid", "context.span_id"),
    "input": ("question", "user_input", "query", "prompt", "attributes.input.value"),
    "reference": (
        "ground_truth",
        "ground_truths",
        "groundTruth",
        "expected_output",
        "expectedOutput",
        "expected",
        "expected_answer",
        "reference_answer",
        "reference_output",
        "answer_gold",
        "gold_answer",
        "golden_answer",
        "correct_answer",
    ),
    "contexts": (
        "retrieved_contexts",
        "retrieval_context",
        "retrievedContexts",
        "retrievalContext",
        "context",
        "attributes.retrieval.documents",
    ),
    "context_ids": ("retrieved_context_ids", "retrieved_ids", "retrieved_doc_ids"),
    "output": ("response", "answer", "actual_output", "actualOutput", "attributes.output.value"),
    "reference_context_ids": ("referenceContextIds", "relevant_doc_ids", "relevant_ids", "gold_doc_ids"),
    "claims": ("reference_claims",),
    "answerable": ("is_answerable",),
    "relevance": ("qrels",),
    "metadata": (),
    "tags": (),
}
#: The names that are looked for in every row, so that a column that first appears late is not silently metadata. Each
#: one costs time in large files.
COMMON = frozenset(
    {
        "question",
        "user_input",
        "ground_truth",
        "expected_output",
        "retrieved_contexts",
        "retrieval_context",
        "response",
        "answer",
        "actual_output",
    }
)

Shape = Callable[[Mapping[str, Any]], Mapping[str, Any]]


@dataclass(frozen=True)
class Reading:
    """How rows of a source become items.

    Attributes:
        fields: The field that each settled column is.
        mapped: Fields that the suite's `columns:` takes from a column, or from a dotted path into one.
        late: Common names that were not there when the columns were settled, and their field.
        others: Further columns of the rows that settled it; they become metadata.
        unseen: Our own names that none of these rows has; they may come later.
        shape: Brings a tool's nested export into columns first.
        textual: Whether lists and the like may be written as text.
        alternatives: Whether a reference may be a list.
        joined: Columns whose texts are contexts with `|` between.
    """

    fields: Mapping[str, str]
    mapped: Mapping[str, str] = field(default_factory=dict)
    late: Mapping[str, str] = field(default_factory=dict)
    others: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()
    shape: Shape | None = None
    textual: bool = False
    alternatives: bool = False
    joined: frozenset[str] = frozenset()

    def item(self, raw: Mapping[str, Any]) -> Item:
        """The item of a row as it stands in the source.

        Raises:
            RowFault: something is wrong with the row.
        """
        return item_of(self.row(raw), alternatives=self.alternatives)

    def row(self, raw: Mapping[str, Any]) -> Mapping[str, Any]:
        """The row with our names for its columns; what is none of them goes to `metadata`."""
        columns = self.shape(raw) if self.shape is not None else raw
        row: dict[str, Any] = {}
        beside: dict[str, Any] = {}
        for column, value in columns.items():
            name = self.fields.get(column)
            if name is not None:
                row[name] = from_text(name, column, value, self.joined) if self.textual else value
            elif value is not None or not self.textual:  # an empty cell of a table says nothing
                if column in self.late and value is not None:
                    what = f"first stands here, after the columns were settled by the first {SETTLED_BY} rows"
                    raise RowFault(column, what, f"say what it is with `columns: {{{self.late[column]}: {column}}}`")
                (beside if column in _OURS else row)[column] = as_json(value) if self.textual else value
        for name, column in self.mapped.items():
            value = _at(raw, column)
            row[name] = (
                from_text(name, column, value, self.joined) if self.textual and isinstance(value, str) else value
            )
        if isinstance(row.get("contexts"), str) and self._is_single("contexts"):
            row["contexts"] = [row["contexts"]]
        if beside:
            metadata = row.get("metadata")
            if metadata is None or isinstance(metadata, Mapping):
                row["metadata"] = {**beside, **(metadata or {})}
        return row

    @property
    def plain(self) -> Mapping[str, str] | None:
        """The column of each field, where that is all there is to it; None with shapes or paths."""
        if self.shape is not None or any(column not in self.fields for column in self.mapped.values()):
            return None
        return {name: column for column, name in self.fields.items()}

    def _is_single(self, name: str) -> bool:
        """Whether the column is called so that it may hold one text instead of a list."""
        columns = (self.mapped.get(name, ""), *(c for c, field_ in self.fields.items() if field_ == name))
        return "context" in map(folded, columns)


_OURS = frozenset(COLUMNS)


def settle(
    rows: Sequence[Mapping[str, Any]],
    *,
    where: str,
    columns: Mapping[str, str] | None = None,
    shape: Shape | None = None,
    textual: bool = False,
    alternatives: bool = False,
    whole: Callable[[], Iterable[Mapping[str, Any]]] = tuple,
) -> Reading:
    """Find out which column is which field.

    Args:
        rows: The first rows of the source, at most `SETTLED_BY`.
        where: The source, for messages.
        columns: The suite's mapping, field to column; it wins.
        shape: What brings a tool's export into columns.
        textual: Whether lists and the like may be written as text.
        alternatives: Whether a reference may be a list.
        whole: Gives the first rows of the source whether wanted or not: a mapped column may be in none that is wanted.

    Raises:
        DatasetError: a mapped column is not there, two columns may be the same field, or none holds the question.
    """
    mapped = dict(columns or {})
    raw_there = list(dict.fromkeys(key for row in rows for key in row))
    for name, column in mapped.items():
        if rows and not any(_has(row, column) for row in chain(rows, whole())):
            near = difflib.get_close_matches(column, raw_there, n=1)
            mend = f"did you mean `{near[0]}`?" if near else f"it has: {_listed(raw_there)}"
            raise DatasetError(f"has no column `{column}`", where=f"{where}: columns.{name}", mend=mend)
    shaped = [shape(row) for row in rows] if shape is not None else rows
    there = list(dict.fromkeys(key for row in shaped for key in row))
    taken = set(mapped.values())
    exact = {each for name, aliases in ALIASES.items() for each in (name, *aliases)}
    fields: dict[str, str] = {}
    late: dict[str, str] = {}
    for name, aliases in ALIASES.items():
        if name in mapped:
            if mapped[name] in there:
                fields[mapped[name]] = name
            continue
        if name in there and name not in taken:
            fields[name] = name
            continue
        late.update((alias, name) for alias in aliases if alias in COMMON and alias not in there)
        found = [alias for alias in aliases if alias in there and alias not in taken]
        if not found:
            known = {folded(each) for each in (name, *aliases)}
            found = [each for each in there if folded(each) in known and each not in taken and each not in exact]
        if "retrieval_context" in found and "context" in found:
            found.remove("context")  # DeepEval: the ideal contexts, not the retrieved ones
        if len(found) > 1:
            raise _ambiguous(where, name, found)
        fields.update((alias, name) for alias in found)
        if name not in there:
            # Our own name may come later, where nothing else has been taken for that field.
            (late if found else fields)[name] = name
    by_field = {name: column for column, name in fields.items() if column in there} | mapped
    said = by_field.get("output", "")
    if folded(said) == "answer" and "reference" not in by_field and "output" not in mapped:
        raise DatasetError(
            f"`{said}` may be the trusted answer or what the system said",
            where=where,
            mend=f"write `columns: {{reference: {said}}}` or `columns: {{output: {said}}}`",
        )
    if rows and "input" not in by_field and there:
        mend = f"name it with `columns: {{input: …}}`; there are: {_listed(there)}"
        raise DatasetError("no column is known to hold the question", where=where, mend=mend)
    late = {} if textual else late  # a table has all its columns from the first row on
    kept = {name: column for name, column in mapped.items() if fields.get(column) != name}
    others = tuple(each for each in there if each not in fields and each not in late)
    unseen = tuple(column for column in fields if column not in there)
    return Reading(fields, kept, late, others, unseen, shape, textual, alternatives, joined_columns(raw_there))


def _ambiguous(where: str, name: str, found: list[str]) -> DatasetError:
    choices = " or ".join(f"`columns: {{{name}: {each}}}`" for each in found)
    said = " and ".join(f"`{each}`" for each in found)
    return DatasetError(f"{said} may each be the {name}", where=where, mend=f"write {choices}")


def _at(row: Mapping[str, Any], path: str) -> Any:
    """The value of a column, or of a dotted path into one."""
    if path in row:
        return row[path]
    value: Any = row
    for part in path.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return None
        value = value[part]
    return value


def _has(row: Mapping[str, Any], path: str) -> bool:
    """Whether a row has a column, or a dotted path into one leads to something, be it null."""
    holder, _, last = path.rpartition(".")
    return path in row or (isinstance(within := _at(row, holder), Mapping) and last in within)


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(f"`{each}`" for each in names[:20])
    return shown + (f" and {len(names) - 20} more" if len(names) > 20 else "")
