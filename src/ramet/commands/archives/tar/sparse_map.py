"""Sparse files in tar archives: the map of their data in GNU's four formats."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from ramet.text import tar_header

Map = Sequence[tuple[int, int]]
"""Offset and size of each data range, in order."""
ENTRY, IN_HEADER, IN_EXTENSION = 24, 4, 21
"""Bytes of an entry in the old map, and entries per header and per extension block."""
_ZEROS = b"\0" * (1 << 18)


class BadMap(Exception):
    """The map is invalid."""


def number(field: bytes) -> int:
    """Return a number of a header: in octal, or in base 256 when the first bit is set."""
    try:
        return tar_header.number(field)
    except ValueError:
        raise BadMap from None


def entries(data: bytes, most: int) -> list[tuple[int, int]]:
    """Return the old map: entries up to the first empty one."""
    out: list[tuple[int, int]] = []
    for at in range(0, most * ENTRY, ENTRY):
        where, size = data[at : at + 12], data[at + 12 : at + 24]
        if not where.strip(b"\0") and not size.strip(b"\0"):
            break
        out.append((number(where), number(size)))
    return out


def from_pax(pairs: Sequence[tuple[str, str]]) -> list[tuple[int, int]] | None:
    """Return the map that extended headers hold: one list of numbers, or a pair of keywords for each piece."""
    values = dict(pairs)
    try:
        if "GNU.sparse.map" in values:
            numbers = [int(text) for text in values["GNU.sparse.map"].split(",") if text]
        elif "GNU.sparse.numblocks" in values:
            numbers = [int(text) for key, text in pairs if key in ("GNU.sparse.offset", "GNU.sparse.numbytes")]
        else:
            return None
    except ValueError:
        raise BadMap from None
    return list(zip(numbers[::2], numbers[1::2], strict=False))


def checked(map_: Map, size: int, stored: int) -> Map:
    end = 0
    for where, count in map_:
        if where < end or count < 0 or where + count > size:
            raise BadMap
        end = where + count
    if sum(count for _, count in map_) > stored:
        raise BadMap
    return map_


async def filled(map_: Map, size: int, data: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the whole file: what is stored at its places, and zeros in between."""
    held, at = b"", 0
    for where, count in map_:
        while at < where:
            block = _ZEROS[: where - at]
            at += len(block)
            yield block
        while count > 0:
            if not held:
                held = await anext(data)
            block, held = held[:count], held[count:]
            count -= len(block)
            at += len(block)
            yield block
    while at < size:
        block = _ZEROS[: size - at]
        at += len(block)
        yield block
