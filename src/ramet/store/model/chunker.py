"""Cutting files into chunks: small files whole, large ones where their content says, so an insertion moves one cut."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, Final

WHOLE: Final = 1024 * 1024
"""Files up to this size are one chunk."""
MINIMUM, AVERAGE, MAXIMUM = 64 * 1024, 256 * 1024, 1024 * 1024

_WINDOW: Final = 4 * 1024 * 1024


@cache
def _cutter() -> Any:
    """Imported when a large file is cut: most commits have none."""
    from pyfastcdc import FastCDC

    return FastCDC(avg_size=AVERAGE, min_size=MINIMUM, max_size=MAXIMUM)


def chunks(blocks: Iterable[bytes], size: int) -> Iterator[bytes | memoryview]:
    """The chunks of a content of known size; memory is bounded by the window, not by the content.

    They are views into the window: most of them are only hashed, and a copy of each would cost more than that.
    """
    if size <= WHOLE:
        yield b"".join(blocks)
        return
    pending: list[bytes] = []
    held = 0
    for block in blocks:
        pending.append(block)
        held += len(block)
        if held >= _WINDOW:
            window = b"".join(pending)
            pending = []
            found, done = cut(window)
            yield from found
            pending = [window[done:]]
            held = len(pending[0])
    yield from cut(b"".join(pending), last=True)[0]


def file_chunks(file: int) -> Iterator[memoryview]:
    """The chunks of a file that is open, large or not.

    Each window begins where a chunk does: what the one before could not tell is read again, which costs less than to
    put the bytes together.
    """
    at, last = 0, False
    while not last:
        window = os.pread(file, _WINDOW, at)
        last = len(window) < _WINDOW
        if last and not at and len(window) <= WHOLE:
            yield from [memoryview(window)] if window else []
            return
        found, done = cut(window, last=last)
        yield from found
        at += done


def cut(window: bytes, *, last: bool = False) -> tuple[list[memoryview], int]:
    """The chunks that a part of a large content begins with, and where they end.

    Where a chunk ends depends on nothing that follows. Only one that ends with the part may go on, unless it is the
    last.
    """
    view, done = memoryview(window), 0
    found: list[memoryview] = []
    for chunk in _cutter().cut_buf(window):
        end = chunk.offset + chunk.length
        if end == len(window) and not last:
            break
        found.append(view[done:end])
        done = end
    return found, done


def first_cut(data: bytes) -> int:
    """Where the first chunk of a large content that begins like this ends, if more follows."""
    return next((int(chunk.length) for chunk in _cutter().cut_buf(data)), 0)
