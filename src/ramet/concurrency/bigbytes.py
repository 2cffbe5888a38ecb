"""Bytes and texts of many megabytes, worked on a piece at a time: nobody else runs while Python copies one in one go.

All of this runs in a thread (see `concurrency.offload`). Parts are joined by `bytes.join`, which lets
others run while it copies, where a slice or a sum of the same length does not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import AnyStr, Final

from ramet.concurrency.bigtext import grown
from ramet.concurrency.offload import checkpoint

PIECE: Final = 1 << 19
"""Bytes that are copied in a moment."""
SEARCHED: Final = 1 << 15
"""Bytes that a pattern goes through in a moment."""
_MANY: Final = 8192
"""Parts that are put together at a time: to look at each of them takes a while too."""


def cut(data: AnyStr, start: int, stop: int) -> AnyStr:
    """`data[start:stop]`, for a start and a stop that lie in it."""
    if stop - start <= PIECE:
        return data[start:stop]
    if stop - start == len(data):
        return data
    return together(data, list(pieces(data, start, stop)))


def pieces(data: AnyStr, start: int = 0, stop: int | None = None) -> Iterator[AnyStr]:
    """The same in pieces."""
    end = len(data) if stop is None else stop
    for at in range(start, end, PIECE):
        checkpoint()
        yield data[at : min(at + PIECE, end)]


def character_end(data: bytes, at: int) -> int:
    """Where text may be cut at or behind this place: not within a character of UTF-8."""
    stop = min(at, len(data))
    for _ in range(3):
        if stop < len(data) and data[stop] & 0xC0 == 0x80:
            stop += 1
    return stop


def has(data: AnyStr, part: AnyStr) -> bool:
    """`part in data`."""
    if len(data) <= PIECE:
        return part in data
    for at in range(0, len(data), PIECE):
        checkpoint()
        if data.find(part, at, at + PIECE + len(part) - 1) >= 0:
            return True
    return False


def run_end(run: re.Pattern[AnyStr], data: AnyStr, at: int) -> int:
    """Where a run of some characters ends that begins here; the pattern is of any number of one of them."""
    while at < len(data):
        checkpoint()
        found = run.match(data, at, at + SEARCHED)
        assert found is not None
        if found.end() < min(at + SEARCHED, len(data)):
            return found.end()
        at = found.end()
    return at


def changed(data: AnyStr, change: Callable[[AnyStr], AnyStr]) -> AnyStr:
    """What `change` makes of a text, for which it does not matter where this is cut."""
    return change(data) if len(data) <= PIECE else together(data, [change(piece) for piece in pieces(data)])


def together(data: AnyStr, parts: list[AnyStr]) -> AnyStr:
    """One of several parts, of the same kind as `data`."""
    return grown(parts) if isinstance(data, str) else data[:0].join(parts)


def replaced(data: AnyStr, old: AnyStr, new: AnyStr) -> AnyStr:
    """`data.replace(old, new)` for an `old` that is not empty."""
    return data.replace(old, new) if len(data) <= PIECE else replaced_counted(data, old, new)[0]


def replaced_counted(data: AnyStr, old: AnyStr, new: AnyStr) -> tuple[AnyStr, int]:
    """The same, and how often it was replaced."""
    made: list[AnyStr] = []
    at, size, count = 0, len(data), 0
    while at < size:
        checkpoint()
        stop = min(at + PIECE + len(old), size)
        *whole, rest = data[at:stop].split(old)
        count += len(whole)
        # What may be the beginning of a match that ends behind this piece is looked at again.
        again = 0 if stop == size else min(len(rest), len(old) - 1)
        made.append(new.join([*whole, rest[: len(rest) - again]]))
        at = stop - again
    return together(data, made) if count else data, count


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


_BLANK: Final = re.compile(r"[ \t\n]")
_WHITE: Final = re.compile(rb"\s")


def words(text: str) -> list[str]:
    """`text.split()` for one that has no other white space than blanks, tabs and newlines."""
    return text.split() if len(text) <= PIECE else list(chain.from_iterable(_word_runs(text, " \t\n", _BLANK)))


def word_runs(data: bytes) -> Iterator[list[bytes]]:
    """`data.split()` in several lists."""
    return _word_runs(data, b" \t\n\r\v\f", _WHITE)


def _word_runs(text: AnyStr, blanks: AnyStr, blank: re.Pattern[AnyStr]) -> Iterator[list[AnyStr]]:
    at = 0
    while len(text) - at > PIECE:
        checkpoint()
        stop = max(text.rfind(blanks[place : place + 1], at, at + PIECE) for place in range(len(blanks)))
        if stop >= 0:
            yield text[at:stop].split()
        else:  # a word that is longer than that
            stop = at + PIECE
            while (found := blank.search(text, stop, stop + PIECE)) is None and stop < len(text):
                checkpoint()
                stop += PIECE
            stop = min(stop, len(text)) if found is None else found.start()
            yield [cut(text, at, stop)]
        at = stop + 1
    yield text[at:].split()
