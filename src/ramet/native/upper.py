"""Scan the upper directory of an overlay: which paths differ from the tree that the box started with.

- A character device 0/0 is a removed path, a directory with the attribute `opaque` replaces the one below it.
- The scan reads the directory on the host, not through the overlay: its cost is that of the changes.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat as modes
from collections.abc import Iterator, Sequence
from typing import Final

from ramet.backends.local.overlay_marks import OPAQUE, is_opaque, is_removed

PATH_MAX: Final = 4096
Stamp = tuple[int, int, int, int]
"""What tells two states of an entry apart: ctime, which every change sets, inode, size, mode."""


def walk_upper(upper: str) -> Iterator[tuple[str, os.stat_result]]:
    """Yield every path of the upper directory (`/a/b`), parents first, with its stat; none that is too long to name."""
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
                    if len(os.fsencode(path)) >= PATH_MAX:
                        continue
                    yield path, found
                    if modes.S_ISDIR(found.st_mode):
                        todo.append(path)
        except FileNotFoundError:
            continue
        except OSError as error:
            if error.errno != errno.ENAMETOOLONG:
                raise


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


def assemble(layers: Sequence[str], target: str) -> None:
    """Write the tree of overlay layers, lowest first, to a new directory. Files are hard links: nothing is copied."""
    _delete(target)
    os.mkdir(target)
    for layer in layers:
        _put_on(layer, target)


def _put_on(layer: str, target: str) -> None:
    with os.scandir(layer) as entries:
        found = [(entry.name, entry.stat(follow_symlinks=False)) for entry in entries]
    for name, stat in found:
        source, place = f"{layer}/{name}", f"{target}/{name}"
        is_directory = modes.S_ISDIR(stat.st_mode)
        if not is_directory or is_opaque(source) or os.path.islink(place) or not os.path.isdir(place):
            _delete(place)
        if is_directory:
            os.makedirs(place, exist_ok=True)
            _put_on(source, place)
            os.chmod(place, stat.st_mode & 0o7777)
            os.utime(place, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        elif not is_removed(stat):
            os.link(source, place, follow_symlinks=False)


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
        seen = self._seen
        for path, stat in walk_upper(self.folder):
            stamp = (stat.st_ctime_ns, stat.st_ino, stat.st_size, stat.st_mode)
            now[path] = stamp
            before = seen.get(path)
            if before == stamp:
                continue
            if is_removed(stat):
                found.append((path, "remove", 0))
            elif modes.S_ISDIR(stat.st_mode):
                if before is None or before[3] != stamp[3] or before[1] != stamp[1]:
                    found.append((path, "mkdir", 0))
            else:
                found.append((path, "write", stat.st_size))
        found.extend((path, "remove", 0) for path in self._seen.keys() - now.keys())
        self._seen = now
        return sorted(found)
