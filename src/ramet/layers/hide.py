"""`Hide`: makes paths that match a predicate invisible."""

from __future__ import annotations

import errno
from collections.abc import AsyncIterator, Callable

from ramet.core.errors import fail
from ramet.core.paths import Path
from ramet.core.resource import Data, How, Resource
from ramet.core.stat import Attrs, Stat
from ramet.core.streams import closing
from ramet.layers.passthrough import Passthrough


class Hide(Passthrough):
    """`hidden(path)` decides; what lies below a hidden directory is hidden too. Writing to a hidden name is EACCES."""

    transparent = False  # an optional power of the inner resource would show what is hidden

    def __init__(self, inner: Resource, hidden: Callable[[Path], bool]) -> None:
        super().__init__(inner)
        self._hidden = hidden

    def _is_hidden(self, path: Path) -> bool:
        while len(path) > 1:
            if self._hidden(path):
                return True
            path = path.parent
        return False

    def _see(self, path: Path) -> None:
        if self._is_hidden(path):
            raise fail(errno.ENOENT, path)

    def _touch(self, path: Path) -> None:
        if self._is_hidden(path):
            raise fail(errno.EACCES, path)

    async def stat(self, path: Path) -> Stat:
        self._see(path)
        return await self.inner.stat(path)

    async def scan(self, path: Path) -> AsyncIterator[tuple[str, Stat]]:
        self._see(path)
        async with closing(self.inner.scan(path)) as entries:
            async for name, stat in entries:
                if not self._hidden(path / name):
                    yield name, stat

    async def read(self, path: Path, start: int = 0, stop: int | None = None) -> AsyncIterator[bytes]:
        self._see(path)
        async with closing(self.inner.read(path, start, stop)) as blocks:
            async for block in blocks:
                yield block

    async def write(
        self, path: Path, data: Data, how: How = How.REPLACE, *, at: int = 0, if_version: str | None = None
    ) -> Stat:
        self._touch(path)
        return await self.inner.write(path, data, how, at=at, if_version=if_version)

    async def mkdir(self, path: Path) -> None:
        self._touch(path)
        await self.inner.mkdir(path)

    async def remove(self, path: Path) -> None:
        self._see(path)
        await self.inner.remove(path)

    async def rename(self, src: Path, dst: Path) -> None:
        self._see(src)
        self._touch(dst)
        await self.inner.rename(src, dst)

    async def copy(self, src: Path, dst: Path) -> None:
        self._see(src)
        self._touch(dst)
        await self.inner.copy(src, dst)

    async def setattr(self, path: Path, attrs: Attrs) -> None:
        self._see(path)
        await self.inner.setattr(path, attrs)
