"""FastCDC in plain Python: the reference of the chunker's cuts.

The format fixes where files are cut. This module says so without a compiled package, and cuts where that is missing;
`chunker.py` uses the compiled one, which is a hundred times as fast.

A cut is where the rolling hash of the bytes since the smallest allowed length has zeros under a mask: a mask of more
bits up to the average length, one of fewer after it, so that lengths gather around the average.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Final

MINIMUM, AVERAGE, MAXIMUM = 64 * 1024, 256 * 1024, 1024 * 1024
MASK_BELOW_AVERAGE: Final = 0x0000_D917_0753_7000
MASK_ABOVE_AVERAGE: Final = 0x0000_D907_0353_7000
GEAR: Final = [
    int.from_bytes(hashlib.md5(bytes([value]) * 64, usedforsecurity=False).digest()[:8], "big") for value in range(256)
]
"""A random number for each byte: the first half of the MD5 of 64 such bytes."""
_64_BITS: Final = (1 << 64) - 1


def cut_lengths(data: bytes | memoryview) -> Iterator[int]:
    """Yield the lengths of the chunks of some bytes, in order."""
    view = memoryview(data)
    while view:
        length = _first_length(view)
        yield length
        view = view[length:]


def _first_length(view: memoryview) -> int:
    size = min(len(view), MAXIMUM)
    if size <= MINIMUM:
        return size
    gear, bits, rolling = GEAR, _64_BITS, 0
    middle = min(AVERAGE, size) // 2 * 2  # bytes are taken in pairs: an odd last one is never tested
    for begin, end, mask in ((MINIMUM, middle, MASK_BELOW_AVERAGE), (middle, size // 2 * 2, MASK_ABOVE_AVERAGE)):
        for at, byte in enumerate(view[begin:end], begin):
            rolling = (rolling << 1) + gear[byte] & bits
            if not rolling & mask:
                return at
    return size
