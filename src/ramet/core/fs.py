"""`FileSystem`: the tree that commands see, a Resource that follows links and opens files."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from ramet.core.paths import Path
from ramet.core.resource import Resource
from ramet.core.stat import Stat
from ramet.core.streams import FileStream


class Open(enum.Flag):
    READ = enum.auto()
    WRITE = enum.auto()
    APPEND = enum.auto()
    CREATE = enum.auto()
    EXCLUSIVE = enum.auto()
    TRUNCATE = enum.auto()


Power = TypeVar("Power")


class Lending:
    """A tree that gives access to the optional powers of its mounts (see `core.resource`)."""

    async def power(self, path: Path, kind: type[Power], *, write: bool = False) -> tuple[Power, Path] | None:
        """Return a power of the mount at `path` and the path inside it. `write` on a read-only mount is EROFS."""
        raise NotImplementedError

    def changed(self, path: Path) -> None:
        """Drop cached answers of the mount at `path`, which one of its powers has changed."""
        raise NotImplementedError

    async def sieve(self, top: Path, text: str, *, fold: bool = False) -> Callable[[Path], bool] | None:
        """Return a predicate for files below `top` that may contain `text`; None if no mount there can search.

        With `fold` the text is lower-case ASCII and case is ignored.
        """
        raise NotImplementedError

    async def copy_files(self, src: Path, dst: Path, names: Sequence[str]) -> int:
        """Copy files of one directory into another in one call, replacing none; return how many of the first."""
        return 0

    async def remove_files(self, directory: Path, names: Sequence[str]) -> int:
        """Remove files of a directory in one call; return how many of the first."""
        return 0

    async def note_copy(self, src: Path, dst: Path) -> None:
        """Tell that a write gave `dst` the content of `src`, so that its lines keep their writers."""


class FileSystem(Resource, Protocol):
    """Every verb follows links in all but the last component; `read`, `write` and `open` follow the last one too.

    `stat` describes the link itself unless `follow=True`; `remove` and `rename` act on links, never on their targets.
    """

    async def stat(self, path: Path, follow: bool = False) -> Stat: ...

    async def resolve(self, path: Path, *, missing_ok: bool = False) -> Path:
        """Return the canonical path without links; with `missing_ok` the last component need not exist."""
        ...

    def named(self, text: str, cwd: Path) -> Path:
        """Resolve `text` in `cwd`; `..` after a link leads to the parent of its target, as in a kernel.

        On mounts that cannot answer synchronously, `..` removes the name before it, as `paths.parse` does.
        """
        ...

    def lacks(self, path: Path) -> bool:
        """Return True if the path is known to be absent without waiting; False if `stat` must be asked."""
        ...

    async def open(self, path: Path, how: Open = Open.READ) -> FileStream: ...

    async def link(self, src: Path, dst: Path) -> None:
        """Make a hard link; EXDEV across mounts."""
        ...

    async def mkfifo(self, path: Path) -> None:
        """Make a named pipe; EPERM where the mount has none."""
        ...

    def mount_of(self, path: Path) -> Path:
        """Return the prefix of the mount that holds `path` (device boundaries: `find -xdev`, `df`)."""
        ...
