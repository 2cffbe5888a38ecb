"""`TreeResource`: the in-process view of a kernel tree that native programs work on, too.

It is a directory of the host behind a descriptor, with two differences: names of the box in `/` are hidden, and what it
creates belongs to the user of the box.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Coroutine, Iterator
from stat import S_ISDIR, S_ISFIFO
from typing import Any

from ramet.backends.local.disk import DiskResource
from ramet.backends.local.overlay_marks import is_removed
from ramet.backends.local.ram import RAMResource
from ramet.backends.local.safe_open import open_beneath
from ramet.core.errors import fail
from ramet.core.paths import ROOT, Path
from ramet.core.resource import How
from ramet.core.stat import Attrs, Kind, Stat
from ramet.native.layout import Layout, Owner, TreePlace, file_owner
from ramet.native.upper import walk_upper


class SharedLayers(RAMResource):
    """Stands for the frozen layers of another box's tree, until the box of a copy has them as its lower layers."""

    def __init__(self, place: TreePlace, layout: Layout) -> None:
        super().__init__()
        self.place, self.layout = place, layout

    def stat_now(self, path: Path) -> Stat:
        for layer in reversed(self.place.shared):
            try:
                found = os.lstat(f"{layer}{path}")
            except (FileNotFoundError, NotADirectoryError):
                continue
            if is_removed(found):
                break
            return Stat(Kind.DIR if S_ISDIR(found.st_mode) else Kind.FILE, found.st_size)
        raise fail(errno.ENOENT, path)


class OverlaidDirectory(DiskResource):
    """A directory of the host as the lower layer of an overlay: a native workspace never writes to it."""


class TreeResource(DiskResource):
    """One overlay of a box. `adopt` replaces its descriptor when the box was built again."""

    def __init__(self, fd: int, place: TreePlace, owner: Owner, *, hidden: frozenset[str]) -> None:
        self.place = place
        self._hidden = hidden
        """Names at the top that belong to the box."""
        super().__init__(f"/proc/self/fd/{fd}", create=False)
        if owner.foreign:
            self.creator = lambda: file_owner(owner)
        self.root = f"/proc/self/fd/{self._fd}"
        os.close(fd)

    def __repr__(self) -> str:
        return f"TreeResource({self.place.folder!r})"

    def adopt(self, fd: int) -> None:
        old, self._fd = self._fd, os.open(f"/proc/self/fd/{fd}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self.root = f"/proc/self/fd/{self._fd}"
        os.close(old)
        os.close(fd)

    def box_names(self) -> set[str]:
        """Return the names at the top that are no part of the workspace."""
        return {name for name in os.listdir(self.root) if not self.place.has(name)}

    def changed_directories(self) -> set[bytes]:
        """Return the directories in which something differs from the lower layer: `b""` is the root."""
        found = {b""}
        for upper in (*self.place.frozen, self.place.upper):
            found.update(os.fsencode(path) for path, stat in walk_upper(upper) if S_ISDIR(stat.st_mode))
        return found

    def check_path(self, path: Path) -> None:
        if self._hidden and path[1:].partition("/")[0] in self._hidden:
            raise fail(errno.ENOENT, path)

    def scan_now(self, path: Path) -> Iterator[list[tuple[str, Stat]]]:
        return self._visible(path, super().scan_now(path))

    def kinds_now(self, path: Path) -> Iterator[list[tuple[str, Stat]]]:
        return self._visible(path, super().kinds_now(path))

    def _visible(self, path: Path, rows: Iterator[list[tuple[str, Stat]]]) -> Iterator[list[tuple[str, Stat]]]:
        for row in rows:
            if path == ROOT and self._hidden:
                row = [entry for entry in row if entry[0] not in self._hidden]
            yield [entry for entry in row if entry[1].kind is not Kind.DEVICE]

    async def mkfifo(self, path: Path) -> None:
        with self._parent(path, errno.EEXIST) as (parent, name), self.creator():
            os.mkfifo(name, dir_fd=parent)

    def open_fifo(self, path: Path, flags: int) -> int:
        self.check_path(path)
        fd = open_beneath(self._fd, path, os.O_PATH)
        try:
            if not S_ISFIFO(os.fstat(fd).st_mode):
                raise fail(errno.ENXIO, path)
            return os.open(f"/proc/self/fd/{fd}", flags | os.O_CLOEXEC)
        finally:
            os.close(fd)

    def as_memory(self) -> RAMResource:
        """Return a copy in memory, for snapshots and copies."""
        ram = RAMResource()
        todo = [ROOT]
        first: dict[object, Path] = {}
        directories: list[tuple[Path, Stat]] = []
        while todo:
            folder = todo.pop()
            for row in self.scan_now(folder):
                for name, stat in row:
                    path = folder / name
                    if stat.kind is Kind.DIR:
                        now(ram.mkdir(path))
                        directories.append((path, stat))
                        todo.append(path)
                    elif stat.kind is Kind.LINK:
                        now(ram.write(path, os.fsencode(stat.target or ""), How.LINK))
                    elif stat.kind is Kind.FILE:
                        known = first.setdefault(stat.inode, path) if (stat.nlink or 1) > 1 else path
                        if known != path:
                            now(ram.link(known, path))
                            continue
                        now(ram.write(path, self.read_now(path)))
                        now(ram.setattr(path, Attrs(mode=stat.mode, mtime_ns=stat.mtime_ns)))
        for path, stat in reversed(directories):
            now(ram.setattr(path, Attrs(mode=stat.mode, mtime_ns=stat.mtime_ns)))
        return ram


def now(work: Coroutine[Any, Any, object]) -> None:
    """Finish an operation on memory, which never suspends."""
    try:
        work.send(None)
    except StopIteration:
        return
    raise AssertionError("an operation on memory has suspended")


def materialize(ram: RAMResource, target: str, owner: Owner) -> None:
    """Write a tree in memory to an empty directory, with links, modes and times."""
    first: dict[object, str] = {}
    todo, directories = [ROOT], list[tuple[str, Stat]]()
    while todo:
        folder = todo.pop()
        for row in ram.scan_now(folder):
            for name, stat in row:
                path, place = folder / name, f"{target}{folder / name}"
                if stat.kind is Kind.DIR:
                    os.mkdir(place)
                    directories.append((place, stat))
                    todo.append(path)
                elif stat.kind is Kind.LINK:
                    os.symlink(stat.target or "", place)
                elif stat.kind is Kind.FIFO:
                    os.mkfifo(place, stat.mode or 0o644)
                else:
                    known = first.setdefault(stat.inode, place) if (stat.nlink or 1) > 1 else place
                    if known != place:
                        os.link(known, place)
                        continue
                    with open(place, "xb") as file:
                        file.write(ram.read_now(path))
                    _finish(place, stat)
                if owner.foreign:
                    os.chown(place, owner.uid, owner.gid, follow_symlinks=False)
    for place, stat in reversed(directories):
        _finish(place, stat)


def _finish(place: str, stat: Stat) -> None:
    if stat.mode is not None:
        os.chmod(place, stat.mode & 0o1777)
    if stat.mtime_ns is not None:
        os.utime(place, ns=(stat.atime_ns or stat.mtime_ns, stat.mtime_ns))
