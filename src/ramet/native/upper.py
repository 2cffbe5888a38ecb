"""Scan the upper directory of an overlay: which paths differ from the tree that the box started with.

- A character device 0/0 is a removed path, a directory with the attribute `opaque` replaces the one below it.
- The scan reads the directory on the host, not through the overlay: its cost is that of the changes.
"""

from __future__ import annotations

import errno
import math
import os
import shutil
import stat as modes
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from ramet.backends.local.overlay_marks import OPAQUE, is_opaque, is_removed

PATH_MAX: Final = 4096
Stamp = tuple[int, int, int, int, int]
"""What tells two states of an entry apart: ctime, which every change sets, inode, size, mode; mtime."""


class UpperChange(NamedTuple):
    """A path that differs from the last look."""

    path: str
    verb: str
    size: int
    before: tuple[int, int] | None = None
    """mtime_ns and size of the file at the last look; None if it had no file here."""
    removed_before: bool = False
    """Whether the last look found the path removed."""
    rewritten: bool = False
    """Whether the content of a file may differ, and not only its mode or name."""


class TooLarge(Exception):
    """A directory has more entries than a look at it may cost."""


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
    """The state of one directory at the last look; `changed` tells what differs since then."""

    def __init__(self, folder: str, most: float = math.inf) -> None:
        self.folder, self._most = folder, most
        self._seen: dict[str, Stamp] = {}

    @property
    def entries(self) -> int:
        return len(self._seen)

    def changed(self) -> list[UpperChange]:
        """Return everything that changed since the last call, by path.

        Raises TooLarge for a directory of more than `most` entries.
        """
        now: dict[str, Stamp] = {}
        found: list[UpperChange] = []
        seen = self._seen
        for path, stat in walk_upper(self.folder):
            stamp = (stat.st_ctime_ns, stat.st_ino, stat.st_size, stat.st_mode, stat.st_mtime_ns)
            now[path] = stamp
            if len(now) > self._most:
                raise TooLarge
            before = seen.get(path)
            if before == stamp:
                continue
            if is_removed(stat):
                found.append(UpperChange(path, "remove", 0))
            elif modes.S_ISDIR(stat.st_mode):
                if before is None or before[3] != stamp[3] or before[1] != stamp[1]:
                    found.append(UpperChange(path, "mkdir", 0))
            else:
                last = (before[4], before[2]) if before is not None and modes.S_ISREG(before[3]) else None
                removed = before is not None and modes.S_ISCHR(before[3])
                now_is = (stat.st_ino, stat.st_mtime_ns, stat.st_size)
                rewritten = before is None or (before[1], *(last or ())) != now_is
                found.append(UpperChange(path, "write", stat.st_size, last, removed, rewritten))
        found.extend(UpperChange(path, "remove", 0) for path in self._seen.keys() - now.keys())
        self._seen = now
        return sorted(found)
