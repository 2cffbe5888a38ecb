"""`Trace`: one record per operation on a resource: verb, path, bytes, duration, errno."""

from __future__ import annotations

import errno
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import NamedTuple, TypeVar

from ramet.core import ops
from ramet.core.errors import fail
from ramet.core.paths import Path
from ramet.core.resource import Data, Fifos, Handle, HardLinks, How, Openable, Resource, extension
from ramet.core.stat import Attrs, Stat
from ramet.core.streams import closing
from ramet.layers.passthrough import Passthrough

T = TypeVar("T")


class Operation(NamedTuple):
    """One file operation as it happened."""

    verb: str
    path: Path
    bytes_read: int = 0
    bytes_written: int = 0
    seconds: float = 0.0
    error: int = 0
    """The errno, 0 for success."""


class Trace(Passthrough):
    def __init__(
        self, inner: Resource, record: Callable[[Operation], None], clock: Callable[[], float] = time.perf_counter
    ) -> None:
        super().__init__(inner)
        self._record, self._clock = record, clock

    async def _traced(self, verb: str, path: Path, act: Awaitable[T], written: int = 0) -> T:
        start = self._clock()
        number = 0
        try:
            return await act
        except OSError as error:
            number = error.errno or errno.EIO
            raise
        finally:
            self._record(Operation(verb, path, 0, 0 if number else written, self._clock() - start, number))

    async def stat(self, path: Path) -> Stat:
        return await self._traced("stat", path, self.inner.stat(path))

    async def scan(self, path: Path) -> AsyncIterator[tuple[str, Stat]]:
        start, number = self._clock(), 0
        try:
            async with closing(self.inner.scan(path)) as entries:
                async for entry in entries:
                    yield entry
        except OSError as error:
            number = error.errno or errno.EIO
            raise
        finally:
            self._record(Operation("scan", path, 0, 0, self._clock() - start, number))

    async def read(self, path: Path, start: int = 0, stop: int | None = None) -> AsyncIterator[bytes]:
        began, number, total = self._clock(), 0, 0
        try:
            async with closing(self.inner.read(path, start, stop)) as blocks:
                async for block in blocks:
                    total += len(block)
                    yield block
        except OSError as error:
            number = error.errno or errno.EIO
            raise
        finally:
            self._record(Operation("read", path, total, 0, self._clock() - began, number))

    async def entries(self, path: Path) -> list[tuple[str, Stat]]:
        return await self._traced("scan", path, ops.entries(self.inner, path))

    async def read_bytes(self, path: Path) -> bytes:
        began, number, total = self._clock(), 0, 0
        try:
            data = await ops.read_bytes(self.inner, path)
            total = len(data)
            return data
        except OSError as error:
            number = error.errno or errno.EIO
            raise
        finally:
            self._record(Operation("read", path, total, 0, self._clock() - began, number))

    async def small_files(self, directory: Path, names: Sequence[str]) -> list[bytes | None]:
        began = self._clock()
        found = await ops.small_files(self.inner, directory, names)
        read = [(directory / name, len(data)) for name, data in zip(names, found, strict=True) if data is not None]
        seconds = (self._clock() - began) / max(1, len(read))
        for path, size in read:
            self._record(Operation("read", path, size, 0, seconds))
        return found

    async def write(
        self, path: Path, data: Data, how: How = How.REPLACE, *, at: int = 0, if_version: str | None = None
    ) -> Stat:
        counted = _Counted(data)
        start, number = self._clock(), 0
        try:
            return await self.inner.write(path, counted.data, how, at=at, if_version=if_version)
        except OSError as error:
            number = error.errno or errno.EIO
            raise
        finally:
            self._record(Operation("write", path, 0, 0 if number else counted.size, self._clock() - start, number))

    async def mkdir(self, path: Path) -> None:
        await self._traced("mkdir", path, self.inner.mkdir(path))

    async def remove(self, path: Path) -> None:
        await self._traced("remove", path, self.inner.remove(path))

    async def rename(self, src: Path, dst: Path) -> None:
        await self._traced("rename", src, self.inner.rename(src, dst))

    async def copy(self, src: Path, dst: Path) -> None:
        await self._traced("copy", dst, self.inner.copy(src, dst))

    async def setattr(self, path: Path, attrs: Attrs) -> None:
        if attrs == Attrs():
            await self.inner.setattr(path, attrs)  # only a check that the path can be written
            return
        await self._traced("setattr", path, self.inner.setattr(path, attrs))

    async def link(self, src: Path, dst: Path) -> None:
        power = extension(self.inner, HardLinks)  # type: ignore[type-abstract]
        if power is None:
            raise fail(errno.EPERM, dst)
        await self._traced("link", dst, power.link(src, dst))

    async def mkfifo(self, path: Path) -> None:
        power = extension(self.inner, Fifos)  # type: ignore[type-abstract]
        if power is None:
            raise fail(errno.EPERM, path)
        await self._traced("mkfifo", path, power.mkfifo(path))

    def open(self, path: Path, *, write: bool) -> Handle:
        openable = extension(self.inner, Openable)  # type: ignore[type-abstract]
        if openable is None:
            raise fail(errno.ENOTSUP, path)
        return _TracedHandle(openable.open(path, write=write), path, self._record, self._clock)


class _Counted:
    """Counts the bytes of `Data` while they pass."""

    __slots__ = ("data", "size")

    def __init__(self, data: Data) -> None:
        self.size = len(data) if isinstance(data, bytes) else 0
        self.data: Data = data if isinstance(data, bytes) else self._count(data)

    async def _count(self, data: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for block in data:
            self.size += len(block)
            yield block


class _TracedHandle:
    """An open file whose reads and writes become one record each when it is closed."""

    __slots__ = ("_clock", "_handle", "_path", "_read", "_record", "_start", "_written")

    def __init__(
        self, handle: Handle, path: Path, record: Callable[[Operation], None], clock: Callable[[], float]
    ) -> None:
        self._handle, self._path, self._record, self._clock = handle, path, record, clock
        self._read = self._written = 0
        self._start = clock()

    def pread(self, offset: int, size: int) -> bytes:
        block = self._handle.pread(offset, size)
        self._read += len(block)
        return block

    def block(self, offset: int) -> bytes:
        block = self._handle.block(offset)
        self._read += len(block)
        return block

    def pwrite(self, offset: int, data: bytes) -> int:
        done = self._handle.pwrite(offset, data)
        self._written += done
        return done

    def truncate(self, size: int) -> None:
        self._handle.truncate(size)

    def stat(self) -> Stat:
        return self._handle.stat()

    def close(self) -> None:
        self._handle.close()
        verb = "write" if self._written else "read"
        self._record(Operation(verb, self._path, self._read, self._written, self._clock() - self._start))
        self._read = self._written = 0
