"""zstd compression of blocks and log entries."""

from __future__ import annotations

from typing import Final

try:
    from compression import zstd  # type: ignore[import-not-found,unused-ignore]
except ImportError:
    from backports import zstd

LEVEL: Final = 1
OBJECT_BYTES: Final = 256 * 1024 * 1024
"""Bytes of the largest object that a store takes, and of the largest block that a frame may expand to."""
SHARED_BLOCK_BYTES: Final = 1024 * 1024
"""Bytes of the largest block that holds several objects; a larger block is one object."""


class DamagedFrame(ValueError):
    """A frame that is not what was written."""


def compress(block: bytes | memoryview) -> bytes:
    return bytes(zstd.compress(block, LEVEL))


def decompress(frame: bytes, most: int | None = None, bound: int = OBJECT_BYTES) -> bytes:
    """The block of one frame, or its first `most` bytes. A block of more than `bound` bytes is damage."""
    reader = zstd.ZstdDecompressor()
    try:
        block: bytes = reader.decompress(frame, bound + 1 if most is None else most)
    except zstd.ZstdError:
        raise DamagedFrame("not a frame") from None
    if most is None:
        if len(block) > bound:
            raise DamagedFrame(f"it expands to more than {bound} bytes")
        if not reader.eof or reader.unused_data:
            raise DamagedFrame("not one whole frame")
    return block


def split_frame(data: bytes) -> tuple[bytes, int] | None:
    """The block of the frame that some bytes begin with, and its length; None when they begin with no whole frame."""
    reader = zstd.ZstdDecompressor()
    try:
        block = reader.decompress(data, OBJECT_BYTES + 1)
    except zstd.ZstdError:
        return None
    return (bytes(block), len(data) - len(reader.unused_data)) if reader.eof else None
