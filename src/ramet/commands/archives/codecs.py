"""Compression codecs as streams of blocks in both directions; damaged data raises Corrupt."""

from __future__ import annotations

import asyncio
import bz2
import lzma
import struct
import zlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Protocol

from ramet.core.streams import Reader


class Corrupt(Exception):
    """The compressed data is damaged or not of this format; the message is the tool's."""


class Compressor(Protocol):
    def compress(self, data: bytes, /) -> bytes: ...
    def flush(self) -> bytes: ...


class Decompressor(Protocol):
    """One member of a compressed stream."""

    eof: bool
    unused_data: bytes

    def decompress(self, data: bytes, max_length: int = -1) -> bytes: ...


@dataclass(frozen=True, slots=True)
class CompressionFormat:
    name: str
    suffix: str
    magic: bytes
    default: int
    levels: tuple[int, int]
    check: int = lzma.CHECK_CRC64
    """Which checksum an xz stream has; whether (not 0) a zstd frame has one."""
    single: bool = False
    """Whether only the first stream of a file counts."""


GZIP = CompressionFormat("gzip", ".gz", b"\x1f\x8b", 6, (1, 9))
BZIP2 = CompressionFormat("bzip2", ".bz2", b"BZh", 9, (1, 9))
XZ = CompressionFormat("xz", ".xz", b"\xfd7zXZ\0", 6, (0, 9))
LZMA = CompressionFormat("lzma", ".lzma", b"\x5d\0\0", 6, (0, 9))
ZSTD = CompressionFormat("zstd", ".zst", b"\x28\xb5\x2f\xfd", 3, (1, 19))
FORMATS = {f.name: f for f in (GZIP, BZIP2, XZ, LZMA, ZSTD)}


class _Gzip:
    """A gzip member: header, deflate, checksum and length."""

    def __init__(self, level: int, name: bytes, mtime: int) -> None:
        flags = 8 if name else 0
        extra = 2 if level == 9 else 4 if level == 1 else 0
        self._head = (
            b"\x1f\x8b\x08"
            + bytes([flags])
            + struct.pack("<L", mtime & 0xFFFFFFFF)
            + bytes([extra, 3])
            + (name + b"\0" if name else b"")
        )
        self._inner = zlib.compressobj(level, zlib.DEFLATED, -15)
        self._crc, self._size = 0, 0

    def compress(self, data: bytes, /) -> bytes:
        self._crc = zlib.crc32(data, self._crc)
        self._size += len(data)
        head, self._head = self._head, b""
        return head + self._inner.compress(data)

    def flush(self) -> bytes:
        head, self._head = self._head, b""
        return head + self._inner.flush() + struct.pack("<LL", self._crc, self._size & 0xFFFFFFFF)


class _Zlib:
    """zlib's decompressor with the interface of the others."""

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(31)

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    @property
    def needs_input(self) -> bool:
        return not self._inner.unconsumed_tail

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        return self._inner.decompress(self._inner.unconsumed_tail + data, max(0, max_length))


def zstd_library() -> Any:
    try:
        from compression import zstd  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        from backports import zstd  # type: ignore[no-redef,unused-ignore]
    return zstd


_LZMA_FORMATS = {"xz": lzma.FORMAT_XZ, "lzma": lzma.FORMAT_ALONE}


def compressor(
    format_: CompressionFormat, level: int, name: bytes = b"", mtime: int = 0, size: int | None = None
) -> Compressor:
    if format_ is GZIP:
        return _Gzip(level, name, mtime)
    if format_ is BZIP2:
        return bz2.BZ2Compressor(level)
    if format_.name in _LZMA_FORMATS:
        check = format_.check if format_.name == "xz" else -1
        return lzma.LZMACompressor(_LZMA_FORMATS[format_.name], check=check, preset=level)
    library = zstd_library()
    parameters = library.CompressionParameter
    options = {
        parameters.compression_level: level,
        parameters.checksum_flag: int(format_.check != 0),
    }
    made = library.ZstdCompressor(options=options)
    if size is not None:
        made.set_pledged_input_size(size)
    packer: Compressor = made
    return packer


def _decompressor(format_: CompressionFormat) -> Any:
    if format_ is GZIP:
        return _Zlib()
    if format_ is BZIP2:
        return bz2.BZ2Decompressor()
    if format_.name in ("xz", "lzma"):
        return lzma.LZMADecompressor()
    return zstd_library().ZstdDecompressor()


CHUNK = 1 << 18
STEP = 1 << 20
"""Most bytes of one decompression step."""


async def compressed(
    source: AsyncIterator[bytes],
    format_: CompressionFormat,
    level: int,
    name: bytes = b"",
    mtime: int = 0,
    size: int | None = None,
) -> AsyncIterator[bytes]:
    """Yield compressed blocks; `size` is the total input size if known."""
    packer = compressor(format_, level, name, mtime, size)
    if format_ is GZIP:
        async for block in source:
            if made := packer.compress(block):
                yield made
        yield packer.flush()
        return
    # Slow compressors release the GIL.
    async for block in source:
        if made := await asyncio.to_thread(packer.compress, block):
            yield made
    yield await asyncio.to_thread(packer.flush)


async def decompressed(reader: Reader, format_: CompressionFormat, first: bytes = b"") -> AsyncIterator[bytes]:
    """Yield decompressed blocks of one or more members. Raises Corrupt."""
    errors: tuple[type[BaseException], ...] = (zlib.error, OSError, EOFError, lzma.LZMAError, ValueError)
    if format_.name == "zstd":
        errors = (*errors, zstd_library().ZstdError)
    data = first or await reader.read(CHUNK)
    if not data:
        raise Corrupt("unexpected end of file")
    unpacker = _decompressor(format_)
    if format_ is GZIP and len(data) < 2:
        raise Corrupt("unexpected end of file")
    if not data.startswith(format_.magic[: len(data)]) and format_.name != "lzma":
        raise Corrupt("not in format")
    fresh = True
    while True:
        try:
            made = unpacker.decompress(data, STEP)
        except errors as error:
            if fresh and format_ is GZIP:
                raise Corrupt("trailing garbage") from error
            raise Corrupt(_words(format_, error)) from error
        fresh = False
        if made:
            yield made
        if unpacker.eof:
            if format_.single:
                return
            rest = unpacker.unused_data or await reader.read(CHUNK)
            rest = rest.lstrip(b"\0") if format_.name != "zstd" else rest
            if not rest:
                return
            if not rest.startswith(format_.magic[: len(rest)]):
                raise Corrupt("trailing garbage")
            unpacker, data, fresh = _decompressor(format_), rest, True
            continue
        if unpacker.needs_input:
            data = await reader.read(CHUNK)
            if not data:
                raise Corrupt("unexpected end of file")
        else:
            data = b""


def _words(format_: CompressionFormat, error: BaseException) -> str:
    text = str(error)
    if format_ is GZIP:
        if "incorrect data check" in text:
            return "invalid compressed data--crc error"
        if "incorrect length" in text:
            return "invalid compressed data--length error"
        return "invalid compressed data--format violated"
    if format_.name == "zstd" and "ictionary" in text:
        return "Dictionary mismatch"
    return "data integrity error" if format_ is BZIP2 else "Compressed data is corrupt"


def sniff(head: bytes) -> CompressionFormat | None:
    """Return the format of data by its magic bytes."""
    return next((f for f in FORMATS.values() if head.startswith(f.magic)), None)
