"""`KernelPipe`: a pipe of the kernel between this process and programs of the machine.

- Programs get the ends `read_fd` and `write_fd`, which block. This process opens both again without blocking:
  blocking is a property of an open file, which all copies of a descriptor share.
- What this process writes waits in `backlog` while the pipe is full.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Final

BLOCK: Final = 256 * 1024


class KernelPipe:
    """`notify` is called when something may be read, when the backlog is gone, and when the reader is."""

    def __init__(self, ends: tuple[int, int], backlog: bytes, notify: Callable[[], None]) -> None:
        self.read_fd, self.write_fd = ends
        self._reads = _reopened(self.read_fd, os.O_RDONLY)
        self._writes = _reopened(self.write_fd, os.O_WRONLY)
        self.backlog = bytearray(backlog)
        self.broken = False
        """Whether the last reader has gone."""
        self._notify = notify
        self._closing = self._flushing = self._awaiting = False
        self._loop = asyncio.get_running_loop()
        self._flush()

    def __del__(self) -> None:
        for fd in (self._reads, self._writes, self.read_fd, self.write_fd):
            if fd >= 0:
                os.close(fd)

    # --------------------------------------------------------------------------------------------------- reading

    def read(self) -> bytes | None:
        """Return what is there; empty when all writers have gone, None if it would have to wait."""
        try:
            return os.read(self._reads, BLOCK) if self._reads >= 0 else b""
        except BlockingIOError:
            return None

    def await_data(self) -> None:
        """Notify once when something may be read."""
        if not self._awaiting and self._reads >= 0:
            self._awaiting = True
            self._loop.add_reader(self._reads, self._readable)

    def _readable(self) -> None:
        self._stop_awaiting()
        self._notify()

    def _stop_awaiting(self) -> None:
        if self._awaiting:
            self._awaiting = False
            self._loop.remove_reader(self._reads)

    def close_reader(self) -> None:
        """Let writers get SIGPIPE once no program reads either."""
        self._stop_awaiting()
        self._reads = _closed(self._reads)
        self.read_fd = _closed(self.read_fd)

    # --------------------------------------------------------------------------------------------------- writing

    def write(self, data: bytes) -> None:
        self.backlog += data
        if not self._flushing:
            self._flush()

    def close_writer(self) -> None:
        """Let readers see the end after the backlog, once no program writes either."""
        self._closing = True
        self.write_fd = _closed(self.write_fd)
        if not self._flushing:
            self._flush()

    def _flush(self) -> None:
        try:
            while self.backlog:
                del self.backlog[: os.write(self._writes, self.backlog[:BLOCK])]
        except BlockingIOError:
            if not self._flushing:
                self._flushing = True
                self._loop.add_writer(self._writes, self._flush)
            return
        except OSError:  # EPIPE
            self.broken = True
            self.backlog.clear()
        if self._flushing:
            self._flushing = False
            self._loop.remove_writer(self._writes)
            self._notify()
        if self._closing or self.broken:
            self._writes = _closed(self._writes)


def _reopened(fd: int, how: int) -> int:
    return os.open(f"/proc/self/fd/{fd}", how | os.O_NONBLOCK | os.O_CLOEXEC)


def _closed(fd: int) -> int:
    if fd >= 0:
        os.close(fd)
    return -1
