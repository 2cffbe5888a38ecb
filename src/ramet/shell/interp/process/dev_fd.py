"""`/dev/fd` and `/proc/self/fd`: a file system view that lists the open descriptors of a process."""

from __future__ import annotations

import errno
import re
from collections.abc import AsyncIterator, Iterable
from typing import Any, Final

from ramet.core import ops
from ramet.core.errors import fail
from ramet.core.fs import FileSystem
from ramet.core.paths import Path
from ramet.core.resource import Whole
from ramet.core.stat import Kind, Stat
from ramet.shell.interp.process.descriptors import Table

_PREFIXES: Final = ("/dev/fd", "/proc/")
_PLACE: Final = re.compile(r"/dev/fd(?:/(\d+))?|/proc(?:/(?:self|\d+)(?:/fd(?:/(\d+))?)?)?")
_OWN: Final = re.compile(r"/proc/(self|\d+)/fd/(\d+)")
_FEW: Final = 32
"""Words of a command that are looked at."""


def looks_there(words: Iterable[str]) -> bool:
    """Whether one of the words names a place where descriptors are listed."""
    return any(word.startswith(_PREFIXES) for word in words)


def wrapped(fs: FileSystem, fds: Table, argv: list[str]) -> FileSystem:
    """The tree that a command sees; another one only when it may look at descriptors."""
    if not looks_there(argv[:_FEW]):
        return fs
    return WithDescriptors(fs, fds)


def as_device(word: str, pid: int) -> str:
    """`/proc/self/fd/3` as `/dev/fd/3`; any other word as it is."""
    found = _OWN.fullmatch(word)
    return f"/dev/fd/{found[2]}" if found is not None and found[1] in ("self", str(pid)) else word


class WithDescriptors(Whole):
    """Everything is as it was, except that these directories list what is open, and the descriptor that reads them."""

    def __init__(self, inner: FileSystem, fds: Table) -> None:
        self._inner = inner
        self._targets = {number: fds[number].path or f"pipe:[{4000 + number}]" for number in fds}
        if 0 in fds and fds[0].lent:
            self._targets[0] = "/dev/null"
        shown = set(fds)
        shown.add(next(number for number in range(len(shown) + 1) if number not in shown))
        self._numbers = sorted(shown)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def stat(self, path: Path, follow: bool = False) -> Stat:
        found = _PLACE.fullmatch(path)
        if found is None:
            return await self._inner.stat(path, follow=follow)
        number = found[1] or found[2]
        if number is None:
            return Stat(Kind.DIR, 0, mode=0o555)
        if int(number) not in self._numbers:
            raise fail(errno.ENOENT, path)
        target = self._targets.get(int(number), "/proc")
        if not follow and found[2]:
            return Stat(Kind.LINK, 64, mode=0o700, target=target)
        if target[0] != "/":
            return Stat(Kind.FIFO, 0, mode=0o600)
        return await self._inner.stat(Path(target), follow=True)

    async def scan(self, path: Path) -> AsyncIterator[tuple[str, Stat]]:
        for entry in await self.entries(path):
            yield entry

    async def entries(self, path: Path) -> list[tuple[str, Stat]]:
        found = _PLACE.fullmatch(path)
        if found is None or path == "/proc":
            return [entry async for entry in self._inner.scan(path)]
        if not path.endswith("/fd"):
            return [("fd", Stat(Kind.DIR, 0, mode=0o555))]
        if path == "/dev/fd":
            return [(str(number), Stat(Kind.FIFO, 0, mode=0o600)) for number in self._numbers]
        return [(str(number), await self.stat(path / str(number))) for number in self._numbers]

    async def read_bytes(self, path: Path) -> bytes:
        return await ops.read_bytes(self._inner, path)
