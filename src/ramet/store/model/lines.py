"""Lines of text files: match two versions, and encode which record wrote which lines."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

MAX_COMPARISONS: Final = 4_000_000
"""Pairs of equal lines up to which two texts are compared: thousands of equal lines would take minutes."""


def split(data: bytes) -> list[bytes]:
    return data.splitlines(keepends=True)


class Matched(NamedTuple):
    """Which lines of a text are lines of an older one: those above a gap, those below it, and some inside."""

    top: int
    """Number of equal lines above the gap."""
    bottom: int
    """The first line below the gap."""
    shift: int
    """What a line below the gap is further down than in the older text."""
    inside: dict[int, int]

    def old(self, number: int) -> int | None:
        """Return the line of the older text; None for a new line."""
        if number < self.top:
            return number
        return number - self.shift if number >= self.bottom else self.inside.get(number)

    def pairs(self, count: int) -> dict[int, int]:
        """Return all matches of a text of so many lines."""
        return {number: there for number in range(count) if (there := self.old(number)) is not None}


def match(old: Sequence[bytes], new: Sequence[bytes]) -> Matched | None:
    """Match equal lines, in order; None when the comparison would take too long."""
    top = _equal(old, new)
    room = min(len(old), len(new)) - top
    end = _equal(old[len(old) - room :][::-1], new[len(new) - room :][::-1])
    before, after = old[top : len(old) - end], new[top : len(new) - end]
    inside: dict[int, int] = {}
    if before and after:
        counts = Counter(after)
        pairs = sum(counts[line] for line in before)
        if pairs > MAX_COMPARISONS:
            return None
        blocks = difflib.SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks() if pairs else ()
        for block in blocks:
            inside.update({top + block.b + number: top + block.a + number for number in range(block.size)})
    return Matched(top, len(new) - end, len(new) - len(old), inside)


def _equal(one: Sequence[bytes], other: Sequence[bytes]) -> int:
    """Count the equal lines at the beginning. Halving compares lines in bulk."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def embed(old: Sequence[bytes], new: Sequence[bytes]) -> dict[int, int]:
    """Map the lines of `new`, which is `old` without some lines, to the first equal lines of `old` in order."""
    same: dict[int, int] = {}
    at = 0
    for number, line in enumerate(new):
        while at < len(old) and old[at] != line:
            at += 1
        if at == len(old):
            break
        same[number] = at
        at += 1
    return same


def ranges(numbers: Iterable[int | None]) -> list[list[int]]:
    """Encode the writer of each line as `[first line, count, record]`; lines from before (None) are left out."""
    found: list[list[int]] = []
    for at, number in enumerate(numbers):
        if number is None:
            continue
        if found and found[-1][0] + found[-1][1] == at and found[-1][2] == number:
            found[-1][1] += 1
        else:
            found.append([at, 1, number])
    return found


def origin(moves: Sequence[Sequence[str]], path: str) -> str | None:
    """Return where a path was before these renames of directories; None if something else was there."""
    for src, dst in reversed(moves):
        if path == dst or path.startswith(dst + "/"):
            path = src + path[len(dst) :]
        elif path == src or path.startswith(src + "/"):
            return None
    return path
