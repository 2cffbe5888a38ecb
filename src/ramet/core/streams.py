"""Byte streams: `Reader`, `Writer` and the bounded pipe between them.

- A writer accepts `write()` at any time and turns `full`; a producer then awaits `drain()`.
- A reader keeps what it has read ahead, so that all who share it see each byte once.
- A reader checks the deadline of its execution and yields the event loop between blocks, whatever the source is: no
  command has to remember it.
"""

from __future__ import annotations

import asyncio
import errno
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from ramet.core.errors import LimitExceeded, fail
from ramet.core.kernel_pipe import KernelPipe
from ramet.core.limits import DEFAULT_LIMITS, Budget
from ramet.core.stat import Stat

Item = TypeVar("Item")
BLOCK = 256 * 1024
PIPE_CAPACITY = 256 * 1024


class Reader:
    """Buffered input. Subclasses give `_fill` (and `_fill_now` when they can answer without waiting)."""

    __slots__ = ("_buffer", "_pos", "budget", "idle")
    terminal: bool = False
    """Whether this is a terminal (`test -t`)."""
    refused: int = 0
    """The errno that every read fails with; 0 for a readable stream."""
    lasting: bool = False
    """Whether it is seekable: bytes that one program read ahead are there for the next."""

    def __init__(self) -> None:
        self._buffer = b""
        self._pos = 0
        self.idle: Callable[[], None] | None = None
        """Called before waiting for more input: see `live`."""
        self.budget: Budget | None = None
        """The execution that reads: every block checks its deadline and yields the event loop when a turn is due.
        A reader without one yields as often."""

    @property
    def longest(self) -> int:
        """The most bytes that one line may have."""
        return (DEFAULT_LIMITS if self.budget is None else self.budget.limits).string_bytes

    async def _fill(self) -> bytes:
        """Return the next block; empty at the end."""
        raise NotImplementedError

    def _fill_now(self) -> bytes | None:
        """Return the next block if it is available, empty at the end, None if it would have to wait."""
        return None

    async def _next(self) -> bytes:
        """Return the next block, after a turn of the event loop if one is due."""
        await self._turn()
        return await self._fill()

    async def _turn(self) -> None:
        """Check the deadline; yield the event loop if a turn is due."""
        if self.budget is None:
            self.budget = Budget()
        if self.budget.check():
            await self.budget.yield_turn()

    async def read(self, size: int = BLOCK) -> bytes:
        """Read at most `size` bytes; empty at the end."""
        buffer, pos = self._buffer, self._pos
        if pos >= len(buffer):
            buffer, pos = await self._next(), 0
        if pos == 0 and len(buffer) <= size:
            self._buffer, self._pos = b"", 0
            return buffer
        taken = buffer[pos : pos + size]
        self._buffer, self._pos = buffer, pos + len(taken)
        return taken

    def left(self) -> bytes | None:
        """Return everything unread if all of it is in memory; None otherwise."""
        return None

    async def read_exactly(self, size: int) -> bytes:
        """Read `size` bytes, fewer only at the end; more than may be held as a whole is an error."""
        parts: list[bytes] = []
        room = (DEFAULT_LIMITS if self.budget is None else self.budget.limits).whole
        while size > 0:
            part = await self.read(size)
            if not part:
                break
            parts.append(part)
            size -= len(part)
            room -= len(part)
            if room < 0:
                raise LimitExceeded("whole_bytes", (self.budget or Budget()).limits.whole)
        return b"".join(parts)

    async def read_all(self, limit: int | None = None) -> bytes:
        """Read to the end; more than the limit is an error."""
        parts: list[bytes] = []
        total = 0
        name = "whole_bytes" if limit is None else "string_bytes"
        if limit is None:
            limit = (DEFAULT_LIMITS if self.budget is None else self.budget.limits).whole
        while block := await self.read():
            total += len(block)
            if total > limit:
                raise LimitExceeded(name, limit)
            parts.append(block)
        return b"".join(parts)

    def readline_now(self, delim: bytes = b"\n") -> bytes | None:
        """Return one line with its delimiter if it is available, else None; empty at the end."""
        end = self._buffer.find(delim, self._pos)
        if end < 0:
            parts = [self._buffer[self._pos :]]
            size = len(parts[0])
            while (block := self._fill_now() if size <= BLOCK else None) and delim not in block:
                parts.append(block)
                size += len(block)
            if block:
                parts.append(block)
            self._buffer, self._pos = parts[0] if len(parts) == 1 else b"".join(parts), 0
            if block is None:
                return None
            end = self._buffer.find(delim, len(self._buffer) - len(block)) if block else -1
            if end < 0:
                end = len(self._buffer) - 1
        line = self._buffer[self._pos : end + 1]
        self._pos = end + 1
        return line

    async def readline(self, delim: bytes = b"\n") -> bytes:
        """Read one line with its delimiter, which only the last line may lack; empty at the end."""
        end = self._buffer.find(delim, self._pos)
        if end < 0:
            parts = [self._buffer[self._pos :]]
            held = len(parts[0])
            self._buffer, self._pos = b"", 0
            while block := await self._next():
                end = block.find(delim)
                if end >= 0:
                    parts.append(block[: end + 1])
                    self._buffer, self._pos = block, end + 1
                    break
                parts.append(block)
                held += len(block)
                self.hold(held)
            return b"".join(parts)
        line = self._buffer[self._pos : end + 1]
        self._pos = end + 1
        return line

    def hold(self, size: int) -> None:
        """Count the bytes of an unfinished line; raise beyond the limit."""
        if size > self.longest:
            raise LimitExceeded("string_bytes", self.longest)

    def hold_whole(self, size: int) -> None:
        """Count the bytes that are kept of an input; raise beyond the limit."""
        most = (DEFAULT_LIMITS if self.budget is None else self.budget.limits).whole
        if size > most:
            raise LimitExceeded("whole_bytes", most)

    def unread(self, data: bytes) -> None:
        """Push back bytes; the next read returns them first."""
        self._buffer, self._pos = data + self._buffer[self._pos :], 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while block := await self.read():
            yield block

    async def close(self) -> None:
        self._buffer, self._pos = b"", 0


