"""`GitArchive`: the tarball of one commit in a temporary file, read by path."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import os
import tarfile
import tempfile
import zlib
from collections.abc import AsyncIterator
from typing import IO, Final

from ramet.core.errors import fail, unavailable
from ramet.core.paths import Path, decode
from ramet.core.streams import closing

OVERHEAD: Final = 2048
"""Bytes that a tar adds to a file at most: two headers of 512 bytes, long names and padding."""


class GitArchive:
    """The contents of a commit. A content is returned only if it has the id that the tree names."""

    def __init__(self, file: IO[bytes], places: dict[str, tuple[int, int]]) -> None:
        self._file, self._places = file, places

    @classmethod
    async def load(cls, blocks: AsyncIterator[bytes], path: Path, most: int) -> GitArchive:
        """Inflate a `tar.gz` into a temporary file; EFBIG beyond `most` bytes."""
        file = tempfile.TemporaryFile(prefix="ramet-archive-")
        try:
            inflater, size = zlib.decompressobj(31), 0
            async with closing(blocks) as stream:
                async for block in stream:
                    while block:
                        piece = inflater.decompress(block, 1 << 20)
                        size += file.write(piece)
                        if size > most:
                            raise fail(errno.EFBIG, path, "the tarball is larger than the tree that it is of")
                        block = inflater.unconsumed_tail
            if not inflater.eof:
                raise unavailable(path, "the tarball ends early")
            return cls(file, await asyncio.to_thread(_places, file))
        except (zlib.error, tarfile.TarError):
            file.close()
            raise unavailable(path, "the tarball is damaged") from None
        except BaseException:
            file.close()
            raise

    def read(self, name: str, sha: str) -> bytes | None:
        """The content at `name`; None if the archive leaves it out or has it changed (`export-ignore`, `-subst`)."""
        place = self._places.get(name)
        if place is None or self._file.closed:
            return None
        content = os.pread(self._file.fileno(), place[1], place[0])
        return content if blob_id(content) == sha else None

    def close(self) -> None:
        self._file.close()


def blob_id(content: bytes) -> str:
    """The id that git gives to a content."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _places(file: IO[bytes]) -> dict[str, tuple[int, int]]:
    """Where each file begins, by its path below the one directory that such a tarball holds."""
    file.seek(0)
    found: dict[str, tuple[int, int]] = {}
    with tarfile.open(fileobj=file, mode="r:", encoding="utf-8", errors="surrogateescape") as tar:
        for member in tar:
            if member.isreg():
                found[decode(member.name.encode("utf-8", "surrogateescape")).partition("/")[2]] = (
                    member.offset_data,
                    member.size,
                )
    return found
