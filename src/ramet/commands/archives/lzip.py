"""The format of lzip (.lz): members of LZMA data between a head that tells the window and a tail with the sums."""

from __future__ import annotations

import lzma
import struct
import zlib
from typing import Any

MAGIC = b"LZIP"
_HEAD, _TAIL = 6, 20
_WINDOWS = (16, 20, 21, 21, 22, 22, 23, 24, 24, 25)
"""The size of the window of each level, as a power of two."""


def _filters(window: int, level: int | None = None) -> list[dict[str, Any]]:
    chain: dict[str, Any] = {"id": lzma.FILTER_LZMA1, "dict_size": window, "lc": 3, "lp": 0, "pb": 2}
    return [chain if level is None else {**chain, "preset": level}]


class Packer:
    """One member."""

    def __init__(self, level: int) -> None:
        window = _WINDOWS[level]
        self._inner = lzma.LZMACompressor(lzma.FORMAT_RAW, filters=_filters(1 << window, level))
        self._head = MAGIC + bytes([1, window])
        self._crc = self._taken = self._given = 0

    def compress(self, data: bytes, /) -> bytes:
        self._crc = zlib.crc32(data, self._crc)
        self._taken += len(data)
        return self._made(self._inner.compress(data))

    def flush(self) -> bytes:
        made = self._made(self._inner.flush())
        return made + struct.pack("<LQQ", self._crc, self._taken, self._given + _TAIL)

    def _made(self, data: bytes) -> bytes:
        data, self._head = self._head + data, b""
        self._given += len(data)
        return data


class Unpacker:
    """One member, with the face of the decompressors of the standard library."""

    def __init__(self) -> None:
        self._held = b""
        self._inner: lzma.LZMADecompressor | None = None
        self._crc = self._size = 0
        self.eof = False
        self.unused_data = b""

    @property
    def needs_input(self) -> bool:
        return self._inner is None or self._inner.eof or self._inner.needs_input

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        if self._inner is None:
            self._held += data
            if len(self._held) < _HEAD:
                return b""
            head, data, self._held = self._held[:_HEAD], self._held[_HEAD:], b""
            window = (1 << (head[5] & 0x1F)) - ((1 << (head[5] & 0x1F)) // 16) * (head[5] >> 5)
            if head[4] != 1 or not 1 << 12 <= window <= 1 << 29:
                raise lzma.LZMAError("Version or size of the window is not supported")
            self._inner = lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=_filters(window))
        if self._inner.eof:
            self._ended(data)
            return b""
        made = self._inner.decompress(data, max_length)
        self._crc = zlib.crc32(made, self._crc)
        self._size += len(made)
        if self._inner.eof:
            self._ended(self._inner.unused_data)
        return made

    def _ended(self, data: bytes) -> None:
        self._held += data
        if len(self._held) < _TAIL:
            return
        crc, size, _ = struct.unpack("<LQQ", self._held[:_TAIL])
        if (crc, size) != (self._crc, self._size):
            raise lzma.LZMAError("The sums do not match")
        self.eof, self.unused_data = True, self._held[_TAIL:]
