"""Permission bits of files and directories, as the kernel applies them to the owner.

Every file of a workspace belongs to its user, so only the owner's bits count, and root is never refused. A backend
without modes refuses nothing.
"""

from __future__ import annotations

import errno

from ramet.core.errors import fail
from ramet.core.paths import Path
from ramet.core.resource import Cap
from ramet.core.stat import Stat
from ramet.vfs.vfs import VFS

READ, WRITE, SEARCH = 0o400, 0o200, 0o100
REMEMBERED = 10_000
"""Directories whose modes are cached."""


class Permissions:
    """Permission checks of one user. Modes of directories are cached until a mode or a name changes (`generation`)."""

    def __init__(self, vfs: VFS, uid: int) -> None:
        self._vfs = vfs
        self._root = uid == 0
        self._modes: dict[Path, int] = {}
        self._as_of = -1

    def bits(self, wanted: int) -> int:
        """Return the bits of `wanted` that a file must have for this user."""
        return 0 if self._root else wanted

    async def check(self, path: Path, bits: int) -> None:
        """Raise EACCES unless `path` is reachable and, if it exists, has the owner's `bits`."""
        if self._root:
            return
        # A cached path was reachable.
        mode = self._modes.get(path) if self._as_of == self._vfs.generation else None
        if mode is None:
            await self._reach(path.parent)
            stat = await self._stat(path)
            mode = None if stat is None else stat.mode
        if mode is not None and mode & bits != bits and not self._is_read_only(path, bits):
            raise fail(errno.EACCES, path)

    def _is_read_only(self, path: Path, bits: int) -> bool:
        """Return whether the mount is read-only: the operation then fails with EROFS."""
        return bool(bits & WRITE) and Cap.WRITE not in self._vfs.locate(path)[0].caps

    async def entry(self, path: Path) -> None:
        """Raise EACCES unless entries of the parent of `path` may change."""
        if not self._root:
            await self.check(path.parent, WRITE | SEARCH)

    async def written(self, path: Path) -> None:
        """Raise EACCES unless `path` may be written, or created."""
        if self._root:
            return
        await self._reach(path.parent)
        stat = await self._stat(path)
        if stat is None:
            await self.entry(path)
        elif stat.mode is not None and not stat.mode & WRITE and not self._is_read_only(path, WRITE):
            raise fail(errno.EACCES, path)

    async def reach(self, path: Path) -> None:
        """Raise EACCES unless every directory on the path may be searched."""
        if not self._root:
            await self._reach(path.parent)

    async def inside(self, directory: Path) -> None:
        """Raise EACCES unless the entries of `directory` are reachable."""
        if not self._root:
            await self._reach(directory)

    async def _reach(self, directory: Path) -> None:
        if self._as_of != self._vfs.generation or len(self._modes) > REMEMBERED:
            self._modes.clear()
            self._as_of = self._vfs.generation
        way: dict[Path, int] = {}  # cached only when the whole path is searchable
        while directory not in self._modes:
            stat = await self._stat(directory)
            if stat is not None and stat.is_dir:
                mode = 0o777 if stat.mode is None else stat.mode
                if not mode & SEARCH:
                    raise fail(errno.EACCES, directory)
                way[directory] = mode
            if len(directory) == 1:
                break
            directory = directory.parent
        self._modes.update(way)

    async def _stat(self, path: Path) -> Stat | None:
        try:
            return await self._vfs.stat(path, follow=True)
        except OSError:
            return None  # the operation reports the error
