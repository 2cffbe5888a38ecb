"""What directories looked like when they were last committed, kept in memory and in a file beside the store.

Rules that this file keeps:
- A folder's stamps are compared as bytes: one encoding and one comparison say that nothing in it has changed.
- An entry that may still change within its clock's granularity is stamped so that it never matches.
- A saved cache is trusted only by the store that it was made with, and only while every pack that was there then still
  is: what the cache calls known must be in the store. A damaged or foreign file is an empty cache.
"""

from __future__ import annotations

import io
import os
import secrets
from collections.abc import Iterable, Iterator
from typing import IO, Final, NamedTuple, Protocol

import msgspec
from blake3 import blake3

MAGIC: Final = b"RAMETST1"
Row = tuple[bytes, int, int, int, int, int, int]
"""Name, mode, size, mtime_ns, ctime_ns, inode, names of the inode."""

_encoder: Final = msgspec.msgpack.Encoder()
_rows: Final = msgspec.msgpack.Decoder(list[Row])


class Folder(NamedTuple):
    """One directory: the stamps of its entries, its tree, and the trees of its subdirectories in the stamps' order."""

    stamps: bytes
    tree: bytes
    encoded: bytes
    below: bytes


def stamp(rows: list[Row]) -> bytes:
    return _encoder.encode(rows)


def rows_of(folder: Folder) -> dict[bytes, Row]:
    return {row[0]: row for row in _rows.decode(folder.stamps)}


class _Saved(NamedTuple):
    root: bytes
    packs: list[str]
    folders: dict[bytes, Folder]


_saved: Final = msgspec.msgpack.Decoder(_Saved)


class Codec(Protocol):
    """How a file beside an encrypted store is kept, so that it says nothing to others."""

    def name(self, path: bytes) -> str: ...

    def seal(self, data: bytes) -> bytes: ...

    def open(self, data: bytes) -> bytes | None:
        """The bytes again; None when they are not those that were sealed, or for another workspace."""
        ...


class StatCache:
    """The folders of one committed directory by their relative path; `path` is where it is kept between processes."""

    __slots__ = ("changed", "codec", "folders", "linked", "path", "root", "trusted")

    def __init__(self, path: str | None = None, root: str = "", codec: Codec | None = None) -> None:
        self.folders: dict[bytes, Folder] = {}
        self.codec = codec
        self.path, self.root = path, os.fsencode(root)
        self.changed = False
        self.linked = False
        """Whether any file has several names, here or elsewhere."""
        self.trusted = True
        """Whether what is here is in the store for sure, because this process put it there."""

    @property
    def files(self) -> int:
        """How many entries of directories are known."""
        return sum(len(rows_of(folder)) for folder in self.folders.values())

    @classmethod
    def kept(cls, local: str | None, root: str, packs: Iterable[str], codec: Codec | None = None) -> StatCache:
        """The cache of a directory as a process before left it; an empty one when there is none to trust."""
        if local is None:
            return cls()
        root = os.path.realpath(root)
        where = os.fsencode(root)
        name = blake3(where).hexdigest()[:32] if codec is None else codec.name(where)
        cache = cls(f"{local}/stat-{name}", root, codec)
        assert cache.path is not None
        try:
            with open(cache.path, "rb") as file:
                data = file.read()
        except OSError:
            return cache
        opened = data if codec is None else codec.open(data)
        if opened is None:
            return cache
        data = opened
        body = memoryview(data)[len(MAGIC) + 32 :]
        if data[: len(MAGIC)] != MAGIC or data[len(MAGIC) : len(MAGIC) + 32] != blake3(body).digest():
            return cache
        try:
            saved = _saved.decode(body)
        except msgspec.DecodeError:
            return cache
        if saved.root == cache.root and set(saved.packs) <= set(packs):
            cache.folders, cache.trusted = saved.folders, False
        return cache

    def _write(self, file: IO[bytes], packs: Iterable[str]) -> None:
        """Folder by folder: of a large directory there is no second copy in memory."""
        digest = blake3()
        file.write(MAGIC + bytes(32))
        for part in self._encoded(packs):
            digest.update(part)
            file.write(part)
        file.seek(len(MAGIC))
        file.write(digest.digest())

    def _encoded(self, packs: Iterable[str]) -> Iterator[bytes]:
        """The parts of one MessagePack array: root, packs, and a map of folders."""
        yield b"\x93" + _encoder.encode(self.root) + _encoder.encode(sorted(packs))
        yield b"\xdf" + len(self.folders).to_bytes(4, "big")
        for where, folder in self.folders.items():
            yield _encoder.encode(where) + _encoder.encode(folder)

    def save(self, packs: Iterable[str]) -> None:
        """Keep it for the next process. Losing it costs time only, so nothing is synced."""
        if self.path is None or not self.changed:
            return
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        temporary = f"{self.path}.tmp-{secrets.token_hex(4)}"
        try:
            with open(temporary, "wb") as file:
                if self.codec is None:
                    self._write(file, packs)
                else:
                    whole = io.BytesIO()
                    self._write(whole, packs)
                    file.write(self.codec.seal(whole.getvalue()))
            os.replace(temporary, self.path)
        except OSError:
            # A full or read-only disk is no reason to fail a commit that is done.
            if os.path.exists(temporary):
                os.unlink(temporary)
            return
        self.changed = False
