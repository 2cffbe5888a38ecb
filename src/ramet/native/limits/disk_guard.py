"""`DiskGuard`: bound what a box writes in all its files together.

The free space of the file system is cheap to ask for. Only when it has shrunk by what the box may still write are its
files counted. A file counts for at least a page: else empty ones could take every inode of the file system.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable
from typing import Final

from ramet.native.upper import walk_upper

LOOK_SECONDS: Final = 0.25
BLOCK: Final = 512
"""Bytes of the blocks that stat(2) counts."""
NOTICED: Final = 8
"""When others free this part of what the box may still write, its files are counted: they could hide its writing."""
INODE: Final = 4096
"""Bytes that a file without content counts for."""


class DiskGuard:
    """Call `watch` while a program runs; it returns when the box has more than `most` bytes."""

    def __init__(self, folder: str, most: int, uppers: Callable[[], Iterable[str]]) -> None:
        self._folder, self._most, self._uppers = folder, most, uppers
        self._left, self._free = most, _free(folder)
        """What the box could still write when its files were counted last, and the free space then."""

    async def watch(self) -> None:
        while True:
            now = _free(self._folder)
            if self._free - now >= self._left or now - self._free >= self._left // NOTICED:
                self._left, self._free = self._most - await asyncio.to_thread(self._used), now
                if self._left <= 0:
                    return
            await asyncio.sleep(LOOK_SECONDS)

    def _used(self) -> int:
        return sum(max(stat.st_blocks * BLOCK, INODE) for upper in self._uppers() for _, stat in walk_upper(upper))


def _free(folder: str) -> int:
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize + found.f_favail * INODE
