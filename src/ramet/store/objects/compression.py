"""zstd compression of blocks and log entries."""

from __future__ import annotations

from typing import Final

try:
    from compression import zstd  # type: ignore[import-not-found,unused-ignore]
except ImportError:
    from backports import zstd

LEVEL: Final = 1


class DamagedFrame(ValueError):
    """A frame that is not what was written."""


def compress(block: bytes | memoryview) -> bytes:
    return bytes(zstd.compress(block, LEVEL))


def decompress(frame: bytes, most: int | None = None) -> bytes:
    """The block of one frame, or its first `most` bytes."""
    reader = zstd.ZstdDecompressor()
    try:
        block: bytes = reader.decompress(frame, -1 if most is None else most)
    except zstd.ZstdError:
        raise DamagedFrame("not a frame") from None
    if most is None and (not reader.eof or reader.unused_data):
        raise DamagedFrame("not one whole frame")
    return block


def split_frame(data: bytes) -> tuple[bytes, int] | None:
    """The block of the frame that some bytes begin with, and its length; None when they begin with no whole frame."""
    reader = zstd.ZstdDecompressor()
    try:
        block = reader.decompress(data)
    except zstd.ZstdError:
        return None
    return (bytes(block), len(data) - len(reader.unused_data)) if reader.eof else None
