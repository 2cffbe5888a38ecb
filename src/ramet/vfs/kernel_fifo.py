"""Named pipes of the kernel, which programs of the machine open, too: the other end may be theirs."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
from typing import Final

from ramet.core.errors import fail
from ramet.core.fs import Open
from ramet.core.paths import Path
from ramet.core.resource import KernelFifos
from ramet.core.stat import Stat
from ramet.core.streams import BLOCK
from ramet.vfs.open_files import CountedStream

_FLAGS: Final = {Open.READ: os.O_RDONLY, Open.WRITE: os.O_WRONLY, Open.READ | Open.WRITE: os.O_RDWR}


async def open_kernel_fifo(resource: KernelFifos, path: Path, stat: Stat, how: Open) -> KernelFifoStream:
    """Open one end, and wait for the other as open(2) does: in a thread, which a cancellation releases."""
    flags = _FLAGS[how & (Open.READ | Open.WRITE)]
    loop = asyncio.get_running_loop()
    opened: asyncio.Future[int] = loop.create_future()

    def settle(fd: int, error: OSError | None) -> None:
        if opened.done():
            if fd >= 0:
                os.close(fd)
        elif error is not None:
            opened.set_exception(error)
        else:
            opened.set_result(fd)

    def work() -> None:
        try:
            found: tuple[int, OSError | None] = resource.open_fifo(path, flags), None
        except OSError as error:
            found = -1, error
        try:
            loop.call_soon_threadsafe(settle, *found)
        except RuntimeError:  # the loop has been closed
            if found[0] >= 0:
                os.close(found[0])

    threading.Thread(target=work, name="open a FIFO", daemon=True).start()
    try:
        fd = await opened
    except asyncio.CancelledError:
        try:  # what the thread waits for
            os.close(resource.open_fifo(path, os.O_RDWR | os.O_NONBLOCK))
        except OSError:
            pass  # it has been removed meanwhile
        raise
    return KernelFifoStream(fd, flags, stat, how)


class KernelFifoStream(CountedStream):
    """An open end. Programs get the descriptor that blocks; this process has one that does not."""

    __slots__ = ("_backlog", "_fd", "_own", "_stat", "how")

    def __init__(self, fd: int, flags: int, stat: Stat, how: Open) -> None:
        super().__init__()
        self._fd, self._stat, self.how = fd, stat, how
        self._own = os.open(f"/proc/self/fd/{fd}", flags | os.O_NONBLOCK | os.O_CLOEXEC)
        self._backlog = bytearray()

    def lend(self) -> int:
        return self._fd

    def _fill_now(self) -> bytes | None:
        if not self.how & Open.READ:
            raise fail(errno.EBADF)
        try:
            block = os.read(self._own, BLOCK)
        except BlockingIOError:
            return None
        self.bytes_read += len(block)
        return block

    async def _fill(self) -> bytes:
        while (block := self._fill_now()) is None:
            await self._ready(write=False)
        return block

    @property
    def full(self) -> bool:  # type: ignore[override]
        return bool(self._backlog)

    def write(self, data: bytes) -> None:
        if not self.how & Open.WRITE:
            raise fail(errno.EBADF)
        self._backlog += data
        self.bytes_written += len(data)
        self._flush()

    def _flush(self) -> None:
        try:
            while self._backlog:
                del self._backlog[: os.write(self._own, self._backlog[:BLOCK])]
        except BlockingIOError:
            return

    async def drain(self) -> None:
        while self._backlog:
            await self._ready(write=True)
            self._flush()

    async def _ready(self, *, write: bool) -> None:
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[None] = loop.create_future()
        add, remove = (
            (loop.add_writer, loop.remove_writer) if write else (loop.add_reader, loop.remove_reader)
        )  # fmt: skip
        add(self._own, lambda: None if ready.done() else ready.set_result(None))
        try:
            await ready
        finally:
            remove(self._own)

    def tell(self) -> int:
        raise fail(errno.ESPIPE)

    def seek(self, offset: int) -> None:
        raise fail(errno.ESPIPE)

    async def stat(self) -> Stat:
        return self._stat

    async def truncate(self, size: int) -> None:
        raise fail(errno.EINVAL)

    async def close(self) -> None:
        await super().close()
        if self._fd < 0:
            return
        fd, self._fd = self._fd, -1
        os.close(fd)
        try:
            await self.drain()
        except BrokenPipeError:
            pass  # its reader has gone
        finally:
            os.close(self._own)
            self._on_close()