class Writer:
    """Output that always accepts data and tells when it is full."""

    __slots__ = ()
    full: bool = False
    terminal: bool = False
    """Whether this is a terminal (`test -t`)."""
    refused: int = 0
    """The errno that every write fails with; 0 for a writable stream."""

    def write(self, data: bytes) -> None:
        raise NotImplementedError

    async def drain(self) -> None:
        """Wait until there is room again."""

    async def close(self) -> None:
        """Flush and close; everything written has arrived when this returns."""


class FileStream(Reader, Writer):
    """An open file description: one offset that all its duplicates share. Made by `FileSystem.open`."""

    __slots__ = ("lendable", "locked")
    lasting = True

    def __init__(self) -> None:
        super().__init__()
        self.lendable = True
        """Whether programs of the machine may have the file itself: they can open it again in another way."""
        self.locked: object = None
        """The lock that this description holds (`flock`); released on close."""

    def lend(self) -> int:
        """Return a descriptor for a program of the machine, which moves the offset of this file; -1 without one."""
        return -1

    def tell(self) -> int:
        raise NotImplementedError

    def seek(self, offset: int) -> None:
        raise NotImplementedError

    async def stat(self) -> Stat:
        raise NotImplementedError

    async def truncate(self, size: int) -> None:
        raise NotImplementedError

    async def close(self) -> None:
        await super().close()
        self.locked = None


class BytesReader(Reader):
    """A constant, or a sequence of constants, as input."""

    __slots__ = ("_rest",)

    def __init__(self, *blocks: bytes) -> None:
        super().__init__()
        self._rest = deque(blocks)

    def _fill_now(self) -> bytes:
        while self._rest:
            if block := self._rest.popleft():
                return block
        return b""

    async def _fill(self) -> bytes:
        return self._fill_now()

    def left(self) -> bytes:
        return b"".join((self._buffer[self._pos :], *self._rest))


