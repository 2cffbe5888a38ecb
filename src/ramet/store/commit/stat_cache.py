"""What directories looked like when they were last committed, kept in memory and in a file beside the store.

Rules that this file keeps:
- A folder's stamps are compared as bytes: one encoding and one comparison say that nothing in it has changed.
- An entry that may still change within its clock's granularity is stamped so that it never matches.
- A saved cache is trusted only by the store that it was made with, and only while every pack that was there then still
  is: what the cache calls known must be in the store. A damaged or foreign file is an empty cache.
- Of a file there is its stamp and nothing else; trees are read from the store when they are needed. Loading and saving
  hold one folder at a time.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator
from typing import IO, Any, Final, NamedTuple, Protocol

import msgspec
from blake3 import blake3

MAGIC: Final = b"RAMETST2"
Facts = tuple[int, int, int, int, int, int]
"""Mode, size, mtime_ns, ctime_ns, inode, names of the inode."""
Row = tuple[str, Facts]
"""A name as the system lists it, and what is known of it."""

_encoder: Final = msgspec.msgpack.Encoder()
_rows: Final = msgspec.msgpack.Decoder(list[tuple[Any, Facts]])


class DirectoryStat(NamedTuple):
    """One directory as it was committed."""

    stamps: bytes
    tree: bytes
    dirs: bytes
    """The names of its subdirectories in the stamps' order, joined by slashes."""
    below: bytes
    """The trees of its subdirectories in the same order."""
    files: int
    links: bool = False
    """Whether a file in it has several names, here or elsewhere."""
    encoded: bytes = b""
    """Its tree as if no file had several names, where one in it or below it has: the store may not keep that."""


def stamp(rows: list[Row]) -> bytes:
    """Rows as bytes. Names are text, as they are listed; only where one is not UTF-8 they have to be bytes."""
    try:
        return _encoder.encode(rows)
    except UnicodeEncodeError:
        return _encoder.encode([(os.fsencode(name), facts) for name, facts in rows])


def encoded_names(rows: list[Row]) -> list[bytes]:
    """The names of rows as trees have them, encoded at once: no name holds a NUL."""
    return os.fsencode("\0".join([row[0] for row in rows])).split(b"\0") if rows else []


def facts_of(folder: DirectoryStat) -> dict[str, Facts]:
    """What is known of each entry, by its name as the system lists it."""
    return {name if type(name) is str else os.fsdecode(name): facts for name, facts in _rows.decode(folder.stamps)}


class _CacheHeader(NamedTuple):
    root: bytes
    packs: list[str]
    rules: list[str] | None


_head: Final = msgspec.msgpack.Decoder(_CacheHeader)
_placed: Final = msgspec.msgpack.Decoder(tuple[bytes, DirectoryStat])


class CacheCodec(Protocol):
    """How a file beside an encrypted store is kept, so that it says nothing to others."""

    def name(self, path: bytes) -> str: ...

    def seal(self, data: bytes) -> bytes: ...

    def open(self, data: bytes) -> bytes | None:
        """The bytes again; None when they are not those that were sealed, or for another workspace."""
        ...


class StatCache:
    """The folders of one committed directory by their relative path; `path` is where it is kept between processes."""

    __slots__ = ("changed", "codec", "folders", "linked", "path", "root", "rules", "trusted")

    def __init__(self, path: str | None = None, root: str = "", codec: CacheCodec | None = None) -> None:
        self.folders: dict[bytes, DirectoryStat] = {}
        self.codec = codec
        self.path, self.root = path, os.fsencode(root)
        self.changed = False
        self.linked = False
        """Whether any file has several names, here or elsewhere."""
        self.rules: list[str] | None = None
        """What was withheld when the folders were committed."""
        self.trusted = True
        """Whether what is here is in the store for sure, because this process put it there."""

    @property
    def files(self) -> int:
        """How many entries of directories are known."""
        return sum(len(facts_of(folder)) for folder in self.folders.values())

    def forget(self) -> None:
        """Know nothing, as in the beginning."""
        self.folders, self.changed, self.linked, self.rules, self.trusted = {}, True, False, None, True

    @classmethod
    def kept(cls, local: str | None, root: str, packs: Iterable[str], codec: CacheCodec | None = None) -> StatCache:
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
                if codec is None:
                    cache._load(file, packs)
                elif (opened := codec.open(file.read())) is not None:
                    cache._load(io.BytesIO(opened), packs)
        except (OSError, msgspec.DecodeError):
            cache.forget()
            cache.changed = False
        return cache

    def _load(self, file: IO[bytes], packs: Iterable[str]) -> None:
        """Take what a file holds if all of it is what was written."""
        if file.read(len(MAGIC)) != MAGIC:
            return
        wanted, digest = file.read(32), blake3()
        folders: dict[bytes, DirectoryStat] = {}
        head: _CacheHeader | None = None
        while size := file.read(4):
            part = file.read(int.from_bytes(size, "big"))
            digest.update(size)
            digest.update(part)
            if head is None:
                head = _head.decode(part)
            else:
                where, folder = _placed.decode(part)
                folders[where] = folder
        if head is not None and digest.digest() == wanted and head.root == self.root and set(head.packs) <= set(packs):
            self.folders, self.rules, self.trusted = folders, head.rules, False

    def _write(self, file: IO[bytes], packs: Iterable[str]) -> None:
        digest = blake3()
        file.write(MAGIC + bytes(32))
        for part in self._encoded(packs):
            sized = len(part).to_bytes(4, "big") + part
            digest.update(sized)
            file.write(sized)
        file.seek(len(MAGIC))
        file.write(digest.digest())

    def _encoded(self, packs: Iterable[str]) -> Iterator[bytes]:
        yield _encoder.encode(_CacheHeader(self.root, sorted(packs), self.rules))
        for placed in self.folders.items():
            yield _encoder.encode(placed)

    def save(self, packs: Iterable[str]) -> None:
        """Keep it for the next process. Losing it costs time only, so nothing is synced."""
        if self.path is None or not self.changed:
            return
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        temporary = f"{self.path}.tmp-{os.urandom(4).hex()}"
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
