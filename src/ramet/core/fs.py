"""`FileSystem`: what a command sees: a Resource that knows all mounts, so that it follows links and opens files."""

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
    """Marks a tree that lends what its mounts can do beyond files (see the optional powers of `resource`)."""

    async def power(self, path: Path, kind: type[Power], *, write: bool = False) -> tuple[Power, Path] | None:
        """That power of the mount at `path`, and the path inside it. `write` is EROFS where a mount may not change."""
        raise NotImplementedError

    def changed(self, path: Path) -> None:
        """The mount at `path` was changed by a power of it: what is remembered of its files is forgotten."""
        raise NotImplementedError

    async def sieve(self, top: Path, text: str, *, fold: bool = False) -> Callable[[Path], bool] | None:
        """A test that no file below `top` with `text` in it fails; None when no mount there can search by itself.

        With `fold` the text is ASCII in lower case, and stands for every way to write it.
        """
        raise NotImplementedError

    async def copy_files(self, src: Path, dst: Path, names: Sequence[str]) -> int:
        """Copy plain files of one directory into another at once, none over another; how many of the first it did."""
        return 0

    async def remove_files(self, directory: Path, names: Sequence[str]) -> int:
        """Remove plain files of a directory at once; how many of the first it did."""
        return 0


class FileSystem(Resource, Protocol):
    """Every verb follows links in all but the last component; `read`, `write` and `open` follow the last one too.

    `stat` describes the link itself unless `follow=True`; `remove` and `rename` act on links, never on their targets.
    """

    async def stat(self, path: Path, follow: bool = False) -> Stat: ...

    async def resolve(self, path: Path, *, missing_ok: bool = False) -> Path:
        """The canonical path with no link in it; with `missing_ok` the last component need not exist."""
        ...

    def named(self, text: str, cwd: Path) -> Path:
        """The path that `text` names for someone in `cwd`: `..` leads back from where a link leads, as in a kernel.

        Known where mounts answer at once; elsewhere `..` takes away the name before it, as `paths.parse` does.
        """
        ...

    def lacks(self, path: Path) -> bool:
        """Whether it is known at once that nothing is there; False where `stat` has to be asked."""
        ...

    async def open(self, path: Path, how: Open = Open.READ) -> FileStream: ...

    async def link(self, src: Path, dst: Path) -> None:
        """Another name for the same file; EXDEV across mounts."""
        ...

    async def mkfifo(self, path: Path) -> None:
        """A named pipe, through which whoever opens it for reading meets whoever opens it for writing; else EPERM."""
        ...

    def mount_of(self, path: Path) -> Path:
        """The prefix of the mount that `path` lives on (device boundaries: `find -xdev`, `df`)."""
        ...
