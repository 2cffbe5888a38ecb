"""`/dev`: the few devices that scripts rely on. Descriptors (`stdin`, `fd/N`) belong to a process, not to this tree."""

from __future__ import annotations

import errno
from collections.abc import AsyncIterator

from ramet.core.errors import fail
from ramet.core.limits import Budget
from ramet.core.paths import Path
from ramet.core.resource import Cap, Data, How
from ramet.core.stat import Attrs, Kind, Stat
from ramet.vfs.open_files import DeviceStream, device_block

DEVICES = ("full", "null", "random", "tty", "urandom", "zero")
LINKS = {"stdin": "/dev/fd/0", "stdout": "/dev/fd/1", "stderr": "/dev/fd/2"}
BLOCK = 64 * 1024


class DevResource:
    """A tree of devices. Reading `zero` and `urandom` never ends: the reader decides."""

    caps = Cap.WRITE | Cap.RANGES | Cap.LOCAL

    async def stat(self, path: Path) -> Stat:
        name = path[1:]
        if not name or name == "fd":
            return Stat(Kind.DIR, 0, mode=0o755)
        if name in DEVICES:
            return Stat(Kind.DEVICE, 0, mode=0o666)
        if name in LINKS:
            return Stat(Kind.LINK, len(LINKS[name]), mode=0o777, target=LINKS[name])
        if name.startswith("fd/") and name[3:].isdecimal():
            return Stat(Kind.FIFO, 0, mode=0o600)
        raise fail(errno.ENOENT, path)

    async def scan(self, path: Path) -> AsyncIterator[tuple[str, Stat]]:
        if path == "/":
            for name in (*DEVICES, "fd", *LINKS):
                yield name, await self.stat(path / name)
        elif path != "/fd":
            await self.stat(path)
            raise fail(errno.ENOTDIR, path)

    async def read(self, path: Path, start: int = 0, stop: int | None = None) -> AsyncIterator[bytes]:
        name, pace = self._device(path), Budget()
        while (stop is None or start < stop) and (block := device_block(name, BLOCK)):
            block = block if stop is None else block[: stop - start]
            start += len(block)
            await pace.yield_turn()  # no device ever suspends
            yield block

    async def write(
        self, path: Path, data: Data, how: How = How.REPLACE, *, at: int = 0, if_version: str | None = None
    ) -> Stat:
        name = self._device(path)
        if how in (How.CREATE, How.LINK):
            raise fail(errno.EEXIST, path)
        if isinstance(data, bytes):
            size = len(data)
        else:
            size = sum([len(block) async for block in data])
        if name == "full" and size:
            raise fail(errno.ENOSPC, path)
        return await self.stat(path)

    def stream(self, path: Path) -> DeviceStream:
        return DeviceStream(self._device(path))

    def _device(self, path: Path) -> str:
        name = path[1:]
        if name in DEVICES:
            return name
        if name in ("", "fd"):
            raise fail(errno.EISDIR, path)
        raise fail(errno.ELOOP if name in LINKS else errno.ENXIO if name.startswith("fd/") else errno.EACCES, path)

    async def mkdir(self, path: Path) -> None:
        raise fail(errno.EACCES, path)

    async def remove(self, path: Path) -> None:
        raise fail(errno.EACCES, path)

    async def rename(self, src: Path, dst: Path) -> None:
        raise fail(errno.EACCES, src)

    async def copy(self, src: Path, dst: Path) -> None:
        raise fail(errno.ENOTSUP, src)

    async def setattr(self, path: Path, attrs: Attrs) -> None:
        await self.stat(path)
        if attrs.mode is not None:
            raise fail(errno.EPERM, path)

    async def close(self) -> None:
        """Nothing is held open."""
