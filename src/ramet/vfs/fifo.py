"""Named pipes (FIFOs): opening for reading waits for a writer and the reverse.

- A `Fifo` lives while it is open or waited for; its name, mode and inode belong to the resource.
- All readers share one buffer: what one has not taken is there for the next.
"""

from __future__ import annotations

import asyncio
import errno

from ramet.core.errors import fail
from ramet.core.fs import Open
from ramet.core.stat import Stat
from ramet.core.streams import BLOCK, pipe
from ramet.vfs.open_files import CountedStream


class Fifo:
    """What all open ends of one named pipe share."""

    __slots__ = ("_arrived", "_readers_seen", "_writers_seen", "input", "output", "readers", "stat", "writers")

    def __init__(self, stat: Stat) -> None:
        self.input, self.output = pipe()
        self.stat = stat
        self.readers = self.writers = 0
        self._readers_seen = self._writers_seen = 0
        self._arrived: asyncio.Future[None] | None = None

    @property
    def idle(self) -> bool:
        return not (self.readers or self.writers)

    def join(self, how: Open) -> None:
        """Add an end. Waiters for this side wake even if it leaves again at once."""
        self.readers += bool(how & Open.READ)
        self.writers += bool(how & Open.WRITE)
        self._readers_seen += bool(how & Open.READ)
        self._writers_seen += bool(how & Open.WRITE)
        self._settle()
        if self._arrived is not None:
            self._arrived.set_result(None)
            self._arrived = None

    def leave(self, how: Open) -> None:
        self.readers -= bool(how & Open.READ)
        self.writers -= bool(how & Open.WRITE)
        self._settle()

    def _settle(self) -> None:
        self.input.attend(reader=self.readers > 0, writer=self.writers > 0)

    async def meet(self, how: Open) -> None:
        """Wait for the other side, unless this end is both; to be called after `join`."""
        reads, writes = how & Open.READ, how & Open.WRITE
        if (self.writers and reads) or (self.readers and writes):
            return
        seen = self._writers_seen if reads else self._readers_seen
        while seen == (self._writers_seen if reads else self._readers_seen):
            if self._arrived is None:
                self._arrived = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._arrived)


class FifoStream(CountedStream):
    """An open end of a named pipe."""

    __slots__ = ("_fifo", "_open", "how")

    def __init__(self, fifo: Fifo, how: Open) -> None:
        super().__init__()
        self._fifo, self.how = fifo, how
        self._open = True

    # --------------------------------------------------------------------------------------------- reading

    async def read(self, size: int = BLOCK) -> bytes:
        self._check(Open.READ)
        data = await self._fifo.input.read(size)
        self.bytes_read += len(data)
        return data

    async def readline(self, delim: bytes = b"\n") -> bytes:
        self._check(Open.READ)
        data = await self._fifo.input.readline(delim)
        self.bytes_read += len(data)
        return data

    def readline_now(self, delim: bytes = b"\n") -> bytes | None:
        self._check(Open.READ)
        return self._fifo.input.readline_now(delim)

    def unread(self, data: bytes) -> None:
        self._fifo.input.unread(data)

    @property
    def ready(self) -> bool:
        return self._fifo.input.ready

    # --------------------------------------------------------------------------------------------- writing

    @property
    def full(self) -> bool:  # type: ignore[override]
        return self._fifo.output.full

    def write(self, data: bytes) -> None:
        self._check(Open.WRITE)
        self._fifo.output.write(data)
        self.bytes_written += len(data)

    async def drain(self) -> None:
        await self._fifo.output.drain()

    # -------------------------------------------------------------------------------------------- the file

    def tell(self) -> int:
        raise fail(errno.ESPIPE)

    def seek(self, offset: int) -> None:
        raise fail(errno.ESPIPE)

    async def stat(self) -> Stat:
        return self._fifo.stat

    async def truncate(self, size: int) -> None:
        raise fail(errno.EINVAL)

    async def close(self) -> None:
        if self._open:
            self._open = False
            self._fifo.leave(self.how)
            self._on_close()

    def _check(self, need: Open) -> None:
        if not self.how & need:
            raise fail(errno.EBADF)
