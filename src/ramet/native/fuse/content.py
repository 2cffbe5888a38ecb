"""`Content`: the bytes of one open file of a mount, as the kernel asks for them.

Reads that follow each other share one stream, which fetches no more than they take. Another read asks for its range.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Final

from ramet.core.fs import FileSystem
from ramet.core.paths import Path
from ramet.core.streams import closing

SKIPPED: Final = 1 << 20
"""Bytes that are rather read and dropped than asked for anew."""


class Content:
    """Call `read` with any offsets, and `close` at the end."""

    def __init__(self, fs: FileSystem) -> None:
        self._fs = fs
        self._blocks: AsyncIterator[bytes] | None = None
        self._held = memoryview(b"")
        """What the stream has given and no read has taken."""
        self._at = 0
        """The offset of that, or where the last read ended."""
        self._ended = False
        """The stream has ended, and no read was answered with nothing since."""
        self._lock = asyncio.Lock()

    async def read(self, path: Path, offset: int, size: int) -> bytes:
        """Return bytes; fewer than `size` only at the end."""
        async with self._lock:
            try:
                return await self._read(path, offset, size)
            except BaseException:
                await self._drop(offset)
                raise

    async def _read(self, path: Path, offset: int, size: int) -> bytes:
        if self._ended and offset == self._at:
            self._ended = False
            return b""
        if self._blocks is None or not 0 <= offset - self._at <= SKIPPED:
            follows = offset in (0, self._at)
            await self._drop(offset)
            if not follows:
                return await self._range(path, offset, size)
            self._blocks = self._fs.read(path, offset)
        await self._take(offset - self._at)
        return await self._take(size)

    async def _range(self, path: Path, offset: int, size: int) -> bytes:
        async with closing(self._fs.read(path, offset, offset + size)) as blocks:
            found = b"".join([block async for block in blocks])
        self._at = offset + len(found)
        return found

    async def _take(self, size: int) -> bytes:
        """Return the next bytes of the stream."""
        parts: list[memoryview] = []
        while size > 0 and self._blocks is not None:
            if not self._held:
                block = await anext(self._blocks, None)
                if block is None:
                    self._blocks, self._ended = None, True
                    break
                self._held = memoryview(block)
            part, self._held = self._held[:size], self._held[size:]
            size -= len(part)
            self._at += len(part)
            parts.append(part)
        return b"".join(parts)

    async def _drop(self, offset: int) -> None:
        blocks, self._blocks = self._blocks, None
        self._held, self._at, self._ended = memoryview(b""), offset, False
        if isinstance(blocks, AsyncGenerator):
            await blocks.aclose()

    async def close(self) -> None:
        await self._drop(0)