class IteratorReader(Reader):
    """Any stream of blocks as input."""

    __slots__ = ("_source",)

    def __init__(self, source: AsyncIterator[bytes]) -> None:
        super().__init__()
        self._source = source

    async def _fill(self) -> bytes:
        if self.idle is not None:
            self.idle()
        async for block in self._source:
            if block:
                return block
            await self._turn()  # a source of empty blocks may never suspend
        return b""

    async def close(self) -> None:
        await super().close()
        closing = getattr(self._source, "aclose", None)
        if closing is not None:
            await closing()


class Capture(Writer):
    """Collects output in memory up to a limit; writing beyond it raises."""

    __slots__ = ("_limit", "_name", "_size", "parts")

    def __init__(self, limit: int | None = None, name: str = "output_bytes") -> None:
        self.parts: list[bytes] = []
        self._size = 0
        self._limit = limit
        self._name = name

    def write(self, data: bytes) -> None:
        self._size += len(data)
        if self._limit is not None and self._size > self._limit:
            room = self._limit - (self._size - len(data))
            if room > 0:
                self.parts.append(data[:room])
            raise LimitExceeded(self._name, self._limit)
        self.parts.append(data)

    def getvalue(self) -> bytes:
        if len(self.parts) > 1:
            self.parts = [b"".join(self.parts)]
        return self.parts[0] if self.parts else b""

    def head(self, size: int) -> bytes:
        """Return the first `size` bytes."""
        if len(self.parts) > 1 and len(self.parts[0]) < size:
            found = []
            for part in self.parts:
                found.append(part[:size])
                size -= len(found[-1])
                if not size:
                    break
            return b"".join(found)
        return self.parts[0][:size] if self.parts else b""

    def __len__(self) -> int:
        return self._size

    def __bool__(self) -> bool:
        return True  # an empty capture is still a writer


class Null(Reader, Writer):
    """`/dev/null`."""

    __slots__ = ()

    def write(self, data: bytes) -> None:
        pass

    def _fill_now(self) -> bytes:
        return b""

    async def _fill(self) -> bytes:
        return b""


class OpenDirectory(Reader):
    """A directory opened like a file; reading it fails with EISDIR."""

    __slots__ = ()
    refused = errno.EISDIR

    def _fill_now(self) -> bytes:
        raise fail(self.refused)

    async def _fill(self) -> bytes:
        return self._fill_now()


class Tee(Writer):
    """Writes everything to several writers."""

    __slots__ = ("_writers",)

    def __init__(self, writers: Iterable[Writer]) -> None:
        self._writers = tuple(writers)

    @property
    def full(self) -> bool:  # type: ignore[override]
        return any(writer.full for writer in self._writers)

    def write(self, data: bytes) -> None:
        for writer in self._writers:
            writer.write(data)

    async def drain(self) -> None:
        for writer in self._writers:
            await writer.drain()


# ---------------------------------------------------------------------------------------------------- the pipe


class _Channel:
    """What the two ends of a pipe share."""

    __slots__ = ("blocks", "capacity", "kernel", "reader_gone", "size", "wake_reader", "wake_writers", "writer_gone")

    def __init__(self, capacity: int) -> None:
        self.blocks: deque[bytes] = deque()
        self.size = 0
        self.capacity = capacity
        self.reader_gone = False
        self.writer_gone = False
        self.wake_reader: asyncio.Future[None] | None = None
        self.wake_writers: list[asyncio.Future[None]] = []
        self.kernel: KernelPipe | None = None
        """What carries the data since a program of the machine has one of the ends."""

    def lend(self, make: Callable[[], tuple[int, int]]) -> KernelPipe:
        """Carry the data by a pipe of the kernel from now on; `make` makes one."""
        if self.kernel is None:
            self.kernel = KernelPipe(make(), b"".join(self.blocks), self._kernel_moved)
            self.blocks.clear()
            self.size = 0
            self._kernel_moved()
        return self.kernel

    def _kernel_moved(self) -> None:
        if self.kernel is not None and self.kernel.broken:
            self.reader_gone = True
        self.notify_reader()
        self.notify_writers()

    def notify_reader(self) -> None:
        if self.wake_reader is not None:
            if not self.wake_reader.done():
                self.wake_reader.set_result(None)
            self.wake_reader = None

    def notify_writers(self) -> None:
        for future in self.wake_writers:
            if not future.done():
                future.set_result(None)
        self.wake_writers.clear()


