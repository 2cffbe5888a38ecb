"""Lines of text files: match two versions, and encode which record wrote which lines."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

MAX_COMPARISONS: Final = 4_000_000
"""Pairs of equal lines up to which two texts are compared: thousands of equal lines would take minutes."""


def split(data: bytes) -> list[bytes]:
    return data.splitlines(keepends=True)


def match(old: Sequence[bytes], new: Sequence[bytes]) -> dict[int, int] | None:
    """Map line numbers of `new` to equal lines of `old`, in order; None when the comparison would take too long."""
    top = 0
    while top < len(old) and top < len(new) and old[top] == new[top]:
        top += 1
    end = 0
    while end < min(len(old), len(new)) - top and old[-1 - end] == new[-1 - end]:
        end += 1
    before, after = old[top : len(old) - end], new[top : len(new) - end]
    counts = Counter(after)
    if sum(counts[line] for line in before) > MAX_COMPARISONS:
        return None
    same = {number: number for number in range(top)}
    same.update({len(new) - 1 - number: len(old) - 1 - number for number in range(end)})
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for block in matcher.get_matching_blocks():
        same.update({top + block.b + number: top + block.a + number for number in range(block.size)})
    return same


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
