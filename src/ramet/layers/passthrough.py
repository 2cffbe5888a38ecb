"""`Passthrough`: the layer that changes nothing. Every other layer overrides only what it changes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from ramet.core import ops
from ramet.core.paths import Path
from ramet.core.resource import Cap, Data, How, Resource, Whole
from ramet.core.stat import Attrs, Stat


class Passthrough(Whole):
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

    # A whole directory or file passes in one piece; a layer that changes what is streamed changes that too, unless it
    # says otherwise.

    async def entries(self, path: Path) -> list[tuple[str, Stat]]:
        if type(self).scan is not Passthrough.scan:
            return [entry async for entry in self.scan(path)]
        return await ops.entries(self.inner, path)

    async def kinds(self, path: Path) -> list[tuple[str, Stat]]:
        return await (self.entries(path) if type(self).scan is not Passthrough.scan else ops.kinds(self.inner, path))

    async def read_bytes(self, path: Path) -> bytes:
        if type(self).read is not Passthrough.read:
            return b"".join([block async for block in self.read(path)])
        return await ops.read_bytes(self.inner, path)

    async def small_files(self, directory: Path, names: Sequence[str]) -> list[bytes | None]:
        if type(self).read is not Passthrough.read:
            return [None] * len(names)
        return await ops.small_files(self.inner, directory, names)

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
