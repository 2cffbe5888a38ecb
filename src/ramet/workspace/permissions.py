"""Permission bits as the kernel applies them to the owner: files to be read or written, directories to be listed,
searched or changed.

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
"""Directories whose modes are kept in mind."""


class Permissions:
    """What one user may do. The modes of directories are remembered until a mode or a name changes (`generation`)."""

    def __init__(self, vfs: VFS, uid: int) -> None:
        self._vfs = vfs
        self._root = uid == 0
        self._modes: dict[Path, int] = {}
        self._as_of = -1

    def bits(self, wanted: int) -> int:
        """Those of `wanted` that a file must have for this user."""
        return 0 if self._root else wanted

    async def check(self, path: Path, bits: int) -> None:
        """Refuse (EACCES) unless `path` can be reached and, if it exists, has the owner's `bits`."""
        if self._root:
            return
        # What is remembered was reached.
        mode = self._modes.get(path) if self._as_of == self._vfs.generation else None
        if mode is None:
            await self._reach(path.parent)
            stat = await self._stat(path)
            mode = None if stat is None else stat.mode
        if mode is not None and mode & bits != bits and not self._fixed(path, bits):
            raise fail(errno.EACCES, path)

    def _fixed(self, path: Path, bits: int) -> bool:
        """Whether nothing can be written there anyway: EROFS, which the operation itself answers, comes first."""
        return bool(bits & WRITE) and Cap.WRITE not in self._vfs.locate(path)[0].caps

    async def entry(self, path: Path) -> None:
        """Refuse unless the directory that holds `path` may get, lose or rename a name."""
        if not self._root:
            await self.check(path.parent, WRITE | SEARCH)

    async def written(self, path: Path) -> None:
        """Refuse unless `path` may be written, or made where it does not exist yet."""
        if self._root:
            return
        await self._reach(path.parent)
        stat = await self._stat(path)
        if stat is None:
            await self.entry(path)
        elif stat.mode is not None and not stat.mode & WRITE and not self._fixed(path, WRITE):
            raise fail(errno.EACCES, path)

    async def reach(self, path: Path) -> None:
        """Refuse unless every directory on the way to `path` may be searched."""
        if not self._root:
            await self._reach(path.parent)

    async def inside(self, directory: Path) -> None:
        """Refuse unless what is in `directory` can be reached."""
        if not self._root:
            await self._reach(directory)

    async def _reach(self, directory: Path) -> None:
        if self._as_of != self._vfs.generation or len(self._modes) > REMEMBERED:
            self._modes.clear()
            self._as_of = self._vfs.generation
        way: dict[Path, int] = {}  # remembered only when all of it is open
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
            return None  # whatever is wrong with the path, the operation itself will say it
