"""`ReadOnly`: refuses every mutation with EROFS."""

from __future__ import annotations

import errno

from ramet.backends.unwritable import Unwritable
from ramet.core.errors import fail
from ramet.core.paths import Path
from ramet.core.resource import Cap, Handle, Openable, extension
from ramet.layers.passthrough import Passthrough


class Immutable(Unwritable):
    """The mutations of a tree that has none, links and pipes among them."""

    async def link(self, src: Path, dst: Path) -> None:
        raise fail(errno.EROFS, dst)

    async def mkfifo(self, path: Path) -> None:
        raise fail(errno.EROFS, path)


class ReadOnly(Immutable, Passthrough):
    @property
    def caps(self) -> Cap:
        return self.inner.caps & (Cap.RANGES | Cap.VERSIONS | Cap.LOCAL | Cap.DIRS)

    def open(self, path: Path, *, write: bool) -> Handle:
        if write:
            raise fail(errno.EROFS, path)
        openable = extension(self.inner, Openable)  # type: ignore[type-abstract]
        if openable is None:
            raise fail(errno.ENOTSUP, path)
        handle = openable.open(path, write=False)
        return _Unlent(handle) if hasattr(handle, "lend") else handle


class _Unlent:
    """A handle whose descriptor no program gets: it could open the same file again, for writing."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self.pread, self.block, self.stat, self.close = handle.pread, handle.block, handle.stat, handle.close

    def pwrite(self, offset: int, data: bytes) -> int:
        raise fail(errno.EBADF)

    def truncate(self, size: int) -> None:
        raise fail(errno.EBADF)
