"""BSD and System V checksums of `sum`, computed for groups of bytes."""

from __future__ import annotations

import functools
import zlib
from array import array

_FULL = 1 << 16
_GROUP = 8


def sysv_total(block: bytes) -> int:
    """Return the sum of all bytes: the low half of Adler-32, exact for this few bytes."""
    view, adler = memoryview(block), zlib.adler32
    return sum([adler(view[at : at + 256], 0) & 0xFFFF for at in range(0, len(block), 256)])


def bsd_total(total: int, block: bytes) -> int:
    """The running checksum behind more bytes: each rotates it to the right and is added, a carry is dropped.

    Seen as a ring of bits, the sum stands still and each byte is added one place further left than the last, its carry
    running on around the ring up to the byte's own place. So eight bytes are one addition of their weighted sum, whose
    carry out of the top comes in again at the bottom. That is wrong only where the carry of some byte ran the whole
    way around and was dropped; for that, all bits below the byte's place must be set and the sum so near to the top
    that the bytes up to there can make it overflow. Such groups, one in thirty, are added byte by byte.
    """
    after, limits = _tables()
    groups = len(block) // _GROUP
    ring = total >> 1 | (total & 1) << 15
    for at, weighted in enumerate(_weighted(block, groups)):
        added = ring + weighted
        if added < _FULL or ring < limits[added & 0xFF]:
            ring = after[added]
            continue
        for byte in block[_GROUP * at : _GROUP * (at + 1)]:
            ring = (ring + byte) & 0xFFFF
            ring = ring >> 1 | (ring & 1) << 15
    total = (ring << 1 | ring >> 15) & 0xFFFF
    for byte in block[_GROUP * groups :]:
        total = ((total >> 1 | (total & 1) << 15) + byte) & 0xFFFF
    return total


def _weighted(block: bytes, groups: int) -> array[int]:
    """For each group its bytes, each at twice the weight of the one before, added up: one addition for all groups."""
    lanes, summed = bytearray(2 * groups), 0
    for place in range(_GROUP):
        lanes[::2] = block[place : _GROUP * groups : _GROUP]
        summed += int.from_bytes(lanes, "little") << place
    words = array("H")
    words.frombytes(summed.to_bytes(2 * groups, "little"))
    return words


@functools.lru_cache(maxsize=1)
def _tables() -> tuple[array[int], list[int]]:
    """By what a group made of the sum, the sum turned on by eight places; and where that had a carry, by its low bits,
    below which sum before it is right."""
    ring = array("H", range(_FULL))
    ring.byteswap()
    limits = [_FULL - 255] * 256
    for ones in range(1, _GROUP + 1):
        # This many low bits are set: a carry of one of the first bytes was dropped.
        most = 255 * ((2 << ones) - 1)
        limits[(1 << ones) - 1 :: 1 << ones] = [max(0, _FULL - most)] * (256 >> ones)
    return ring + ring[1:], limits
