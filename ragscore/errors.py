"""What can go wrong, drawn by who must act.

    RagscoreError                   exit  where it is raised
    ├── ConfigError                    2  the user's files or arguments must change
    │   ├── UsageError                    a command line that cannot be carried out
    │   ├── SuiteError                    the suite file
    │   └── DatasetError                  the dataset
    ├── EvaluationError                3  nothing is wrong with the files, yet the run could not go on
    │   ├── TargetDown                    the target answers nothing at all (transient)
    │   ├── JudgeRefused                  the judge will not work for us: key, model or address (fatal)
    │   ├── JudgeUnavailable              the judge does not answer (transient)
    │   └── EngineError                   a configured Prefect API does not answer
    └── HistoryError                   3  the history file
        ├── HistoryLocked                 another process holds it too long (transient)
        ├── HistoryTooNew                 a later ragscore wrote it
        └── HistoryUnreadable             damaged, not a DuckDB file, or not readable

What concerns one item only is never an exception that leaves its stage: it becomes a row with a
status (`ragscore.items.Status`). Every message is one line: what is wrong, where, and the mend.
"""

from __future__ import annotations


class RagscoreError(Exception):
    """The root of the tree.

    Args:
        what: What is wrong, in words, without a full stop.
        where: The file, line, field or address that it concerns.
        mend: What the user can do about it.
    """

    exit_code = 3
    #: Whether the same call may succeed a little later, so that a retry makes sense.
    transient = False

    def __init__(self, what: str, *, where: str | None = None, mend: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.mend = mend

    def __str__(self) -> str:
        head = f"{self.where}: {self.what}" if self.where else self.what
        text = f"{head} — {self.mend}" if self.mend else head
        return " ".join(text.split())

    def __reduce__(self) -> tuple[object, ...]:
        # Prefect and process pools pickle exceptions; keyword-only fields need saying so.
        return (_rebuild, (type(self), self.what, self.where, self.mend))


def _rebuild(kind: type[RagscoreError], what: str, where: str | None, mend: str | None) -> RagscoreError:
    return kind(what, where=where, mend=mend)


class ConfigError(RagscoreError):
    """Something the user wrote must change before anything can run."""

    exit_code = 2


class UsageError(ConfigError):
    """The command line, or the arguments of a call, cannot be carried out."""


class SuiteError(ConfigError):
    """The suite file is wrong; `where` names file, line and field."""


class DatasetError(ConfigError):
    """The dataset is wrong; `where` names file and row."""


class EvaluationError(RagscoreError):
    """The run could not be evaluated although its files are right."""


class TargetDown(EvaluationError):
    """The target answered nothing at all, so that the whole batch cannot go on."""

    transient = True


class JudgeRefused(EvaluationError):
    """The judge rejects us (key, model, address): trying again cannot help."""


class JudgeUnavailable(EvaluationError):
    """The judge did not answer within its retries."""

    transient = True


class EngineError(EvaluationError):
    """A configured Prefect API does not answer."""


class HistoryError(RagscoreError):
    """The history file could not be used."""


class HistoryLocked(HistoryError):
    """Another process held the history for longer than we wait."""

    transient = True


class HistoryTooNew(HistoryError):
    """The history was written by a later ragscore, whose schema this one does not know."""

    exit_code = 2


class HistoryUnreadable(HistoryError):
    """The history is damaged, is not a DuckDB file, or its place cannot be read or written."""
