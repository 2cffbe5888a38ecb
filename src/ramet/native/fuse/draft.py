"""`Draft`: what programs have written to a file of a mount, on the disk until the file is closed.

- All open files of a node share its draft: a program reads what it, or another one, has written.
- The mount gets the whole content in one write, or only the end when programs have only appended.
- A store that fails is reported once; what was not stored is not sent later.
"""

from __future__ import annotations

import asyncio
import errno
import os
import resource
import tempfile
from collections.abc import AsyncIterator
from typing import Final

from ramet.core.errors import fail
from ramet.core.fs import FileSystem
from ramet.core.paths import Path
from ramet.core.resource import How
from ramet.core.streams import closing

BLOCK: Final = 1 << 20
MOST_FILES: Final = 4096
"""Drafts of one box at once, each with a descriptor of this process."""


class Spool:
    """The disk space of all drafts of a box."""

    def __init__(self, folder: str, most: int) -> None:
        self._folder, self._most = folder, most
        self.used = 0
        self._files, self._most_files = 0, min(MOST_FILES, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4)

    def open(self) -> int:
        """Return a new file without a name; ENFILE beyond the share of this process's descriptors."""
        if self._files >= self._most_files:
            raise fail(errno.ENFILE)
        with tempfile.TemporaryFile(dir=self._folder) as file:
            found = os.dup(file.fileno())
        self._files += 1
        return found

    def close(self, fd: int) -> None:
        os.close(fd)
        self._files -= 1

    def grow(self, size: int) -> None:
        """Count bytes; ENOSPC beyond the bound."""
        if size > 0 and self.used + size > self._most:
            raise fail(errno.ENOSPC)
        self.used += size


class Draft:
    """The new content of one file, or at first only what is appended to it. `close` frees its space."""

    def __init__(self, spool: Spool, maker: object, size: int = 0) -> None:
        """`size` is what the mount has; 0 where that is unknown."""
        self._spool, self._fd = spool, spool.open()
        self.maker = maker
        """The session that began it: another one must ask the mount, which may not have the file yet."""
        self.size = size
        self.complete = False
        """Whether the draft has the whole content; else the end that is to be appended."""
        self.dirty = False
        self.pending: How | None = None
        """How the file is to be made, while the mount does not have it."""
        self.users = 0
        """Files that are open for writing."""
        self.writer = 0
        """The thread that wrote last; 0 where the kernel wrote for a mapped file."""
        self.lock = asyncio.Lock()
        self._version: str | None = None
        """What the content was loaded from: the mount must still have that when the new content is stored."""
        self._held = 0
        """Bytes on the disk."""

    def close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            self._spool.close(fd)
            self._spool.grow(-self._held)
            self._held = 0

    def _empty(self) -> None:
        if self._fd < 0:
            return
        os.ftruncate(self._fd, 0)
        self._spool.grow(-self._held)
        self._held = 0

    def read(self, offset: int, size: int) -> bytes:
        """Return bytes of a complete draft."""
        return os.pread(self._fd, min(size, max(0, self.size - offset)), offset)

    def write(self, data: bytes | memoryview, offset: int) -> None:
        """Write into a complete draft."""
        self._put(data, offset)
        self.size, self.dirty = max(self.size, offset + len(data)), True

    def append(self, data: bytes | memoryview) -> None:
        self._put(data, self.size if self.complete else self._held)
        self.size, self.dirty = self.size + len(data), True

    def truncate(self, size: int) -> None:
        """Cut or grow a complete draft."""
        os.ftruncate(self._fd, size)
        self.size, self.dirty = size, True

    def replace(self) -> None:
        """Begin anew with nothing."""
        self._empty()
        self.complete, self.size, self.dirty, self._version = True, 0, True, None

    def _put(self, data: bytes | memoryview, at: int) -> None:
        more = at + len(data) - self._held
        if more > 0:
            self._spool.grow(more)
            self._held += more
        rest = memoryview(data)
        while rest:  # a disk that is nearly full takes a part
            done = os.pwrite(self._fd, rest, at)
            rest, at = rest[done:], at + done

    async def load(self, fs: FileSystem, path: Path) -> None:
        """Fetch the content: something else than an append is to come."""
        if self.complete:
            return
        await self.store(fs, path)
        self._version = (await fs.stat(path)).version
        at = 0
        try:
            async with closing(fs.read(path)) as blocks:
                async for block in blocks:
                    self._put(block, at)
                    at += len(block)
        except BaseException:
            self._empty()  # half of a file must not be taken for what is to be appended
            raise
        self.complete, self.size = True, at

    async def store(self, fs: FileSystem, path: Path) -> None:
        """Bring what is new to the mount."""
        if not self.dirty:
            return
        self.dirty = False
        how, self.pending = self.pending, None
        if self.complete:
            stat = await fs.write(path, self._blocks(self.size), how or How.REPLACE, if_version=self._version)
            self._version = stat.version if self._version is not None else None
            return
        try:
            await fs.write(path, self._blocks(self._held), How.APPEND)
        finally:
            self._empty()

    async def _blocks(self, end: int) -> AsyncIterator[bytes]:
        at = 0
        while at < end:
            block = os.pread(self._fd, min(BLOCK, end - at), at)
            if not block:  # the end is a hole
                block = bytes(min(BLOCK, end - at))
            at += len(block)
            yield block
