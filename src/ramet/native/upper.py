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
from ramet.backends.local.safe_open import open_beneath
from ramet.core.paths import Path

PATH_MAX: Final = 4096
GONE: Final = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.EACCES)
"""What opening a directory says that has been removed or replaced meanwhile, or that its owner has closed."""
OPEN_MODE: Final = 0o700
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


def walk_upper(upper: str, *, own: bool = True) -> Iterator[tuple[str, os.stat_result]]:
    """Yield every path of the upper directory (`/a/b`), parents first, with its stat; none that is too long to name.

    Programs may change it meanwhile: no link is followed. An unreadable directory is readable for the time of the look
    where it is `own`, and else left out.
    """
    try:
        root = os.open(upper, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    todo: list[tuple[str, int]] = [("", -1)]
    try:
        while todo:
            folder, closed = todo.pop()
            if closed >= 0:
                _set_mode(root, folder, closed)
                continue
            fd = _open_folder(root, folder)
            if fd < 0 and own and (mode := _set_mode(root, folder, OPEN_MODE)) >= 0:
                todo.append((folder, mode))  # after all that is below it
                fd = _open_folder(root, folder)
            if fd < 0:
                continue
            try:
                with os.scandir(fd) as entries:
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
                            todo.append((path, -1))
            finally:
                os.close(fd)
    finally:
        for folder, closed in reversed(todo):  # of a walk that was not finished
            if closed >= 0:
                _set_mode(root, folder, closed)
        os.close(root)


def make_readable(folder: str) -> None:
    """Let the owner read all files and directories of a tree: what its owner cannot read cannot be stored."""
    root = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for path, found in walk_upper(folder):
            wanted = {modes.S_IFDIR: 0o500, modes.S_IFREG: 0o400}.get(modes.S_IFMT(found.st_mode), 0)
            if found.st_mode & wanted != wanted:
                _set_mode(root, path, modes.S_IMODE(found.st_mode) | wanted, directory=False)
    finally:
        os.close(root)


def exists_below(folder: str, path: str) -> bool:
    """Whether a path (`/a/b`) is there, without following a link: a lower layer has links of programs."""
    root = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.close(open_beneath(root, Path(path), os.O_PATH))
    except OSError:
        return False
    else:
        return True
    finally:
        os.close(root)


def _open_folder(root: int, folder: str) -> int:
    """Open a directory below `root` to list it; -1 where it is gone or unreadable."""
    try:
        fd = open_beneath(root, Path(folder or "/"), os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        if error.errno in GONE:
            return -1
        raise
    if os.access(".", os.X_OK, dir_fd=fd, effective_ids=True):
        return fd
    os.close(fd)
    return -1


def _set_mode(root: int, path: str, mode: int, *, directory: bool = True) -> int:
    """Set the mode of a directory (or file) below `root`; returns the former one, -1 where that is impossible."""
    try:
        fd = open_beneath(root, Path(path or "/"), os.O_PATH | (os.O_DIRECTORY if directory else 0))
    except OSError:
        return -1
    try:
        former = modes.S_IMODE(os.fstat(fd).st_mode)
        os.chmod(f"/proc/self/fd/{fd}", mode)
    except OSError:
        return -1
    else:
        return former
    finally:
        os.close(fd)


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

    def __init__(self, folder: str, most: float = math.inf, *, own: bool = True) -> None:
        self.folder, self._most, self._own = folder, most, own
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
        for path, stat in walk_upper(self.folder, own=self._own):
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
