"""Local cache of pack frames and indexes of a store. Bounded, and optional.

Every file starts with the digest of its content: a damaged or partial file is a miss. When the cache exceeds its bound,
the least recently used files are deleted.
"""

from __future__ import annotations

import os
import threading
from typing import Final

import msgspec
from blake3 import blake3

from ramet.concurrency.fork import renew_after_fork

CACHE_BYTES: Final = 4 * 1024 * 1024 * 1024
_DIGEST: Final = 32


_MAGIC: Final = b"RAMETCA1"
_catalog: Final = msgspec.msgpack.Decoder(dict[str, bytes])
_joins: Final = msgspec.msgpack.Decoder(list[tuple[list[str], list[str]]])
REMEMBERED_CONSOLIDATIONS: Final = 64
"""Consolidations that are remembered."""


def encode_indexes(indexes: dict[str, bytes]) -> bytes:
    """Encode the indexes of many packs with a digest."""
    body = msgspec.msgpack.encode(indexes)
    return _MAGIC + blake3(body).digest() + body


def decode_indexes(data: bytes) -> dict[str, bytes]:
    """Decode indexes by pack name; empty when the bytes are damaged."""
    start = len(_MAGIC) + _DIGEST
    body = data[start:]
    if data[: len(_MAGIC)] != _MAGIC or data[len(_MAGIC) : start] != blake3(body).digest():
        return {}
    try:
        return _catalog.decode(body)
    except msgspec.DecodeError:
        return {}


class IndexCache:
    """The indexes of all packs in one file, so that opening a store reads one file."""

    def __init__(self, folder: str) -> None:
        self._path = f"{folder}/indexes"

    def load(self) -> dict[str, bytes]:
        try:
            with open(self._path, "rb") as file:
                return decode_indexes(file.read())
        except OSError:
            return {}

    def save(self, indexes: dict[str, bytes]) -> None:
        temporary = f"{self._path}.tmp-{os.urandom(4).hex()}"
        try:
            os.makedirs(os.path.dirname(self._path), exist_ok=True)
            with open(temporary, "wb") as file:
                file.write(encode_indexes(indexes))
            os.replace(temporary, self._path)
        except OSError:
            return


class ConsolidationLog:
    """Records which packs replaced which, for caches that name packs."""

    def __init__(self, folder: str) -> None:
        self._path = f"{folder}/joined"

    def _rows(self) -> list[tuple[list[str], list[str]]]:
        try:
            with open(self._path, "rb") as file:
                return _joins.decode(file.read())
        except (OSError, msgspec.DecodeError):
            return []

    def add(self, gone: list[str], into: list[str]) -> None:
        rows = [*self._rows(), (gone, into)][-REMEMBERED_CONSOLIDATIONS:]
        temporary = f"{self._path}.tmp-{os.urandom(4).hex()}"
        try:
            os.makedirs(os.path.dirname(self._path), exist_ok=True)
            with open(temporary, "wb") as file:
                file.write(msgspec.msgpack.encode(rows))
            os.replace(temporary, self._path)
        except OSError:
            return  # the cache is rebuilt then

    def names_before_consolidation(self, names: set[str]) -> set[str]:
        """Add the packs that were consolidated into these names."""
        found = set(names)
        for gone, into in reversed(self._rows()):
            if found.issuperset(into):
                found.update(gone)
        return found


class FrameCache:
    """Frames of packs as small files in one directory."""

    def __init__(self, folder: str, bound: int = CACHE_BYTES) -> None:
        self._folder, self._bound = f"{folder}/packs", bound
        self._size: int | None = None
        self._lock = threading.Lock()
        renew_after_fork(self, _lock=threading.Lock)

    def _path(self, name: str) -> str:
        return f"{self._folder}/{name[:2]}/{name}"

    def get(self, name: str) -> bytes | None:
        path = self._path(name)
        try:
            with open(path, "rb") as file:
                data = file.read()
        except OSError:
            return None
        body = data[_DIGEST:]
        if blake3(body).digest() != data[:_DIGEST]:
            self.drop(name)
            return None
        try:
            os.utime(path)
        except OSError:
            return body  # another process evicted it, or the disk is read-only; the content is valid
        return body

    def has(self, name: str) -> bool:
        """Return whether a file of this name exists, valid or not."""
        return os.path.exists(self._path(name))

    def put(self, name: str, data: bytes) -> None:
        """Cache the data; a failed write is ignored."""
        path = self._path(name)
        temporary = f"{path}.tmp-{os.urandom(4).hex()}"
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(temporary, "wb") as file:
                file.writelines((blake3(data).digest(), data))
            os.replace(temporary, path)
        except OSError:
            return
        with self._lock:
            if self._size is None:
                self._size = sum(size for _, size, _ in self._files())
            else:
                self._size += len(data) + _DIGEST
            if self._size > self._bound:
                self._make_room()

    def drop(self, name: str) -> None:
        try:
            os.unlink(self._path(name))
        except OSError:
            return

    def _files(self) -> list[tuple[float, int, str]]:
        found: list[tuple[float, int, str]] = []
        for top, _, names in os.walk(self._folder):
            for name in names:
                path = f"{top}/{name}"
                try:
                    info = os.stat(path)
                except OSError:
                    continue
                found.append((info.st_mtime, info.st_size, path))
        return found

    def _make_room(self) -> None:
        files = sorted(self._files())
        size = sum(entry[1] for entry in files)
        for _, length, path in files:
            if size <= self._bound * 3 // 4:
                break
            try:
                os.unlink(path)
            except OSError:
                continue
            size -= length
        self._size = size
