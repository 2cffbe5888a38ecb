"""`Emulate`: makes every writable Resource complete, so that nothing above asks what a mount can do.

This is the one place that reads capabilities. What cannot be emulated honestly (links, modes, times) stays Unsupported.
"""

from __future__ import annotations

import errno
from collections.abc import AsyncIterator

from ramet.core import ops
from ramet.core.errors import fail
from ramet.core.paths import Path
from ramet.core.resource import Cap, Data, How
from ramet.core.stat import Attrs, Kind, Stat
from ramet.core.streams import closing
from ramet.layers.passthrough import Passthrough

EMULATED = Cap.RANGES | Cap.CREATE | Cap.APPEND | Cap.PATCH | Cap.RENAME | Cap.COPY | Cap.TRUNCATE | Cap.PRECONDITIONS


class Emulate(Passthrough):
    @property
    def caps(self) -> Cap:
        return self.inner.caps | EMULATED if Cap.WRITE in self.inner.caps else self.inner.caps | Cap.RANGES

    def read(self, path: Path, start: int = 0, stop: int | None = None) -> AsyncIterator[bytes]:
        if Cap.RANGES in self.inner.caps or (start == 0 and stop is None):
            return self.inner.read(path, start, stop)
        return self._sliced(path, start, stop)

    async def read_bytes(self, path: Path) -> bytes:
        return await ops.read_bytes(self.inner, path)

    async def _sliced(self, path: Path, start: int, stop: int | None) -> AsyncIterator[bytes]:
        at = 0
        async with closing(self.inner.read(path)) as blocks:
            async for block in blocks:
                end = at + len(block)
                if end > start:
                    part = block[max(0, start - at) : None if stop is None else max(0, stop - at)]
                    if part:
                        yield part
                at = end
                if stop is not None and at >= stop:
                    return

    async def write(
        self, path: Path, data: Data, how: How = How.REPLACE, *, at: int = 0, if_version: str | None = None
    ) -> Stat:
        caps = self.inner.caps
        if if_version is not None and Cap.PRECONDITIONS not in caps:
            await self._check_version(path, if_version)
            if_version = None
        if how is How.LINK and Cap.LINKS not in caps:
            raise fail(errno.EPERM, path)
        if how is How.CREATE and Cap.CREATE not in caps:
            if await ops.exists(self.inner, path):
                raise fail(errno.EEXIST, path)
            how = How.REPLACE
        elif how is How.APPEND and Cap.APPEND not in caps:
            return await self._append(path, data, if_version)
        elif how is How.PATCH and Cap.PATCH not in caps:
            return await self._patch(path, data, at, if_version)
        return await self.inner.write(path, data, how, at=at, if_version=if_version)

    async def _check_version(self, path: Path, wanted: str) -> None:
        try:
            found = (await self.inner.stat(path)).version
        except FileNotFoundError:
            found = None
        if found != wanted:
            raise fail(errno.ESTALE, path)

    async def _append(self, path: Path, data: Data, if_version: str | None) -> Stat:
        try:
            stat = await self.inner.stat(path)
        except FileNotFoundError:
            return await self.inner.write(path, data, if_version=if_version)
        if stat.kind is Kind.DIR:
            raise fail(errno.EISDIR, path)
        return await self._rewrite(path, _joined(self.inner.read(path), data), stat, if_version)

    async def _patch(self, path: Path, data: Data, at: int, if_version: str | None) -> Stat:
        stat = await self.inner.stat(path)
        if stat.kind is Kind.DIR:
            raise fail(errno.EISDIR, path)
        if stat.size == 0 and at == 0:
            return await self._rewrite(path, data, stat, if_version)
        piece = await ops.collect(data)
        return await self._rewrite(path, self._patched(path, piece, at), stat, if_version)

    async def _patched(self, path: Path, piece: bytes, at: int) -> AsyncIterator[bytes]:
        seen = 0
        async for block in self.read(path, 0, at):
            seen += len(block)
            yield block
        if seen < at:
            yield bytes(at - seen)
        yield piece
        async for block in self.read(path, at + len(piece)):
            yield block

    async def _rewrite(self, path: Path, data: Data, old: Stat, if_version: str | None) -> Stat:
        """Replace content that was just read; fail if it has changed since."""
        if if_version is None and Cap.PRECONDITIONS in self.inner.caps:
            if_version = old.version
        return await self.inner.write(path, data, if_version=if_version)

    async def rename(self, src: Path, dst: Path) -> None:
        if Cap.RENAME in self.inner.caps:
            await self.inner.rename(src, dst)
            return
        stat = await self.inner.stat(src)
        if src == dst:
            return
        if dst.under(src):
            raise fail(errno.EINVAL, dst)
        try:
            existing = await self.inner.stat(dst)
        except FileNotFoundError:
            pass
        else:
            if existing.is_dir != stat.is_dir:
                raise fail(errno.EISDIR if existing.is_dir else errno.ENOTDIR, dst)
            if existing.is_dir:
                await self.inner.remove(dst)
        await ops.copy_tree(self, src, self, dst)
        await ops.remove_tree(self, src)

    async def copy(self, src: Path, dst: Path) -> None:
        if Cap.COPY in self.inner.caps:
            await self.inner.copy(src, dst)
        else:
            await self.inner.write(dst, self.inner.read(src))

    async def setattr(self, path: Path, attrs: Attrs) -> None:
        caps = self.inner.caps
        if attrs.size is not None and Cap.TRUNCATE not in caps:
            stat = await self.inner.stat(path)
            await self._rewrite(path, self._resized(path, attrs.size), stat, None)
            attrs = attrs._replace(size=None)
        if attrs == Attrs():
            await self.inner.stat(path)
            return
        if attrs.atime_ns is not None and attrs.mtime_ns is not None and Cap.ATIMES not in caps:
            attrs = attrs._replace(atime_ns=None)  # the time that matters can still be set
        unable = (
            (attrs.mode is not None and Cap.MODES not in caps)
            or (attrs.mtime_ns is not None and Cap.MTIMES not in caps)
            or (attrs.atime_ns is not None and Cap.ATIMES not in caps)
        )
        if unable:
            await self.inner.stat(path)
            raise fail(errno.ENOTSUP, path)
        await self.inner.setattr(path, attrs)

    async def _resized(self, path: Path, size: int) -> AsyncIterator[bytes]:
        seen = 0
        async for block in self.read(path, 0, size):
            seen += len(block)
            yield block
        while seen < size:
            gap = min(size - seen, 1 << 20)
            seen += gap
            yield bytes(gap)


async def _joined(first: AsyncIterator[bytes], second: Data) -> AsyncIterator[bytes]:
    async for block in first:
        yield block
    if isinstance(second, bytes):
        yield second
    else:
        async for block in second:
            yield block
