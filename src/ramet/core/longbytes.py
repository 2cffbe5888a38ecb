"""Bytes and texts of many megabytes, worked on a piece at a time: nobody else runs while Python copies one in one go.

All of this is for a thread (see `core.abandoned`). What is put together is put together by `bytes.join`, which lets
others run while it copies, where a slice or a sum of the same length does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import AnyStr, Final

from ramet.core.abandoned import checkpoint

PIECE: Final = 1 << 19
"""Bytes that are copied in a moment."""
_MANY: Final = 8192
"""Parts that are put together at a time: to look at each of them takes a while too."""


def cut(data: AnyStr, start: int, stop: int) -> AnyStr:
    """`data[start:stop]`, for a start and a stop that lie in it."""
    if stop - start <= PIECE:
        return data[start:stop]
    if stop - start == len(data):
        return data
    return data[:0].join(list(pieces(data, start, stop)))


def pieces(data: AnyStr, start: int = 0, stop: int | None = None) -> Iterator[AnyStr]:
    """The same in pieces."""
    end = len(data) if stop is None else stop
    for at in range(start, end, PIECE):
        checkpoint()
        yield data[at : min(at + PIECE, end)]


def changed(data: AnyStr, change: Callable[[AnyStr], AnyStr]) -> AnyStr:
    """What `change` makes of a text, for which it does not matter where this is cut."""
    return change(data) if len(data) <= PIECE else data[:0].join([change(piece) for piece in pieces(data)])


def replaced(data: AnyStr, old: AnyStr, new: AnyStr) -> AnyStr:
    """`data.replace(old, new)` for an `old` that is not empty."""
    if len(data) <= PIECE:
        return data.replace(old, new)
    made: list[AnyStr] = []
    at, size = 0, len(data)
    while at < size:
        checkpoint()
        stop = min(at + PIECE + len(old), size)
        *whole, rest = data[at:stop].split(old)
        # What may be the beginning of a match that ends behind this piece is looked at again.
        again = 0 if stop == size else min(len(rest), len(old) - 1)
        made.append(new.join([*whole, rest[: len(rest) - again]]))
        at = stop - again
    return data[:0].join(made)


def joined(parts: Sequence[AnyStr], between: AnyStr) -> AnyStr:
    """`between.join(parts)`."""
    if len(parts) <= _MANY:
        return between.join(parts)
    made: list[AnyStr] = []
    for at in range(0, len(parts), _MANY):
        checkpoint()
        made.append(between.join(parts[at : at + _MANY]))
    return between.join(made)


def split(data: AnyStr, delim: AnyStr) -> list[AnyStr]:
    """`data.split(delim)` for a single character."""
    return data.split(delim) if len(data) <= PIECE else list(chain.from_iterable(runs(data, delim)))


def runs(data: AnyStr, delim: AnyStr) -> Iterator[list[AnyStr]]:
    """The same in several lists: to let go of one of millions would take a while."""
    at, size = 0, len(data)
    while size - at > PIECE:
        checkpoint()
        last = data.rfind(delim, at, at + PIECE)
        if last >= 0:
            yield data[at:last].split(delim)
        else:
            last = data.find(delim, at + PIECE)
            if last < 0:
                break
            yield [cut(data, at, last)]
        at = last + 1
    rest = cut(data, at, size)
    yield rest.split(delim) if len(rest) <= PIECE else [rest]
