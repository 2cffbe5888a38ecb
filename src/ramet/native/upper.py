"""Scan the upper directory of an overlay: which paths differ from the tree that the box started with.

- A character device 0/0 is a removed path, a directory with the attribute `opaque` replaces the one below it.
- The scan reads the directory on the host, not through the overlay: its cost is that of the changes.
"""

from __future__ import annotations

import os
import shutil
import stat as modes
from collections.abc import Iterator
from typing import Final, NamedTuple

OPAQUE: Final = ("user.overlay.opaque", "trusted.overlay.opaque")


class Stamp(NamedTuple):
    """What tells two states of an entry apart."""

    mode: int
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int


def is_removed(found: os.stat_result) -> bool:
    """Whether an entry of an upper directory says that the lower one was removed."""
    return modes.S_ISCHR(found.st_mode) and found.st_rdev == 0


def is_opaque(folder: str) -> bool:
    """Whether an upper directory replaces the lower one instead of merging with it."""
    for name in OPAQUE:
        try:
            if os.getxattr(folder, name, follow_symlinks=False) == b"y":
                return True
        except OSError:
            continue
    return False


def walk_upper(upper: str) -> Iterator[tuple[str, os.stat_result]]:
    """Yield every path of the upper directory (`/a/b`), parents first, with its stat."""
    todo = [""]
    while todo:
        folder = todo.pop()
        try:
            with os.scandir(upper + folder) as entries:
                for entry in entries:
                    try:
                        found = entry.stat(follow_symlinks=False)
                    except FileNotFoundError:
                        continue  # removed since the listing
                    path = f"{folder}/{entry.name}"
                    yield path, found
                    if modes.S_ISDIR(found.st_mode):
                        todo.append(path)
        except FileNotFoundError:
            continue


def fold(lower: str, upper: str) -> None:
    """Move the changes of an overlay that is not mounted into its lower directory. Repeat it after an interruption."""
    with os.scandir(upper) as entries:
        found = [(entry.name, entry.stat(follow_symlinks=False)) for entry in entries]
    for name, stat in found:
        source, target = f"{upper}/{name}", f"{lower}/{name}"
        if is_removed(stat):
            _delete(target)
            os.unlink(source)
        elif not modes.S_ISDIR(stat.st_mode):
            if os.path.isdir(target) and not os.path.islink(target):
                _delete(target)
            os.replace(source, target)
        else:
            if is_opaque(source):
                _delete(target)
                _clear_opaque(source)  # before anything moves: what has moved must not be deleted again
            if os.path.islink(target) or not os.path.isdir(target):
                _delete(target)
                os.mkdir(target)
            os.chmod(source, stat.st_mode | 0o700)
            fold(target, source)
            os.chmod(target, stat.st_mode & 0o7777)
            os.utime(target, ns=(stat.st_atime_ns, stat.st_mtime_ns))
            os.rmdir(source)


def _delete(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)


def _clear_opaque(folder: str) -> None:
    for name in OPAQUE:
        try:
            os.removexattr(folder, name, follow_symlinks=False)
        except OSError:
            continue  # it has the other one


class Upper:
    """The state of one upper directory at the last look; `changed` tells what differs since then."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._seen: dict[str, Stamp] = {}

    @property
    def entries(self) -> int:
        return len(self._seen)

    def changed(self) -> list[tuple[str, str, int]]:
        """Return (path, verb, size) of everything that changed since the last call, by path."""
        now: dict[str, Stamp] = {}
        found: list[tuple[str, str, int]] = []
        for path, stat in walk_upper(self.folder):
            stamp = Stamp(stat.st_mode, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino)
            now[path] = stamp
            before = self._seen.get(path)
            if before == stamp:
                continue
            if is_removed(stat):
                found.append((path, "remove", 0))
            elif modes.S_ISDIR(stat.st_mode):
                if before is None or before.mode != stamp.mode or before.inode != stamp.inode:
                    found.append((path, "mkdir", 0))
            else:
                found.append((path, "write", stamp.size))
        found.extend((path, "remove", 0) for path in self._seen.keys() - now.keys())
        self._seen = now
        return sorted(found)
