"""What a run may spend on its judge, and the stop when it is spent."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass


class BudgetSpent(Exception):
    """The budget does not allow another request. Nothing was sent; what was judged so far stands."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what


@dataclass(slots=True, eq=False)
class Reservation:
    """What is set aside for one request until it is known what it took. `usd` is None when that cannot be told yet."""

    tokens: int
    usd: float | None


class Budget:
    """Money and tokens that may be spent; either limit stops it.

    Every request sets its estimate aside before it is sent, so that requests in flight together cannot run past the
    limit. When what is left is less than the estimate, a request waits until nothing else is in flight and then goes
    out alone: the limit is passed by one request's estimate at most, if requests take no more than was estimated.
    Where money is limited and the cost of a request cannot be estimated beforehand, the first one goes out alone, and
    its cost per estimated token (the highest so far, once there are more) is the estimate for those to come.

    Args:
        usd: Limit in US dollars, > 0; None for none.
        tokens: Limit in tokens, prompt and completion, > 0; None for none.
    """

    def __init__(self, usd: float | None = None, tokens: int | None = None) -> None:
        self.usd = usd
        self.tokens = tokens
        self.spent_usd = 0.0
        self.spent_tokens = 0
        self._reserved: set[Reservation] = set()
        self._usd_per_token: float | None = None
        self._blind = False
        self._lock = threading.Lock()
        self._waiting: set[asyncio.Future[None]] = set()

    @asynccontextmanager
    async def reserved(self, tokens: int, *, usd: float | None = None) -> AsyncIterator[Reservation]:
        """Sets the estimate aside for the time of one request.

        A request that ends without `settle` or `release` is charged with the estimate: a provider may bill a request
        that nobody waited for.

        Raises:
            BudgetSpent: there is nothing left.
        """
        reservation = await self.reserve(tokens, usd=usd)
        try:
            yield reservation
        finally:
            self._book(reservation, None, None)

    async def reserve(self, tokens: int, *, usd: float | None = None) -> Reservation:
        """Sets the estimate of one request aside, once there is room for it.

        Args:
            tokens: Prompt and completion at most.
            usd: What they cost; None when that is not known.

        Raises:
            BudgetSpent: there is nothing left.
        """
        while True:
            with self._lock:
                self._raise_if_spent()
                reservation = Reservation(tokens, usd if usd is not None else self._guess(tokens))
                if not self._reserved or self._fits(reservation):
                    self._reserved.add(reservation)
                    return reservation
                changed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                self._waiting.add(changed)
            try:
                await changed
            finally:
                with self._lock:
                    self._waiting.discard(changed)

    def settle(self, reservation: Reservation, *, tokens: int | None = None, usd: float | None = None) -> None:
        """Books what an answered request took, in place of its estimate. Later calls for it do nothing.

        Args:
            reservation: From `reserve`.
            tokens: Prompt and completion together; None: as estimated.
            usd: Cost in US dollars; None: as estimated.
        """
        if usd is not None and reservation.tokens > 0:
            self._usd_per_token = max(self._usd_per_token or 0.0, usd / reservation.tokens)
        self._blind = usd is None and reservation.usd is None
        self._book(reservation, tokens, usd)

    def release(self, reservation: Reservation) -> None:
        """Gives back what was set aside: the request cost nothing."""
        self._book(reservation, 0, 0.0)

    def _book(self, reservation: Reservation, tokens: int | None, usd: float | None) -> None:
        with self._lock:
            if reservation not in self._reserved:
                return
            self._reserved.discard(reservation)
            self.spent_tokens += reservation.tokens if tokens is None else tokens
            self.spent_usd += (reservation.usd or 0.0) if usd is None else usd
            waiting, self._waiting = self._waiting, set()
        for future in waiting:
            loop = future.get_loop()
            if not loop.is_closed():
                loop.call_soon_threadsafe(_set, future)

    def _raise_if_spent(self) -> None:
        if self.usd is not None and self.spent_usd >= self.usd:
            raise BudgetSpent(f"the budget of {self.usd:g} USD is used up")
        if self.usd is not None and self._blind:
            raise BudgetSpent(f"a budget of {self.usd:g} USD cannot be kept: the last request came without its cost")
        if self.tokens is not None and self.spent_tokens >= self.tokens:
            raise BudgetSpent(f"the budget of {self.tokens} tokens is used up")

    def _guess(self, tokens: int) -> float | None:
        return None if self._usd_per_token is None else self._usd_per_token * tokens

    def _fits(self, reservation: Reservation) -> bool:
        everything = (*self._reserved, reservation)
        if self.tokens is not None and self.spent_tokens + sum(r.tokens for r in everything) > self.tokens:
            return False
        if self.usd is None:
            return True
        dollars = [r.usd for r in everything]
        return None not in dollars and self.spent_usd + sum(d for d in dollars if d is not None) <= self.usd


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