class PipeReader(Reader):
    __slots__ = ("_channel", "terminal")

    def __init__(self, channel: _Channel) -> None:
        super().__init__()
        self._channel = channel
        self.terminal = False

    def lend(self, make: Callable[[], tuple[int, int]]) -> int:
        """Return a descriptor for a program of the machine; -1 while bytes that were read ahead are here."""
        if self._pos < len(self._buffer) or self._channel.reader_gone:
            return -1
        kernel = self._channel.lend(make)
        if self._channel.writer_gone:
            kernel.close_writer()
        return kernel.read_fd

    def _fill_now(self) -> bytes | None:
        channel = self._channel
        if channel.kernel is not None:
            return channel.kernel.read()
        if not channel.blocks:
            return b"" if channel.writer_gone else None
        if len(channel.blocks) == 1:
            block = channel.blocks.popleft()
            channel.size -= len(block)
        else:
            block = b"".join(channel.blocks)
            channel.blocks.clear()
            channel.size = 0
        if channel.wake_writers:
            channel.notify_writers()
        return block

    async def _fill(self) -> bytes:
        channel = self._channel
        while (block := self._fill_now()) is None:
            if self.idle is not None:
                self.idle()
            if channel.wake_reader is None or channel.wake_reader.done():
                channel.wake_reader = asyncio.get_running_loop().create_future()
            if channel.kernel is not None:
                channel.kernel.await_data()
            # Several readers may share the pipe (subshells): all wait on the same future, one gets the block.
            await asyncio.shield(channel.wake_reader)
            if self._pos < len(self._buffer):  # another reader woke first and left bytes
                block = self._buffer[self._pos :]
                self._buffer, self._pos = b"", 0
                return block
        return block

    def left(self) -> bytes | None:
        channel = self._channel
        if channel.kernel is not None:
            return None
        return b"".join((self._buffer[self._pos :], *channel.blocks)) if channel.writer_gone else None

    @property
    def ready(self) -> bool:
        """Whether a read would return without waiting."""
        if self._pos >= len(self._buffer) and self._channel.kernel is not None:
            block = self._channel.kernel.read()
            self._buffer, self._pos = block or b"", 0
            return block is not None
        return self._pos < len(self._buffer) or bool(self._channel.blocks) or self._channel.writer_gone

    def attend(self, *, reader: bool, writer: bool) -> None:
        """Set which ends of a named pipe are open; the content is lost when both are closed."""
        channel = self._channel
        channel.reader_gone, channel.writer_gone = not reader, not writer
        if not writer:
            channel.notify_reader()
        if not reader:
            channel.notify_writers()
            if not writer:
                self.close_now()

    async def close(self) -> None:
        self.close_now()

    def close_now(self) -> None:
        channel = self._channel
        channel.reader_gone = True
        if channel.kernel is not None:
            channel.kernel.close_reader()
        channel.blocks.clear()
        channel.size = 0
        self._buffer, self._pos = b"", 0
        channel.notify_writers()


