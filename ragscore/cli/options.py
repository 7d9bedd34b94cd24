"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

Engine = Annotated[
    Literal["auto", "prefect", "local"],
    Parameter(help="What carries out the run: Prefect where an API is configured (auto), always Prefect, or neither."),
]
Dask = Annotated[
    str | None,
    Parameter(help="Have the workers of a Dask cluster ask target and judge: local, local:4, or tcp://host:8786."),
]
HistoryFile = Annotated[
    Path | None,
    Parameter(name="--history", help="The history file; history.duckdb in RAGSCORE_HOME (.ragscore) when left out."),
]
Json = Annotated[bool, Parameter(name="--json", negative="", help="Print JSON.")]
