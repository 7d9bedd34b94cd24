"""What the caller of the flow `evaluate` in this process has settled already.

A module of its own: flows and tasks are sent to Dask workers by value, with what they name of their module, and these
variables cannot be sent.
"""

from __future__ import annotations

from contextvars import ContextVar

from ragscore.runs import Run

#: A run that the caller has opened already (the command line, which draws its progress).
opened: ContextVar[Run | None] = ContextVar("opened", default=None)
#: Whether anybody will look at the artifacts and events; nobody can on a throwaway server.
is_watched: ContextVar[bool] = ContextVar("is_watched", default=True)
