"""Line numbers of a syntax tree, kept separately: its printed text alone cannot restore them.

Lines come in the order in which the tree is walked, so they fit every tree that is equal to the one they are from.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any


def lines_of(tree: object) -> list[int]:
    """The lines of all parts that have one, as numbers and how often each comes in a row: `[3, 2, 4, 1]`."""
    return [item for line, row in groupby(part.line for part in _placed(tree)) for item in (line, sum(1 for _ in row))]


def put_lines(tree: object, lines: list[int]) -> bool:
    """Set the lines of an unshared tree; return False, and change nothing, if they do not fit."""
    parts = list(_placed(tree))
    counts = lines[1::2]
    if len(lines) % 2 or sum(counts) != len(parts) or any(count < 1 for count in counts):
        return False
    row = iter(parts)
    for line, count in zip(lines[::2], counts, strict=True):
        for _ in range(count):
            next(row).line = line
    return True


def _placed(tree: object) -> Iterator[Any]:
    """The parts of a tree that have a line, without recursion: trees may be deep."""
    waiting = [tree]
    while waiting:
        one: Any = waiting.pop()
        if isinstance(one, tuple):
            waiting.extend(reversed(one))
        elif hasattr(type(one), "_key"):
            if "line" in one._fields:
                yield one
            waiting.extend(reversed([getattr(one, name) for name in one._fields]))