class PipeWriter(Writer):
    __slots__ = ("_channel", "terminal")

    def __init__(self, channel: _Channel) -> None:
        self._channel = channel
        self.terminal = False

    @property
    def full(self) -> bool:  # type: ignore[override]
        channel = self._channel
        if channel.kernel is not None:
            return len(channel.kernel.backlog) > 0 or channel.reader_gone
        return channel.size >= channel.capacity or channel.reader_gone

    @property
    def broken(self) -> bool:
        """Whether the reader has gone; what was written before was accepted."""
        return self._channel.reader_gone

    def write(self, data: bytes) -> None:
        channel = self._channel
        if channel.reader_gone:
            raise fail(errno.EPIPE)
        if data and channel.kernel is not None:
            channel.kernel.write(data)
            if channel.kernel.broken:
                channel.reader_gone = True
                raise fail(errno.EPIPE)
        elif data:
            channel.blocks.append(data)
            channel.size += len(data)
            if channel.wake_reader is not None:
                channel.notify_reader()

    async def drain(self) -> None:
        channel = self._channel
        while self.full and not channel.reader_gone:
            future = asyncio.get_running_loop().create_future()
            channel.wake_writers.append(future)
            await future
        if channel.reader_gone:
            raise fail(errno.EPIPE)

    async def close(self) -> None:
        self.close_now()

    def close_now(self) -> None:
        self._channel.writer_gone = True
        if self._channel.kernel is not None:
            self._channel.kernel.close_writer()
        self._channel.notify_reader()

    def lend(self, make: Callable[[], tuple[int, int]]) -> int:
        """Return a descriptor for a program of the machine; -1 where the reader has gone, or reads something else."""
        if type(self) is not PipeWriter or self._channel.reader_gone:
            return -1
        return self._channel.lend(make).write_fd


def pipe(capacity: int = PIPE_CAPACITY) -> tuple[PipeReader, PipeWriter]:
    """Make a bounded pipe: the writer turns full when nothing is read, and fails with EPIPE without a reader."""
    channel = _Channel(capacity)
    return PipeReader(channel), PipeWriter(channel)


class closing(Generic[Item]):  # noqa: N801 - reads like contextlib.aclosing, which wants more than an iterator
    """`async with closing(source) as items:` closes a stream when its reader stops, not when it is collected."""

    __slots__ = ("_source",)

    def __init__(self, source: AsyncIterator[Item]) -> None:
        self._source = source

    async def __aenter__(self) -> AsyncIterator[Item]:
        return self._source

    async def __aexit__(self, *_: object) -> None:
        close = getattr(self._source, "aclose", None)
        if close is not None:
            await close()


# ------------------------------------------------------------------------------------------- working with lines


@contextmanager
def live(reader: Reader, flush: Callable[[], None]) -> Iterator[None]:
    """Flush buffered output before every wait for this input, so that output of a slow source appears at once."""

    def idle() -> None:
        try:
            flush()
        except BrokenPipeError:
            return  # the next write meets the same error

    reader.idle = idle
    try:
        yield
    finally:
        reader.idle = None


async def line_blocks(reader: Reader, delim: bytes = b"\n", size: int = BLOCK) -> AsyncIterator[bytes]:
    """Yield blocks that end at a line end (the last one perhaps not): the unit for work at C speed.

    Reads are at most `size` bytes; pass a small size if each line is expensive.
    """
    rest: list[bytes] = []
    held = 0
    while block := await reader.read(size):
        cut = block.rfind(delim) + 1
        if not cut:
            rest.append(block)
            held += len(block)
            reader.hold(held)
            continue
        held = 0
        rest.append(block[:cut])
        yield rest[0] if len(rest) == 1 else b"".join(rest)
        rest = [block[cut:]] if cut < len(block) else []
    if rest:
        yield b"".join(rest)


async def line_lists(reader: Reader, delim: bytes = b"\n") -> AsyncIterator[list[bytes]]:
    """Yield lists of lines with their delimiter, which only the last line may lack."""
    async for block in line_blocks(reader, delim):
        pieces = block.split(delim)
        last = pieces.pop()
        found = [piece + delim for piece in pieces]
        if last:
            found.append(last)
        yield found


async def lines(reader: Reader, delim: bytes = b"\n") -> AsyncIterator[bytes]:
    """Yield lines with their delimiter, which only the last line may lack."""
    async for some in line_lists(reader, delim):
        for line in some:
            yield line


async def copy(reader: Reader, writer: Writer) -> int:
    """Copy a stream to its end; return the number of bytes."""
    total = 0
    while block := await reader.read():
        writer.write(block)
        total += len(block)
        if writer.full:
            await writer.drain()
    return total
