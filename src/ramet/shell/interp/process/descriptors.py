"""File descriptors: a table of numbers that share reference-counted open file descriptions.

- Duplicates share one `Description` and so one offset; it closes with its last descriptor.
- Streams that the caller of the shell lent are never closed.
"""

from __future__ import annotations

import errno
from collections.abc import Awaitable
from typing import Final

from ramet.core.errors import fail
from ramet.core.streams import BytesReader, Capture, Null, PipeReader, PipeWriter, Reader, Writer


class Description:
    """One open stream and how many descriptors lead to it."""

    __slots__ = ("_reads", "_writes", "base", "lent", "path", "refs", "standard", "stream")

    def __init__(
        self,
        stream: Reader | Writer,
        *,
        lent: bool = False,
        path: str = "",
        reads: bool | None = None,
        writes: bool | None = None,
    ) -> None:
        self.stream = stream
        self.refs = 1
        self.lent = lent
        self.base = lent
        """Whether it belongs to the shell itself (inherited or by `exec`), not to the redirections of a command."""
        self.path = path
        self.standard: int | None = None
        """0, 1 or 2 for a standard stream of the call; the next call replaces it."""
        self._reads = isinstance(stream, Reader) if reads is None else reads
        self._writes = isinstance(stream, Writer) if writes is None else writes

    @property
    def reader(self) -> Reader | None:
        return self.stream if self._reads else None  # type: ignore[return-value]

    @property
    def writer(self) -> Writer | None:
        return self.stream if self._writes else None  # type: ignore[return-value]

    def share(self) -> Description:
        self.refs += 1
        return self

    def release(self) -> Awaitable[None] | None:
        """Let go of one reference; what has to be awaited when that closes the stream."""
        self.refs -= 1
        if self.refs > 0 or self.lent:
            return None
        stream = self.stream
        if isinstance(stream, _IN_MEMORY):
            return None
        if isinstance(stream, _PIPES):
            stream.close_now()
            return None
        return stream.close()


_PIPES: Final = (PipeReader, PipeWriter)
_IN_MEMORY: Final = (Capture, Null, BytesReader)
Table = dict[int, Description]


def share_all(table: Table) -> Table:
    for description in table.values():
        description.refs += 1
    return dict(table)


def release_some(table: Table) -> Awaitable[None] | None:
    """Close descriptors up to the first that has to be awaited, and return its awaitable."""
    while table:
        # Removed before it closes, so that after an interruption the table has only the others.
        closing = table.popitem()[1].release()
        if closing is not None:
            return closing
    return None


async def release_all(table: Table, closing: Awaitable[None] | None = None) -> None:
    """Close every descriptor, behind one that is about to be; the first failure is raised after all are closed."""
    failure: OSError | None = None
    closing = closing or release_some(table)
    while closing is not None:
        try:
            await closing
        except OSError as error:
            failure = failure or error
        closing = release_some(table)
    if failure is not None:
        raise failure


class ClosedReader(Reader):
    """What a command reads from when its standard input is closed."""

    __slots__ = ()
    refused = errno.EBADF

    async def _fill(self) -> bytes:
        raise fail(self.refused, "-")


class ClosedWriter(Writer):
    """What a command writes to when its standard output is closed."""

    __slots__ = ()
    refused = errno.EBADF

    def write(self, data: bytes) -> None:
        if data:
            raise fail(self.refused)
