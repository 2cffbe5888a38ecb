"""`Limit`: bounds how many operations run at once on a resource, and how many start per second."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from types import TracebackType

from ramet.core import ops
from ramet.core.paths import Path
from ramet.core.resource import Data, How, Resource
from ramet.core.stat import Attrs, Stat
from ramet.core.streams import closing
from ramet.layers.passthrough import Passthrough


class _Gate:
    """A semaphore with a pace: entering waits for a free place and for the next tick."""

    def __init__(self, places: int, rate: float | None, sleep: Callable[[float], Awaitable[None]]) -> None:
        self._places = asyncio.Semaphore(places)
        self._interval = 0.0 if rate is None else 1.0 / rate
        self._next = 0.0
        self._sleep = sleep

    async def __aenter__(self) -> None:
        await self._places.acquire()
        if self._interval:
            now = asyncio.get_running_loop().time()
            start = max(now, self._next)
            self._next = start + self._interval
            if start > now:
                try:
                    await self._sleep(start - now)
                except BaseException:
                    self._places.release()
                    raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._places.release()


class Limit(Passthrough):
    def __init__(
        self,
        inner: Resource,
        *,
        concurrency: int = 32,
        rate: float | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        super().__init__(inner)
        self._gate = _Gate(concurrency, rate, sleep)

    async def stat(self, path: Path) -> Stat:
        async with self._gate:
            return await self.inner.stat(path)

    async def scan(self, path: Path) -> AsyncIterator[tuple[str, Stat]]:
        async with self._gate, closing(self.inner.scan(path)) as entries:
            async for entry in entries:
                yield entry

    async def read(self, path: Path, start: int = 0, stop: int | None = None) -> AsyncIterator[bytes]:
        async with self._gate, closing(self.inner.read(path, start, stop)) as blocks:
            async for block in blocks:
                yield block

    async def entries(self, path: Path) -> list[tuple[str, Stat]]:
        async with self._gate:
            return await ops.entries(self.inner, path)

    async def read_bytes(self, path: Path) -> bytes:
        async with self._gate:
            return await ops.read_bytes(self.inner, path)

    async def write(
        self, path: Path, data: Data, how: How = How.REPLACE, *, at: int = 0, if_version: str | None = None
    ) -> Stat:
        # Data read from the same resource needs its own slot while this write waits for it.
        if not isinstance(data, bytes):
            return await self.inner.write(path, data, how, at=at, if_version=if_version)
        async with self._gate:
            return await self.inner.write(path, data, how, at=at, if_version=if_version)

    async def mkdir(self, path: Path) -> None:
        async with self._gate:
            await self.inner.mkdir(path)

    async def remove(self, path: Path) -> None:
        async with self._gate:
            await self.inner.remove(path)

    async def rename(self, src: Path, dst: Path) -> None:
        async with self._gate:
            await self.inner.rename(src, dst)

    async def copy(self, src: Path, dst: Path) -> None:
        async with self._gate:
            await self.inner.copy(src, dst)

    async def setattr(self, path: Path, attrs: Attrs) -> None:
        async with self._gate:
            await self.inner.setattr(path, attrs)
