"""`ReadOnly`: every mutation is refused with EROFS, whichever way it comes."""

from __future__ import annotations

import errno

from ramet.core.errors import fail
from ramet.core.paths import Path
from ramet.core.resource import Cap, Data, Handle, How, Openable, extension
from ramet.core.stat import Attrs, Stat
from ramet.layers.forward import Forward


class Immutable:
    """The mutations of a tree that has none."""

    async def write(
        self, path: Path, data: Data, how: How = How.REPLACE, *, at: int = 0, if_version: str | None = None
    ) -> Stat:
        raise fail(errno.EROFS, path)

    async def mkdir(self, path: Path) -> None:
        raise fail(errno.EROFS, path)

    async def remove(self, path: Path) -> None:
        raise fail(errno.EROFS, path)

    async def rename(self, src: Path, dst: Path) -> None:
        raise fail(errno.EROFS, src)

    async def copy(self, src: Path, dst: Path) -> None:
        raise fail(errno.EROFS, dst)

    async def setattr(self, path: Path, attrs: Attrs) -> None:
        raise fail(errno.EROFS, path)

    async def link(self, src: Path, dst: Path) -> None:
        raise fail(errno.EROFS, dst)

    async def mkfifo(self, path: Path) -> None:
        raise fail(errno.EROFS, path)


class ReadOnly(Immutable, Forward):
    @property
    def caps(self) -> Cap:
        return self.inner.caps & (Cap.RANGES | Cap.VERSIONS | Cap.LOCAL | Cap.DIRS)

    def open(self, path: Path, *, write: bool) -> Handle:
        if write:
            raise fail(errno.EROFS, path)
        openable = extension(self.inner, Openable)  # type: ignore[type-abstract]
        if openable is None:
            raise fail(errno.ENOTSUP, path)
        return openable.open(path, write=False)
