"""Line differences as GNU diff chooses them.

- Common ends are cut, confusing lines are discarded, Myers runs in linear space, runs of changes are shifted.
- Equal lines have equal numbers; the result marks the changed lines of each file.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

from ramet.commands.diff.myers import Check, MyersSearch


class Change(NamedTuple):
    """Lines [a, b) of the first file are replaced by lines [c, d) of the second."""

    a: int
    b: int
    c: int
    d: int


def changes(
    first: Sequence[Hashable], second: Sequence[Hashable], *, minimal: bool = False, check: Check | None = None
) -> list[Change]:
    """Return the changes that turn `first` into `second`, in order."""
    start = 0
    limit = min(len(first), len(second))
    while start < limit and first[start] == second[start]:
        start += 1
    end = 0
    while end < limit - start and first[len(first) - 1 - end] == second[len(second) - 1 - end]:
        end += 1
    numbers: dict[Hashable, int] = {}
    xs = [numbers.setdefault(line, len(numbers)) for line in first[start : len(first) - end]]
    ys = [numbers.setdefault(line, len(numbers)) for line in second[start : len(second) - end]]
    changed_x, changed_y = _mark(xs, ys, minimal, check)
    return _script(changed_x, changed_y, start)


def _mark(xs: list[int], ys: list[int], minimal: bool, check: Check | None) -> tuple[bytearray, bytearray]:
    """Mark the changed lines; both arrays end in zeros, so index -1 works."""
    changed_x, changed_y = bytearray(len(xs) + 2), bytearray(len(ys) + 2)
    if xs and ys:
        keep_x, keep_y = _confusing(xs, ys, minimal)
        for i, kept in enumerate(keep_x):
            changed_x[i] = not kept
        for i, kept in enumerate(keep_y):
            changed_y[i] = not kept
        index_x = [i for i, kept in enumerate(keep_x) if kept]
        index_y = [i for i, kept in enumerate(keep_y) if kept]
        search = MyersSearch([xs[i] for i in index_x], [ys[i] for i in index_y], check)
        search.run(minimal)
        for i in search.deleted:
            changed_x[index_x[i]] = 1
        for i in search.inserted:
            changed_y[index_y[i]] = 1
    else:
        for i in range(len(xs)):
            changed_x[i] = 1
        for i in range(len(ys)):
            changed_y[i] = 1
    _shift(xs, changed_x, changed_y)
    _shift(ys, changed_y, changed_x)
    return changed_x, changed_y


def _script(changed_x: bytearray, changed_y: bytearray, start: int) -> list[Change]:
    out: list[Change] = []
    i = j = 0
    end_x, end_y = len(changed_x) - 2, len(changed_y) - 2
    while i < end_x or j < end_y:
        if changed_x[i] or changed_y[j]:
            a, c = i, j
            while changed_x[i]:
                i += 1
            while changed_y[j]:
                j += 1
            out.append(Change(a + start, i + start, c + start, j + start))
        i += 1
        j += 1
    return out


# ------------------------------------------------------------------------------------------------ confusing lines


def _confusing(xs: list[int], ys: list[int], minimal: bool) -> tuple[list[bool], list[bool]]:
    """Select the lines to compare: lines without a match, or with very frequent ones, only slow the search."""
    if minimal:  # GNU keeps all lines here: dropping some could change which shortest script is found
        return [True] * len(xs), [True] * len(ys)
    count_x: dict[int, int] = {}
    count_y: dict[int, int] = {}
    for x in xs:
        count_x[x] = count_x.get(x, 0) + 1
    for y in ys:
        count_y[y] = count_y.get(y, 0) + 1
    return _keep(xs, count_y), _keep(ys, count_x)


def _keep(lines: list[int], others: dict[int, int]) -> list[bool]:
    end = len(lines)
    many = 5
    size = end // 64
    while (size := size >> 2) > 0:
        many *= 2
    marks = bytearray(end)
    for i, line in enumerate(lines):
        matches = others.get(line, 0)
        if matches == 0:
            marks[i] = 1
        elif matches > many:
            marks[i] = 2
    _settle(marks)
    return [not mark for mark in marks]


def _settle(marks: bytearray) -> None:
    """Keep provisional discards (2) only well inside a run of certain ones (1)."""
    end = len(marks)
    i = 0
    while i < end:
        if marks[i] == 2:
            marks[i] = 0
        elif marks[i]:
            i = _settle_run(marks, i)
        i += 1


def _settle_run(marks: bytearray, i: int) -> int:
    end = len(marks)
    j, provisional = i, 0
    while j < end and marks[j]:
        provisional += marks[j] == 2
        j += 1
    while j > i and marks[j - 1] == 2:
        j -= 1
        marks[j] = 0
        provisional -= 1
    length = j - i
    if provisional * 4 > length:
        for k in range(i, j):
            if marks[k] == 2:
                marks[k] = 0
        return i
    minimum, size = 1, length >> 2
    while (size := size >> 2) > 0:
        minimum <<= 1
    minimum += 1
    k = consecutive = 0
    while k < length:
        if marks[i + k] != 2:
            consecutive = 0
        else:
            consecutive += 1
            if consecutive == minimum:
                k -= consecutive
            elif consecutive > minimum:
                marks[i + k] = 0
        k += 1
    _trim_edge(marks, [i + k for k in range(length)])
    last = i + length - 1
    _trim_edge(marks, [last - k for k in range(length)])
    return last


def _trim_edge(marks: bytearray, order: list[int]) -> None:
    consecutive = 0
    for k, at in enumerate(order):
        if k >= 8 and marks[at] == 1:
            break
        if marks[at] == 2:
            consecutive = 0
            marks[at] = 0
        elif marks[at] == 0:
            consecutive = 0
        else:
            consecutive += 1
        if consecutive == 3:
            break


# -------------------------------------------------------------------------------------------------- boundaries


def _shift(lines: list[int], changed: bytearray, other: bytearray) -> None:
    """Slide each run of changes down as far as possible, merging runs, but keep it aligned with the other file."""
    end = len(lines)
    i = j = 0
    while True:
        while i < end and not changed[i]:
            while other[j]:
                j += 1
            j += 1
            i += 1
        if i == end:
            return
        start = i
        while changed[i]:
            i += 1
        while other[j]:
            j += 1
        while True:
            length = i - start
            while start and lines[start - 1] == lines[i - 1]:
                start -= 1
                changed[start] = 1
                i -= 1
                changed[i] = 0
                while start and changed[start - 1]:
                    start -= 1
                j -= 1
                while j >= 0 and other[j]:
                    j -= 1
            corresponding = i if j > 0 and other[j - 1] else end
            while i != end and lines[start] == lines[i]:
                changed[start] = 0
                start += 1
                changed[i] = 1
                i += 1
                while changed[i]:
                    i += 1
                j += 1
                while other[j]:
                    corresponding = i
                    j += 1
            if length == i - start:
                break
        while corresponding < i:
            start -= 1
            changed[start] = 1
            i -= 1
            changed[i] = 0
            j -= 1
            while j >= 0 and other[j]:
                j -= 1
