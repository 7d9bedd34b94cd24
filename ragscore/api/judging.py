"""Who judges in one call of the API: made at its start, shared by the scorers that name the same, closed after."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ragscore.errors import ConfigError
from ragscore.home import home
from ragscore.judges import Judge
from ragscore.judges.setup import JudgeSetup, judge_setup, setup_of
from ragscore.suite import JudgePart

#: A model's name, the keys of a suite's `judge:`, or a judge.
Model = str | Mapping[str, Any] | JudgePart | Judge


def judge_of(model: Model) -> JudgePart | Judge:
    """What names the judge, checked; nothing is made or asked yet.

    Raises:
        ConfigError: it is no judge, or the keys are not those of a suite's `judge:`.
    """
    if isinstance(model, type) or not isinstance(model, (str, Mapping, JudgePart, Judge)):
        what = f"the class {model.__name__}" if isinstance(model, type) else f"a {type(model).__name__}"
        raise ConfigError(
            f"model is {what}", mend="give a model's name, the keys of a suite's `judge:`, or a judge (made, no class)"
        )
    if isinstance(model, (JudgePart, Judge)):
        return model
    try:
        return JudgePart.model_validate({"model": model} if isinstance(model, str) else dict(model))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(map(str, first["loc"]))
        raise ConfigError(str(first["msg"]), where=f"model.{field}", mend="see `judge:` in docs/suite.md") from None


class Judges:
    """The judges of one call; use it as `async with`.

    Args:
        dataset: The data's file, beside which claims are frozen; `RAGSCORE_HOME` where the data has none.
    """

    def __init__(self, dataset: Path | None) -> None:
        self._dataset = dataset or home() / "api.jsonl"
        self._made: dict[str, JudgeSetup] = {}

    async def __aenter__(self) -> Judges:
        return self

    async def __aexit__(self, *error: object) -> None:
        for setup in self._made.values():
            await setup.aclose()

    async def of(self, named: JudgePart | Judge) -> JudgeSetup:
        """The judge, ready to be asked; one for all who name the same.

        Raises:
            ConfigError, JudgeRefused, JudgeUnavailable: it cannot be made or does not work for us.
        """
        key = named.model_dump_json() if isinstance(named, JudgePart) else f"judge:{id(named)}"
        if key not in self._made:
            setup = judge_setup(named, dataset=self._dataset) if isinstance(named, JudgePart) else setup_of(named)
            self._made[key] = setup
            await setup.prepare()
        return self._made[key]
