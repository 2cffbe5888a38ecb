"""Find and count a plain text in a block, with SIMD instructions if stringzilla is installed.

Python's own methods give the same result elsewhere, and where `RAMET_NO_SIMD=1` is in the environment of the process,
to find out whether stringzilla is at fault.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from itertools import repeat
from operator import contains

_SAMPLE = 16 * 1024
_OFTEN = 8
"""Matches in a sample from which on one call of `re` for all of them is cheaper than a search for each."""


def _lines_with_many(block: bytes, text: bytes, start: int, end: int) -> int:
    """The same where most lines hold it many times: from each match to the end of its line."""
    return len(re.compile(re.escape(text) + b"().*").findall(block, start, end))


find: Callable[..., int]
"""As `bytes.find`: the block, the text, perhaps a start and an end."""
occurrences: Callable[..., int]
"""As `bytes.count`."""

try:
    if os.environ.get("RAMET_NO_SIMD", "") not in ("", "0"):
        raise ImportError("RAMET_NO_SIMD is set")
    from stringzilla import Str, split_iter
    from stringzilla import count as _count
    from stringzilla import find as _find

    find, occurrences = _find, _count

    def lines_with(block: bytes, text: bytes, start: int, end: int) -> int:
        """How many lines hold a text, which is not empty and has no newline in it."""
        sample = block[start : min(end, start + _SAMPLE)]
        if sample.count(text) > _OFTEN + 2 * sample.count(b"\n"):
            return _lines_with_many(block, text, start, end)
        first = find(block, text, start, end)
        if first < 0:
            return 0
        # Two matches are in one line just when no newline is between them.
        behind, last = first + len(text), block.rfind(text, first, end)
        if last <= behind:
            return 1
        return 1 + sum(map(contains, split_iter(Str(block)[behind:last], text), repeat(b"\n")))

except ImportError:
    find, occurrences = bytes.find, bytes.count

    def lines_with(block: bytes, text: bytes, start: int, end: int) -> int:
        """How many lines hold a text, which is not empty and has no newline in it."""
        if block.count(text, start, min(end, start + _SAMPLE)) >= _OFTEN:
            return _lines_with_many(block, text, start, end)
        count, at = 0, block.find(text, start, end)
        while at >= 0:
            count += 1
            newline = block.find(b"\n", at, end)
            at = block.find(text, newline, end) if newline >= 0 else -1
        return count
