"""`Retry`: repeats operations that failed with `Unavailable`, with jitter and a bounded number of times.

- An interrupted read resumes where it stopped if the version is known: bytes of two versions are never joined.
- A write is repeated only if its data can be produced again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from ramet.core import ops
from ramet.core.errors import Unavailable
from ramet.core.paths import Path
from ramet.core.resource import Data, How, Pinned, Resource, Whole
from ramet.core.stat import Attrs, Stat
from ramet.core.streams import closing
from ramet.layers.passthrough import Passthrough

T = TypeVar("T")


@dataclass(frozen=True)
class Patience:
    """How long to retry: `attempts` in all, pauses doubling from `first` to `longest` seconds.

    Before the first answer, an unknown host or a refused connection is retried for `stranger` seconds only: the
    address is probably wrong.
    """

    attempts: int = 5
    first: float = 0.1
    longest: float = 5.0
    deadline: float = 60.0
    stranger: float = 0.5


def _jitter() -> float:
    """Return a random factor between 0 and 1, so that clients do not retry in step."""
    import random

    return random.random()


class Retry(Passthrough):
    def __init__(
        self,
        inner: Resource,
        patience: Patience | None = None,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        jitter: Callable[[], float] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(inner)
        self._patience = patience or Patience()
        self._sleep, self._jitter, self._clock = sleep, jitter or _jitter, clock
        self._answered = False
        """Whether the backend has ever answered."""

    async def _pause(self, attempt: int, waited: float, error: Unavailable, began: float) -> float:
        """Wait before the next attempt, or raise `error` after the last one."""
        patience = self._patience
        self._answered = self._answered or not error.absent
        pause = min(patience.longest, patience.first * float(2**attempt)) * (0.5 + self._jitter() / 2)
        pause = max(pause, error.wait)
        if attempt + 1 >= patience.attempts or waited + pause > patience.deadline:
            raise error
        if not self._answered and self._clock() - began + pause > patience.stranger:
            raise error
        await self._sleep(pause)
        return waited + pause

    async def _again(self, act: Callable[[], Awaitable[T]], *, answers: bool = True) -> T:
        waited, attempt, began = 0.0, 0, self._clock()
        while True:
            try:
                found = await act()
                self._answered = self._answered or answers
                return found
            except Unavailable as error:
                waited = await self._pause(attempt, waited, error, began)
                attempt += 1

    async def stat(self, path: Path) -> Stat:
        # The root often exists because it is mounted: no backend has answered.
        return await self._again(lambda: self.inner.stat(path), answers=len(path) > 1)

    async def scan(self, path: Path) -> AsyncIterator[tuple[str, Stat]]:
        seen: set[str] = set()
        waited, attempt, began = 0.0, 0, self._clock()
        while True:
            try:
                async with closing(self.inner.scan(path)) as entries:
                    async for entry in entries:
                        if entry[0] not in seen:
                            seen.add(entry[0])
                            yield entry
                self._answered = True
                return
            except Unavailable as error:
                waited = await self._pause(attempt, waited, error, began)
                attempt += 1

    async def read(self, path: Path, start: int = 0, stop: int | None = None) -> AsyncIterator[bytes]:
        waited, attempt, began = 0.0, 0, self._clock()
        first, version = start, None
        while True:
            before = start
            try:
                async with closing(self._reading(path, version, start, stop)) as blocks:
                    async for block in blocks:
                        start += len(block)
                        yield block
                self._answered = True
                return
            except Unavailable as error:
                version = version or error.version
                if start > first and (version is None or not isinstance(self.inner, Pinned)):
                    raise
                if start > before:
                    waited, attempt = 0.0, 0  # it moves; only what makes no progress runs out of patience
                self._answered = self._answered or start > first
                waited = await self._pause(attempt, waited, error, began)
                attempt += 1

    async def entries(self, path: Path) -> list[tuple[str, Stat]]:
        return await self._again(lambda: ops.entries(self.inner, path))

    async def read_bytes(self, path: Path) -> bytes:
        if isinstance(self.inner, Whole):
            began = self._clock()
            try:
                found = await self.inner.read_bytes(path)
            except Unavailable as error:
                await self._pause(0, 0.0, error, began)
            else:
                self._answered = True
                return found
        # A stream keeps what has come when the rest is asked for again.
        return b"".join([block async for block in self.read(path)])

    def _reading(self, path: Path, version: str | None, start: int, stop: int | None) -> AsyncIterator[bytes]:
        if version is not None and isinstance(self.inner, Pinned):
            return self.inner.read_version(path, version, start, stop)
        return self.inner.read(path, start, stop)

    async def write(
        self, path: Path, data: Data, how: How = How.REPLACE, *, at: int = 0, if_version: str | None = None
    ) -> Stat:
        # An append or a creation that failed on the way back may have happened; repeating it would double or deny it.
        if isinstance(data, bytes) and how in (How.REPLACE, How.PATCH):
            return await self._again(lambda: self.inner.write(path, data, how, at=at, if_version=if_version))
        return await self.inner.write(path, data, how, at=at, if_version=if_version)

    async def setattr(self, path: Path, attrs: Attrs) -> None:
        await self._again(lambda: self.inner.setattr(path, attrs))

    async def copy(self, src: Path, dst: Path) -> None:
        await self._again(lambda: self.inner.copy(src, dst))
