"""`Forward`: the layer that changes nothing. Every other layer says only what it changes."""

from __future__ import annotations

from collections.abc import AsyncIterator

from ramet.core.paths import Path
from ramet.core.resource import Cap, Data, How, Resource
from ramet.core.stat import Attrs, Stat


class Forward:
    transparent = True

    def __init__(self, inner: Resource) -> None:
        self.inner = inner

    @property
    def caps(self) -> Cap:
        return self.inner.caps

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.inner!r})"

    async def stat(self, path: Path) -> Stat:
        return await self.inner.stat(path)

    def scan(self, path: Path) -> AsyncIterator[tuple[str, Stat]]:
        return self.inner.scan(path)

    def read(self, path: Path, start: int = 0, stop: int | None = None) -> AsyncIterator[bytes]:
        return self.inner.read(path, start, stop)

    async def write(
        self, path: Path, data: Data, how: How = How.REPLACE, *, at: int = 0, if_version: str | None = None
    ) -> Stat:
        return await self.inner.write(path, data, how, at=at, if_version=if_version)

    async def mkdir(self, path: Path) -> None:
        await self.inner.mkdir(path)

    async def remove(self, path: Path) -> None:
        await self.inner.remove(path)

    async def rename(self, src: Path, dst: Path) -> None:
        await self.inner.rename(src, dst)

    async def copy(self, src: Path, dst: Path) -> None:
        await self.inner.copy(src, dst)

    async def setattr(self, path: Path, attrs: Attrs) -> None:
        await self.inner.setattr(path, attrs)

    async def close(self) -> None:
        await self.inner.close()
