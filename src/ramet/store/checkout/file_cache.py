"""`FileCache`: whole files on local disk, for checkouts by hard link or reflink.

A file is named by its content, mode and time, which hard links share. It can be rebuilt at any time; a file whose size,
mode or time does not match its name was changed through a link and is deleted.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import stat as modes
from typing import Final

from blake3 import blake3

from ramet.store.model.ids import SIZE
from ramet.store.model.trees import Node

_CLONE: Final = 0x40049409
"""FICLONE: share the blocks of another file until one side writes."""
_NO_CLONE: Final = frozenset({errno.EOPNOTSUPP, errno.ENOTTY, errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EPERM})
_PIECE: Final = 16 * 1024 * 1024
_Where = tuple[str | bytes, int | None]
"""A name, and the directory fd that it is relative to."""


def umask() -> int:
    """Return the umask, without changing it where the system allows that."""
    try:
        with open("/proc/self/status", "rb") as file:
            for line in file:
                if line.startswith(b"Umask:"):
                    return int(line.split()[1], 8)
    except OSError:
        pass
    return 0o777  # unknown: every file gets an explicit chmod


class FileCache:
    """Files under `<local>/files`, reflinked with `clone`, else hard-linked.

    Names are relative to directory fds, which avoids resolving long paths.
    """

    def __init__(self, local: str, clone: bool) -> None:
        self._folder = f"{local}/files"
        self._clone = clone
        self._made: set[str] = set()
        os.makedirs(self._folder, exist_ok=True)
        self._top = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def close(self) -> None:
        os.close(self._top)

    @staticmethod
    def _name(node: Node) -> str:
        payload = node.payload
        name = payload.hex() if len(payload) == SIZE else blake3(payload).hexdigest()
        return f"{name[:2]}/{name}-{node.mode:o}-{node.mtime_ns}"

    def give(self, node: Node, folder: int) -> bool:
        """Create this file in an open directory if it is cached; False when it must be written."""
        if not node.payload:
            return False
        source, name = self._name(node), node.name
        if self._clone:
            return self._clone_file((source, self._top), (name, folder), node)
        try:
            os.link(source, name, src_dir_fd=self._top, dst_dir_fd=folder)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.EMLINK, errno.EXDEV, errno.EPERM):
                return False
            raise
        if _matches(os.stat(name, dir_fd=folder, follow_symlinks=False), node):
            return True
        os.unlink(name, dir_fd=folder)
        os.unlink(source, dir_fd=self._top)
        return False

    def take(self, node: Node, path: bytes) -> None:
        """Cache a file that was just written, where the filesystem allows it."""
        if not node.payload:
            return
        target = self._name(node)
        folder = target[:2]
        if folder not in self._made:
            os.makedirs(f"{self._folder}/{folder}", exist_ok=True)
            self._made.add(folder)
        if self._clone:
            temporary = f"{target}.tmp-{secrets.token_hex(4)}"
            self._clone_file((path, None), (temporary, self._top), node)
            os.replace(temporary, target, src_dir_fd=self._top, dst_dir_fd=self._top)
            return
        try:
            os.link(path, target, dst_dir_fd=self._top)
        except OSError as error:
            if error.errno not in (errno.EEXIST, errno.EMLINK, errno.EXDEV, errno.EPERM):
                raise

    def _clone_file(self, source: _Where, target: _Where, node: Node) -> bool:
        try:
            reading = os.open(source[0], os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=source[1])
        except FileNotFoundError:
            return False
        try:
            if not _matches(os.fstat(reading), node):
                return False
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            writing = os.open(target[0], flags, 0o600, dir_fd=target[1])
            try:
                _clone(reading, writing, node.size)
                os.fchmod(writing, node.mode)
                os.utime(writing, ns=(node.mtime_ns, node.mtime_ns))
            finally:
                os.close(writing)
        finally:
            os.close(reading)
        return True


def _matches(found: os.stat_result, node: Node) -> bool:
    return (found.st_mode, found.st_size, found.st_mtime_ns) == (modes.S_IFREG | node.mode, node.size, node.mtime_ns)


def _clone(reading: int, writing: int, size: int) -> None:
    """Reflink where the filesystem can, else copy inside the kernel."""
    try:
        fcntl.ioctl(writing, _CLONE, reading)
        return
    except OSError as error:
        if error.errno not in _NO_CLONE:
            raise
    at = 0
    while at < size:
        at += os.sendfile(writing, reading, at, min(_PIECE, size - at)) or size
