"""Stat cache of committed directories, in memory and in a file next to the store.

- The stamps of a directory are compared as bytes: one encoding and one comparison show that nothing changed.
- An entry that may still change within the clock's granularity gets a stamp that never matches.
- A saved cache is valid only for its own store, and only while every pack of that time exists. A damaged or foreign
  file is an empty cache.
- Of a file only its stamp is cached; trees are read from the store. Loading and saving hold one directory at a time.
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
"""A name as listed by the system, and its stat fields."""

_encoder: Final = msgspec.msgpack.Encoder()
_rows: Final = msgspec.msgpack.Decoder(list[tuple[Any, Facts]])


class DirectoryStat(NamedTuple):
    """One directory as of its commit."""

    stamps: bytes
    tree: bytes
    dirs: bytes
    """Names of its subdirectories in the order of the stamps, joined by slashes."""
    below: bytes
    """Trees of its subdirectories in the same order."""
    files: int
    links: bool = False
    """Whether it has a hard-linked file."""
    encoded: bytes = b""
    """Its encoded tree without hard links, when it or a directory below has some: the store may not have that tree."""


def stamp(rows: list[Row]) -> bytes:
    """Encode rows. Names are text as listed; bytes only where one is not UTF-8."""
    try:
        return _encoder.encode(rows)
    except UnicodeEncodeError:
        return _encoder.encode([(os.fsencode(name), facts) for name, facts in rows])


def encoded_names(rows: list[Row]) -> list[bytes]:
    """Encode the names of rows at once; no name contains a NUL."""
    return os.fsencode("\0".join([row[0] for row in rows])).split(b"\0") if rows else []


def facts_of(folder: DirectoryStat) -> dict[str, Facts]:
    """Decode the stat fields of each entry, by name."""
    return {name if type(name) is str else os.fsdecode(name): facts for name, facts in _rows.decode(folder.stamps)}


class _CacheHeader(NamedTuple):
    root: bytes
    packs: list[str]
    rules: list[str] | None


_head: Final = msgspec.msgpack.Decoder(_CacheHeader)
_placed: Final = msgspec.msgpack.Decoder(tuple[bytes, DirectoryStat])


class CacheCodec(Protocol):
    """Encrypts the cache file of an encrypted store."""

    def name(self, path: bytes) -> str: ...

    def seal(self, data: bytes) -> bytes: ...

    def open(self, data: bytes) -> bytes | None:
        """Decrypt; None when the bytes are damaged or of another workspace."""
        ...


class StatCache:
    """Directories of one committed root by relative path; `path` is the file that persists them."""

    __slots__ = ("changed", "codec", "folders", "linked", "path", "root", "rules", "trusted")

    def __init__(self, path: str | None = None, root: str = "", codec: CacheCodec | None = None) -> None:
        self.folders: dict[bytes, DirectoryStat] = {}
        self.codec = codec
        self.path, self.root = path, os.fsencode(root)
        self.changed = False
        self.linked = False
        """Whether any file is hard-linked."""
        self.rules: list[str] | None = None
        """The ignore patterns of the cached commit."""
        self.trusted = True
        """Whether the cached trees are known to be in the store, because this process wrote them."""

    @property
    def files(self) -> int:
        """The number of cached entries."""
        return sum(len(facts_of(folder)) for folder in self.folders.values())

    def forget(self) -> None:
        """Clear the cache."""
        self.folders, self.changed, self.linked, self.rules, self.trusted = {}, True, False, None, True

    @classmethod
    def load(cls, local: str | None, root: str, packs: Iterable[str], codec: CacheCodec | None = None) -> StatCache:
        """Load the cache of a directory from its file; empty when there is no valid one."""
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
        """Load a file whose digest is right."""
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
        for part in self._encode_parts(packs):
            sized = len(part).to_bytes(4, "big") + part
            digest.update(sized)
            file.write(sized)
        file.seek(len(MAGIC))
        file.write(digest.digest())

    def _encode_parts(self, packs: Iterable[str]) -> Iterator[bytes]:
        yield _encoder.encode(_CacheHeader(self.root, sorted(packs), self.rules))
        for placed in self.folders.items():
            yield _encoder.encode(placed)

    def save(self, packs: Iterable[str]) -> None:
        """Save the cache without fsync: losing it only costs time."""
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
            # A full or read-only disk must not fail a finished commit.
            if os.path.exists(temporary):
                os.unlink(temporary)
            return
        self.changed = False
