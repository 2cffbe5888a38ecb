"""`/dev/fd` as a directory: the tree with the descriptors of one process in it, for the command that lists them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Any, Final

from ramet.core.fs import FileSystem
from ramet.core.paths import Path
from ramet.core.resource import Whole
from ramet.core.stat import Kind, Stat

PLACE: Final = "/dev/fd"
NAMES: Final = frozenset((PLACE, PLACE + "/"))


class WithDescriptors(Whole):
    """Everything is as it was, except that `/dev/fd` lists what is open, and the descriptor that reads the list."""

    def __init__(self, inner: FileSystem, numbers: Iterable[int]) -> None:
        self._inner = inner
        shown = set(numbers)
        shown.add(next(number for number in range(len(shown) + 1) if number not in shown))
        self._entries = [(str(number), Stat(Kind.FIFO, 0, mode=0o600)) for number in sorted(shown)]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def scan(self, path: Path) -> AsyncIterator[tuple[str, Stat]]:
        for entry in await self.entries(path):
            yield entry

    async def entries(self, path: Path) -> list[tuple[str, Stat]]:
        if path == PLACE:
            return self._entries
        return [entry async for entry in self._inner.scan(path)]

    async def read_bytes(self, path: Path) -> bytes:
        return b"".join([block async for block in self._inner.read(path)])
