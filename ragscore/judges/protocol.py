"""The one method that makes a judge."""

from __future__ import annotations

import inspect
from typing import Protocol, TypeGuard, runtime_checkable

from ragscore.items import Judgement
from ragscore.judges.tasks import Task


@runtime_checkable
class Judge(Protocol):
    """Something that decides.

    `name` identifies the judge in every row: two judges whose verdicts may differ have different names.
    """

    @property
    def name(self) -> str:
        """The judge's identity, e.g. `offline-lexical-1` or `openai/gpt-5-mini`."""
        ...

    async def ask(self, task: Task) -> Judgement:
        """Decide on one task.

        A failure that concerns this task only is returned as a status; an exception means that no task can be
        answered (`JudgeRefused`), or none for now (`JudgeUnavailable`).
        """
        ...


class PreparedJudge(Judge, Protocol):
    """A judge that must be made ready once before the first task, and whose answers may be remembered."""

    @property
    def identity(self) -> str:
        """Canonical JSON of all that its answers depend on besides the task: model, base URL, effective parameters.

        Only known after `prepare`. Two judges of equal identity may share remembered judgements.
        """
        ...

    async def prepare(self) -> None:
        """Check address, key and model, and learn the effective parameters, with at most one small call.

        Raises:
            JudgeRefused: the judge will not work for us; nothing has been run yet.
            JudgeUnavailable: it does not answer within its retries.
        """
        ...


def must_be_prepared(judge: Judge) -> TypeGuard[PreparedJudge]:
    """Whether a judge is a `PreparedJudge`. It is looked at without being asked: its identity may not be known yet."""
    missing = object()
    return all(inspect.getattr_static(judge, name, missing) is not missing for name in ("identity", "prepare"))
