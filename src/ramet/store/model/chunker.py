"""Chunker: cut large files at content-defined boundaries (FastCDC); small files are one chunk.

An insertion into a large file changes the chunks around it and no others.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Final

from ramet.store.model import fastcdc
from ramet.store.model.fastcdc import AVERAGE, MAXIMUM, MINIMUM

WHOLE: Final = 1024 * 1024
"""Files up to this size are one chunk."""
_WINDOW: Final = 4 * 1024 * 1024


@cache
def _cutter() -> Callable[[bytes], Iterator[int]]:
    """Return what cuts bytes into lengths. Imported on first use: most commits cut nothing.

    Where the compiled package is missing, the reference cuts at the same places, slowly.
    """
    try:
        from pyfastcdc.cy import FastCDC
    except ImportError:
        return fastcdc.cut_lengths
    compiled = FastCDC(avg_size=AVERAGE, min_size=MINIMUM, max_size=MAXIMUM)
    return lambda data: (chunk.length for chunk in compiled.cut_buf(data))


def chunks(blocks: Iterable[bytes], size: int) -> Iterator[bytes | memoryview]:
    """Yield the chunks of content of a known size, in memory bounded by the window.

    The chunks are views into the window: most are only hashed, and copying each would cost more than that.
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
    """Yield the chunks of an open file of any size.

    Each window begins where a chunk begins: reading the undecided tail of the last window again costs less than joining
    bytes.
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
    """Cut a window of large content; return its chunks and the offset where they end.

    A chunk boundary does not depend on the bytes that follow. A chunk that ends with the window may continue, unless
    the window is the `last`.
    """
    view, done = memoryview(window), 0
    found: list[memoryview] = []
    for length in _cutter()(window):
        end = done + length
        if end == len(window) and not last:
            break
        found.append(view[done:end])
        done = end
    return found, done


def first_cut(data: bytes) -> int:
    """Return the length of the first chunk of large content that begins with these bytes."""
    return next(_cutter()(data), 0)
