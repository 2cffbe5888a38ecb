"""Open files: one offset that all duplicates share, over a handle or over plain verbs.

- A `LocalStream` acts at once: what one descriptor writes, the next one reads.
- A `RemoteStream` buffers writes until it is flushed; the VFS flushes it before any access to its path.
- A `DocumentStream` is written once, when it is closed, for resources where each write is an act that others see.
- A close that fails discards what was not written: its error is reported once, and nothing is sent later.
"""

from __future__ import annotations

import errno
import os
from collections.abc import AsyncIterator, Callable

from ramet.core.errors import fail
from ramet.core.fs import Open
from ramet.core.paths import Path
from ramet.core.resource import Handle, How, Resource
from ramet.core.stat import Attrs, Kind, Stat
from ramet.core.streams import BLOCK, FileStream

GATHER = 4 * 1024 * 1024
"""Bytes that a remote stream buffers before it must be drained."""
LARGEST_DOCUMENT = 64 * 1024 * 1024
"""Bytes of an open file that is sent to a service as one."""


class CountedStream(FileStream):
    """Counts the bytes that pass and reports them when the file is closed."""

    __slots__ = ("bytes_read", "bytes_written", "on_close", "on_write")

    def __init__(self) -> None:
        super().__init__()
        self.bytes_read = self.bytes_written = 0
        self.on_close: Callable[[int, int], None] | None = None
        self.on_write: Callable[[], None] | None = None

    def _on_close(self) -> None:
        if self.on_close is not None:
            report, self.on_close = self.on_close, None
            report(self.bytes_read, self.bytes_written)


class LocalStream(CountedStream):
    __slots__ = ("_append", "_handle", "_lent", "_offset", "how")

    def __init__(self, handle: Handle, how: Open) -> None:
        super().__init__()
        self._handle = handle
        self.how = how
        self._append = bool(how & Open.APPEND)
        self._offset = 0
        self._lent = -1
        """The descriptor that programs of the machine have, too: then the offset is the kernel's."""

    def lend(self) -> int:
        if self._lent < 0:
            offset = self.tell()
            lend = getattr(self._handle, "lend", None)
            if lend is None:
                return -1
            self._lent = lend(append=self._append)
            os.lseek(self._lent, offset, os.SEEK_SET)
        elif self._buffer:
            os.lseek(self._lent, self.tell(), os.SEEK_SET)
        self._buffer, self._pos = b"", 0
        if self.how & Open.WRITE and self.on_write is not None:
            self.on_write()
        return self._lent

    def _find_offset(self) -> None:
        """Ask the kernel where programs have left the offset."""
        if self._lent >= 0:
            self._offset = os.lseek(self._lent, 0, os.SEEK_CUR)

    def _fill_now(self) -> bytes:
        if not self.how & Open.READ:
            raise fail(errno.EBADF)
        if self._lent >= 0:
            block = os.read(self._lent, BLOCK)
            self._offset = os.lseek(self._lent, 0, os.SEEK_CUR)
            self.bytes_read += len(block)
            return block
        block = self._handle.block(self._offset)
        self._offset += len(block)
        self.bytes_read += len(block)
        return block

    async def _fill(self) -> bytes:
        return self._fill_now()

    def write(self, data: bytes) -> None:
        if not self.how & Open.WRITE:
            raise fail(errno.EBADF)
        if self._buffer:
            self.seek(self.tell())
        if self.on_write is not None:
            self.on_write()
        if self._append:
            self._offset = self._handle.stat().size or 0
        else:
            self._find_offset()
        self._offset += self._handle.pwrite(self._offset, data)
        self.bytes_written += len(data)
        if self._lent >= 0:
            os.lseek(self._lent, self._offset, os.SEEK_SET)

    def tell(self) -> int:
        self._find_offset()
        return self._offset - (len(self._buffer) - self._pos)

    def seek(self, offset: int) -> None:
        self._offset = offset
        self._buffer, self._pos = b"", 0
        if self._lent >= 0:
            os.lseek(self._lent, offset, os.SEEK_SET)

    async def stat(self) -> Stat:
        return self._handle.stat()

    async def truncate(self, size: int) -> None:
        if self.on_write is not None:
            self.on_write()
        self._handle.truncate(size)

    async def close(self) -> None:
        await super().close()
        self._handle.close()
        self._on_close()


