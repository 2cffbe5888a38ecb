"""Byte strings of many megabytes, worked on a piece at a time: nobody else runs while Python copies one in one go.

All of this is for a thread (see `core.abandoned`). What is put together is put together by `bytes.join`, which lets
others run while it copies, where a slice or a sum of the same length does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from ramet.core.abandoned import checkpoint

PIECE: Final = 1 << 19
"""Bytes that are copied in a moment."""
_MANY: Final = 8192
"""Parts that are put together at a time: to look at each of them takes a while too."""


def cut(data: bytes, start: int, stop: int) -> bytes:
    """`data[start:stop]`, for a start and a stop that lie in it."""
    if stop - start <= PIECE:
        return data[start:stop]
    if stop - start == len(data):
        return data
    return b"".join(list(pieces(data, start, stop)))


def pieces(data: bytes, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
    """The same in pieces."""
    end = len(data) if stop is None else stop
    for at in range(start, end, PIECE):
        checkpoint()
        yield data[at : min(at + PIECE, end)]


def changed(data: bytes, change: Callable[[bytes], bytes]) -> bytes:
    """What `change` makes of a text, for which it does not matter where this is cut."""
    return change(data) if len(data) <= PIECE else b"".join([change(piece) for piece in pieces(data)])


def joined(parts: Sequence[bytes], between: bytes = b"") -> bytes:
    """`between.join(parts)`."""
    if len(parts) <= _MANY:
        return between.join(parts)
    made: list[bytes] = []
    for at in range(0, len(parts), _MANY):
        checkpoint()
        made.append(between.join(parts[at : at + _MANY]))
    return between.join(made)


def split(data: bytes, delim: bytes) -> list[bytes]:
    """`data.split(delim)` for a single byte."""
    if len(data) <= PIECE:
        return data.split(delim)
    found: list[bytes] = []
    at, size = 0, len(data)
    while size - at > PIECE:
        checkpoint()
        last = data.rfind(delim, at, at + PIECE)
        if last >= 0:
            found += data[at:last].split(delim)
        else:
            last = data.find(delim, at + PIECE)
            if last < 0:
                break
            found.append(cut(data, at, last))
        at = last + 1
    rest = cut(data, at, size)
    return found + (rest.split(delim) if len(rest) <= PIECE else [rest])
