"""`Bounds`: how many requests a service gets at once, and how many per second."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from ramet.concurrency.loop_local import LoopLocal


class Bounds:
    """Requests wait for their turn; those of one second may come at once, as quotas allow."""

    def __init__(
        self,
        concurrency: int,
        per_second: float | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._slots = LoopLocal(lambda: asyncio.Semaphore(concurrency))
        self._interval = 1.0 / per_second if per_second else 0.0
        self._clock, self._sleep = clock, sleep
        self._due = 0.0
        """When the quota of all requests so far is used up."""

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        async with self._slots.get():
            if self._interval:
                now = self._clock()
                self._due = max(self._due, now) + self._interval
                wait = self._due - now - max(1.0, self._interval)
                if wait > 0:
                    await self._sleep(wait)
            yield