class RemoteStream(CountedStream):
    """A file on a resource without handles. `on_dirty` tells the VFS whether there is something to flush."""

    __slots__ = (
        "_append",
        "_gathered",
        "_gathered_at",
        "_offset",
        "_on_dirty",
        "_path",
        "_source",
        "how",
        "resource",
    )

    def __init__(
        self, resource: Resource, path: Path, how: Open, on_dirty: Callable[[RemoteStream, bool], None]
    ) -> None:
        super().__init__()
        self.resource, self._path, self.how, self._on_dirty = resource, path, how, on_dirty
        self._append = bool(how & Open.APPEND)
        self._offset = 0
        self._gathered: list[bytes] = []
        self._gathered_at = 0
        self._source: AsyncIterator[bytes] | None = None

    @property
    def full(self) -> bool:  # type: ignore[override]
        return sum(map(len, self._gathered)) >= GATHER

    async def _fill(self) -> bytes:
        if not self.how & Open.READ:
            raise fail(errno.EBADF)
        await self.flush()
        if self._source is None:
            self._source = self.resource.read(self._path, self._offset)
        async for block in self._source:
            if block:
                self._offset += len(block)
                self.bytes_read += len(block)
                return block
        self._source = None
        return b""

    def write(self, data: bytes) -> None:
        if not self.how & Open.WRITE:
            raise fail(errno.EBADF)
        if not data:
            return
        if self.on_write is not None:
            self.on_write()
        if self._buffer or self._source is not None:
            self.seek(self.tell())
        if not self._gathered:
            self._gathered_at = self._offset
            self._on_dirty(self, True)
        self._gathered.append(data)
        self._offset += len(data)
        self.bytes_written += len(data)

    async def flush(self) -> None:
        """Store the buffered writes; on failure they stay buffered and the error is raised."""
        if not self._gathered:
            return
        data = b"".join(self._gathered)
        if self._append:
            await self.resource.write(self._path, data, How.APPEND)
        else:
            await self.resource.write(self._path, data, How.PATCH, at=self._gathered_at)
        self._gathered.clear()
        self._on_dirty(self, False)

    async def drain(self) -> None:
        await self.flush()

    def tell(self) -> int:
        return self._offset - (len(self._buffer) - self._pos)

    def seek(self, offset: int) -> None:
        if self._gathered and not self._append and offset != self._offset:
            raise fail(errno.ESPIPE, self._path, "seek before the gathered data was flushed")
        self._offset = offset
        self._buffer, self._pos = b"", 0
        self._source = None

    async def stat(self) -> Stat:
        await self.flush()
        return await self.resource.stat(self._path)

    async def truncate(self, size: int) -> None:
        await self.flush()
        if self.on_write is not None:
            self.on_write()
        await self.resource.setattr(self._path, Attrs(size=size))

    async def close(self) -> None:
        await super().close()
        try:
            await self.flush()
        finally:
            if self._gathered:
                self._gathered.clear()
                self._on_dirty(self, False)
            self._on_close()
            closing = getattr(self._source, "aclose", None)
            if closing is not None:
                await closing()


class DocumentStream(CountedStream):
    """A file of a service, in memory while it is open."""

    __slots__ = ("_changed", "_content", "_offset", "_path", "_version", "how", "resource")

    def __init__(self, resource: Resource, path: Path, how: Open, content: bytes, version: str | None) -> None:
        """`content` is what is there already; None of it if the file is made, truncated, or only appended to."""
        super().__init__()
        self.resource, self._path, self.how = resource, path, how
        self._content, self._version = bytearray(content), version
        self._offset = 0
        self._changed = bool(how & (Open.TRUNCATE | Open.CREATE)) and not content

    def _fill_now(self) -> bytes:
        if not self.how & Open.READ:
            raise fail(errno.EBADF)
        block = bytes(self._content[self._offset : self._offset + BLOCK])
        self._offset += len(block)
        self.bytes_read += len(block)
        return block

    async def _fill(self) -> bytes:
        return self._fill_now()

    def write(self, data: bytes) -> None:
        if self._buffer:
            self.seek(self.tell())
        if self.how & Open.APPEND:
            self._offset = len(self._content)
        if self._offset + len(data) > LARGEST_DOCUMENT:
            raise fail(errno.EFBIG, self._path)
        if self.on_write is not None:
            self.on_write()
        self._content.extend(bytes(max(0, self._offset - len(self._content))))
        self._content[self._offset : self._offset + len(data)] = data
        self._offset += len(data)
        self.bytes_written += len(data)
        self._changed = self._changed or bool(data)

    def tell(self) -> int:
        return self._offset - (len(self._buffer) - self._pos)

    def seek(self, offset: int) -> None:
        self._offset = offset
        self._buffer, self._pos = b"", 0

    async def stat(self) -> Stat:
        return Stat(Kind.FILE, len(self._content))

    async def truncate(self, size: int) -> None:
        self._changed = True
        del self._content[size:]
        self._content.extend(bytes(max(0, size - len(self._content))))

    async def close(self) -> None:
        await super().close()
        changed, self._changed = self._changed, False
        try:
            if changed:
                how = How.CREATE if self.how & Open.EXCLUSIVE else How.REPLACE
                if self.how & Open.APPEND and not self.how & Open.TRUNCATE:
                    how = How.APPEND
                await self.resource.write(self._path, bytes(self._content), how, if_version=self._version)
        finally:
            self._on_close()


class DeviceStream(FileStream):
    """`/dev/null`, `/dev/zero`, `/dev/full` and `/dev/urandom` as open files."""

    __slots__ = ("_lent", "_name")

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name
        self._lent = -1

    def lend(self) -> int:
        if self._lent < 0 and self._name != "tty":
            self._lent = os.open(f"/dev/{self._name}", os.O_RDWR | os.O_CLOEXEC)
        return self._lent

    async def close(self) -> None:
        await super().close()
        if self._lent >= 0:
            os.close(self._lent)
            self._lent = -1

    def _fill_now(self) -> bytes:
        return device_block(self._name, BLOCK)

    async def _fill(self) -> bytes:
        return self._fill_now()

    def write(self, data: bytes) -> None:
        if self._name == "full" and data:
            raise fail(errno.ENOSPC)

    def tell(self) -> int:
        return 0

    def seek(self, offset: int) -> None:
        self._buffer, self._pos = b"", 0

    async def stat(self) -> Stat:
        return Stat(Kind.DEVICE, 0, mode=0o666)

    async def truncate(self, size: int) -> None:
        raise fail(errno.EINVAL)


def device_block(name: str, size: int) -> bytes:
    if name in ("null", "tty"):
        return b""
    return os.urandom(size) if name in ("urandom", "random") else bytes(size)
