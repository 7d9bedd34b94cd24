"""A judge's requests and tokens per minute, shared by all processes that ask it: global limits of the Prefect server.

A global limit of Prefect is a bucket: `limit` slots that come back at a steady pace. Over any minute it gives its
size and what comes back meanwhile; so the size is a tenth of what is allowed, and nine tenths come back in a minute.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from ragscore.errors import EngineError
from ragscore.judges.limiter import MINUTE_S

#: The part of a minute's allowance that may be taken at once.
AT_ONCE = 0.1
#: Requests of one process for which leave is taken together, at most.
MOST_AT_ONCE = 10


def shared_with_others(model: str, base_url: str | None, rpm: int | None, tpm: int | None) -> GlobalAllowance | None:
    """The allowance of a model at an address that other processes ask too; None where it is not limited."""
    if rpm is None and tpm is None:
        return None
    address = hashlib.sha256((base_url or "").encode()).hexdigest()[:8]
    name = "".join(each if each.isalnum() or each in "-_." else "-" for each in model)
    return GlobalAllowance(f"ragscore-judge-{name}-{address}", rpm=rpm, tpm=tpm)


@dataclass
class _Bucket:
    """One global limit: `held` is what this process has taken of it and not used yet."""

    name: str
    per_minute: int
    chunk: int
    held: int = 0

    @property
    def size(self) -> int:
        return max(1, math.floor(self.per_minute * AT_ONCE))

    @property
    def slots_per_second(self) -> float:
        return max(self.per_minute - self.size, 0.5) / MINUTE_S


@dataclass
class GlobalAllowance:
    """See `ragscore.judges.allowance.Allowance`. Leave is taken for several requests at once: one call of the server.

    Args:
        name: Begins the names of the limits on the server.
        rpm: Requests per minute of all processes together.
        tpm: Tokens per minute of all processes together.
    """

    name: str
    rpm: int | None = None
    tpm: int | None = None
    _buckets: dict[str, _Bucket] = field(default_factory=dict)
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def take(self, tokens: int) -> None:
        """See `Allowance.take`. A request of more tokens than a minute allows takes a whole minute's.

        Raises:
            EngineError: the Prefect server does not answer.
        """
        async with self._turn:  # first come, first served
            if not self._buckets:
                await self._make()
            for kind, needed in (("requests", 1), ("tokens", tokens)):
                if (bucket := self._buckets.get(kind)) is not None:
                    await self._take(bucket, min(needed, bucket.per_minute))

    async def _take(self, bucket: _Bucket, needed: int) -> None:
        from prefect.concurrency.asyncio import rate_limit

        while bucket.held < needed:
            wanted = min(max(bucket.chunk, needed - bucket.held), bucket.size)
            with _explained(bucket.name):
                await rate_limit(bucket.name, occupy=wanted, strict=True)
            bucket.held += wanted
        bucket.held -= needed

    async def _make(self) -> None:
        from prefect.client.orchestration import get_client
        from prefect.exceptions import ObjectAlreadyExists

        buckets = {}
        if self.rpm is not None:
            # As many as this process sends in some seconds: what is taken and not used is lost to the others.
            chunk = max(1, min(MOST_AT_ONCE, self.rpm // 60))
            buckets["requests"] = _Bucket(f"{self.name}-rpm", self.rpm, chunk)
        if self.tpm is not None:
            buckets["tokens"] = _Bucket(f"{self.name}-tpm", self.tpm, 1)
        with _explained(self.name):
            async with get_client() as client:
                for bucket in buckets.values():
                    limit = bucket.name, bucket.size, bucket.slots_per_second
                    try:
                        await client.upsert_global_concurrency_limit_by_name(*limit)
                    except ObjectAlreadyExists:  # another worker has made it meanwhile
                        await client.upsert_global_concurrency_limit_by_name(*limit)
        self._buckets = buckets


@contextmanager
def _explained(name: str) -> Iterator[None]:
    """Turns what Prefect and its client say into one line: the judge is not asked without leave."""
    import httpx
    from prefect.concurrency._asyncio import ConcurrencySlotAcquisitionError
    from prefect.exceptions import PrefectException

    try:
        yield
    except (httpx.HTTPError, PrefectException, ConcurrencySlotAcquisitionError) as error:
        what = f"the Prefect server gives no leave to ask the judge: {str(error) or type(error).__name__}"
        raise EngineError(what, where=name, mend="see whether the server runs, then resume") from error
