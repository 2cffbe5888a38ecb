"""`FileReader`: read files of a host directory into packs, small ones in batches, large ones by windows.

A file may change while it is read. The caller checks whether the earlier stat still describes it: by the size of the
node, and by the age of the file.
"""

from __future__ import annotations

import errno
import os
from operator import gt
from typing import Final

from blake3 import blake3

from ramet.store.commit.stat_cache import Facts
from ramet.store.model.chunker import WHOLE, file_chunks
from ramet.store.model.ids import chunk_id
from ramet.store.model.trees import FILE, Node
from ramet.store.packs.writer import PackWriter

BATCH_FILES: Final = 64
"""Small files per batch: grouping system calls by kind is faster than interleaving them."""
SMALL_FILE_BYTES: Final = 64 * 1024
NONE: Final[dict[str, bytes]] = {}
_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NO_XATTRS: Final = frozenset({errno.ENOTSUP, errno.EPERM, errno.EACCES, errno.ENOENT, errno.ELOOP})
_GONE: Final = (FileNotFoundError, IsADirectoryError)
_node: Final = tuple.__new__


class FileReader:
    """Reads files into a writer."""

    def __init__(self, writer: PackWriter) -> None:
        self._writer = writer
        self._xattrs = True
        """Whether the filesystem is known to have extended attributes."""

    def read(self, folder: int, names: list[bytes], facts: list[Facts]) -> list[Node | None]:
        """Read files of an open directory; None for a file that has vanished."""
        if len(names) > 1 and max([fact[1] for fact in facts]) <= SMALL_FILE_BYTES:
            made = self._several(folder, names, facts)
            if made is not None:
                return made
        return [self._one(folder, name, fact) for name, fact in zip(names, facts, strict=True)]

    def _several(self, folder: int, names: list[bytes], facts: list[Facts]) -> list[Node | None] | None:
        """As `read` for a batch of plain files; None when one of them needs the slow path."""
        files: list[int] = []
        expected = [fact[1] for fact in facts]
        try:
            for name in names:
                files.append(os.open(name, _FLAGS, dir_fd=folder))  # noqa: PERF401 - when one fails the others close
            if self._xattrs and any(map(os.listxattr, files)):
                return None
            contents = list(map(os.read, files, [most + 1 for most in expected]))
        except OSError:
            return None
        finally:
            for file in files:
                os.close(file)
        ids = [blake3(data).digest() if data else b"" for data in contents]
        sizes = list(map(len, contents))
        if any(map(gt, sizes, expected)):
            return None
        self._writer.add_all(ids, contents)
        return [
            _node(Node, (name, FILE, fact[0] & 0o7777, fact[2], size, key, 0, NONE))
            for name, fact, size, key in zip(names, facts, sizes, ids, strict=True)
        ]

    def _one(self, folder: int, name: bytes, facts: Facts) -> Node | None:
        mode, size, mtime, *_ = facts
        try:
            file = os.open(name, _FLAGS, dir_fd=folder)
        except _GONE:
            return None
        try:
            xattrs = self.attributes(file)
            if size <= WHOLE:
                data = os.read(file, size + 1)
                if len(data) <= size:
                    payload: bytes = b""
                    if data:
                        payload = chunk_id(data)
                        self._writer.add(payload, data)
                    return Node(name, FILE, mode & 0o7777, mtime, len(data), payload, 0, xattrs)
            total = 0
            ids: list[bytes] = []
            for chunk in file_chunks(file):
                identity = chunk_id(chunk)
                self._writer.add(identity, chunk)
                ids.append(identity)
                total += len(chunk)
            return Node(name, FILE, mode & 0o7777, mtime, total, b"".join(ids), 0, xattrs)
        finally:
            os.close(file)

    def attributes(self, file: int | bytes) -> dict[str, bytes]:
        """Return the `user.*` extended attributes; a filesystem without them is asked once."""
        if not self._xattrs:
            return NONE
        try:
            names = os.listxattr(file)
            return {name: os.getxattr(file, name) for name in names if name.startswith("user.")} if names else NONE
        except OSError as error:
            if error.errno == errno.ENOTSUP:
                self._xattrs = False
            elif error.errno not in _NO_XATTRS and error.errno != errno.ENODATA:
                raise
            return NONE
