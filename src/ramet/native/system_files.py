"""`SystemFiles`: the in-process view of /usr, /etc and the other directories of the box, read-only.

Commands and programs see the same files there: `[ -x /usr/bin/gcc ]`, `cat /etc/os-release`. Every file is opened with
the rights of the box's user: where Ramet is root, it could read more than programs can.
"""

from __future__ import annotations

import errno
import os
from collections.abc import AsyncIterator
from typing import Final

from ramet.backends.local.disk import BLOCK, DiskResource
from ramet.core.errors import fail
from ramet.core.paths import ROOT, Path
from ramet.core.resource import Cap
from ramet.core.stat import Kind, Stat
from ramet.layers.readonly import Immutable
from ramet.native.layout import Owner, file_owner


class SystemFiles(Immutable):
    """One directory of the box behind a descriptor, which is closed with this."""

    caps = Cap.RANGES | Cap.LOCAL | Cap.DIRS

    def __init__(self, fd: int, owner: Owner) -> None:
        self._directory = DiskResource(f"/proc/self/fd/{fd}", create=False)
        self._owner = owner
        os.close(fd)

    async def stat(self, path: Path) -> Stat:
        with file_owner(self._owner):
            return self._directory.stat_now(path)

    async def scan(self, path: Path) -> AsyncIterator[tuple[str, Stat]]:
        with file_owner(self._owner):
            rows = [*self._directory.scan_now(path)]
        for row in rows:
            for entry in row:
                yield entry

    async def read(self, path: Path, start: int = 0, stop: int | None = None) -> AsyncIterator[bytes]:
        with file_owner(self._owner):
            handle = self._directory.open(path, write=False)
        try:
            while stop is None or start < stop:
                block = handle.pread(start, BLOCK if stop is None else min(BLOCK, stop - start))
                if not block:
                    return
                start += len(block)
                yield block
        finally:
            handle.close()

    async def close(self) -> None:
        """The directory stays open until the resource is forgotten."""

    def release(self) -> None:
        """Close the directory."""
        self._directory.release()


KERNEL_FILES: Final = ("cpuinfo", "filesystems", "loadavg", "meminfo", "stat", "uptime", "version", "vmstat")
"""What /proc tells every process of the machine."""


class KernelFiles(Immutable):
    """The files of /proc that are about no process."""

    caps = Cap.RANGES | Cap.LOCAL

    async def stat(self, path: Path) -> Stat:
        if path == ROOT:
            return Stat(Kind.DIR, 0, mode=0o555)
        if path[1:] not in KERNEL_FILES:
            raise fail(errno.ENOENT, path)
        return Stat(Kind.FILE, 0, mode=0o444)

    async def scan(self, path: Path) -> AsyncIterator[tuple[str, Stat]]:
        if path != ROOT:
            await self.stat(path)
            raise fail(errno.ENOTDIR, path)
        for name in KERNEL_FILES:
            yield name, await self.stat(path / name)

    async def read(self, path: Path, start: int = 0, stop: int | None = None) -> AsyncIterator[bytes]:
        if (await self.stat(path)).is_dir:
            raise fail(errno.EISDIR, path)
        yield _content(path)[start:stop]

    async def close(self) -> None:
        """Nothing is held."""


def _content(path: Path) -> bytes:
    try:
        with open(f"/proc{path}", "rb") as file:
            return file.read()
    except OSError as error:
        raise fail(error.errno or errno.EIO, path) from None
