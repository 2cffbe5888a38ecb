"""Line differences as GNU diff chooses them: ends cut, confusing lines set aside, Myers in linear space, runs shifted.

Lines are numbers here: equal lines have equal numbers. The result says which lines of each file are changed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple


class Change(NamedTuple):
    """Lines [a, b) of the first file are replaced by lines [c, d) of the second."""

    a: int
    b: int
    c: int
    d: int


Breathe = Callable[[], None]


def changes(
    first: Sequence[Hashable], second: Sequence[Hashable], *, minimal: bool = False, check: Breathe | None = None
) -> list[Change]:
    """The changes that turn `first` into `second`, in order."""
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


def _mark(xs: list[int], ys: list[int], minimal: bool, check: Breathe | None) -> tuple[bytearray, bytearray]:
    """Which lines are changed; both arrays have a zero in front (index -1 works) and behind."""
    changed_x, changed_y = bytearray(len(xs) + 2), bytearray(len(ys) + 2)
    if xs and ys:
        keep_x, keep_y = _confusing(xs, ys, minimal)
        for i, kept in enumerate(keep_x):
            changed_x[i] = not kept
        for i, kept in enumerate(keep_y):
            changed_y[i] = not kept
        index_x = [i for i, kept in enumerate(keep_x) if kept]
        index_y = [i for i, kept in enumerate(keep_y) if kept]
        search = _Search([xs[i] for i in index_x], [ys[i] for i in index_y], check)
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
    """Lines worth comparing: those without a counterpart, or with far too many, only slow the search down."""
    count_x: dict[int, int] = {}
    count_y: dict[int, int] = {}
    for x in xs:
        count_x[x] = count_x.get(x, 0) + 1
    for y in ys:
        count_y[y] = count_y.get(y, 0) + 1
    if minimal:
        return [x in count_y for x in xs], [y in count_x for y in ys]
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
    """Provisional discards (2) stand only well inside a run of certain ones (1)."""
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


# ------------------------------------------------------------------------------------------------- linear space


class _Search:
    """Myers' middle snake, divide and conquer; beyond a cost it takes the best diagonal instead of the shortest."""

    def __init__(self, xs: list[int], ys: list[int], check: Breathe | None) -> None:
        self.xs, self.ys, self.check = xs, ys, check
        self.deleted: list[int] = []
        self.inserted: list[int] = []
        diagonals = len(xs) + len(ys) + 3
        self.offset = len(ys) + 1
        self.forward = [0] * (diagonals + 2)
        self.backward = [0] * (diagonals + 2)
        cost = 1
        while diagonals:
            diagonals >>= 2
            cost <<= 1
        self.expensive = max(4096, cost)

    def run(self, minimal: bool) -> None:
        pending = [(0, len(self.xs), 0, len(self.ys), minimal)]
        xs, ys = self.xs, self.ys
        while pending:
            xoff, xlim, yoff, ylim, exact = pending.pop()
            while xoff < xlim and yoff < ylim and xs[xoff] == ys[yoff]:
                xoff += 1
                yoff += 1
            while xoff < xlim and yoff < ylim and xs[xlim - 1] == ys[ylim - 1]:
                xlim -= 1
                ylim -= 1
            if xoff == xlim:
                self.inserted.extend(range(yoff, ylim))
            elif yoff == ylim:
                self.deleted.extend(range(xoff, xlim))
            else:
                x, y, low, high = self._middle(xoff, xlim, yoff, ylim, exact)
                pending.append((x, xlim, y, ylim, high))
                pending.append((xoff, x, yoff, y, low))

    def _middle(self, xoff: int, xlim: int, yoff: int, ylim: int, exact: bool) -> tuple[int, int, bool, bool]:
        xs, ys, fd, bd, off = self.xs, self.ys, self.forward, self.backward, self.offset
        dmin, dmax = xoff - ylim, xlim - yoff
        fmid, bmid = xoff - yoff, xlim - ylim
        fmin = fmax = fmid
        bmin = bmax = bmid
        odd = (fmid - bmid) & 1
        fd[fmid + off], bd[bmid + off] = xoff, xlim
        cost = 0
        top = 1 << 60
        while True:
            cost += 1
            if fmin > dmin:
                fmin -= 1
                fd[fmin - 1 + off] = -1
            else:
                fmin += 1
            if fmax < dmax:
                fmax += 1
                fd[fmax + 1 + off] = -1
            else:
                fmax -= 1
            for d in range(fmax, fmin - 1, -2):
                low, high = fd[d - 1 + off], fd[d + 1 + off]
                x = high if low < high else low + 1
                y = x - d
                while x < xlim and y < ylim and xs[x] == ys[y]:
                    x += 1
                    y += 1
                fd[d + off] = x
                if odd and bmin <= d <= bmax and bd[d + off] <= x:
                    return x, y, True, True
            if bmin > dmin:
                bmin -= 1
                bd[bmin - 1 + off] = top
            else:
                bmin += 1
            if bmax < dmax:
                bmax += 1
                bd[bmax + 1 + off] = top
            else:
                bmax -= 1
            for d in range(bmax, bmin - 1, -2):
                low, high = bd[d - 1 + off], bd[d + 1 + off]
                x = low if low < high else high - 1
                y = x - d
                while xoff < x and yoff < y and xs[x - 1] == ys[y - 1]:
                    x -= 1
                    y -= 1
                bd[d + off] = x
                if not odd and fmin <= d <= fmax and x <= fd[d + off]:
                    return x, y, True, True
            if self.check is not None and cost & 63 == 0:
                self.check()
            if not exact and cost >= self.expensive:
                return self._best(xoff, xlim, yoff, ylim, (fmin, fmax), (bmin, bmax))

    def _best(
        self, xoff: int, xlim: int, yoff: int, ylim: int, forward: tuple[int, int], backward: tuple[int, int]
    ) -> tuple[int, int, bool, bool]:
        fd, bd, off = self.forward, self.backward, self.offset
        best_sum, best_x = -1, xoff
        for d in range(forward[1], forward[0] - 1, -2):
            x = min(fd[d + off], xlim)
            y = x - d
            if ylim < y:
                x, y = ylim + d, ylim
            if best_sum < x + y:
                best_sum, best_x = x + y, x
        back_sum, back_x = 1 << 60, xlim
        for d in range(backward[1], backward[0] - 1, -2):
            x = max(xoff, bd[d + off])
            y = x - d
            if y < yoff:
                x, y = yoff + d, yoff
            if x + y < back_sum:
                back_sum, back_x = x + y, x
        if (xlim + ylim) - back_sum < best_sum - (xoff + yoff):
            return best_x, best_sum - best_x, True, False
        return back_x, back_sum - back_x, False, True


# -------------------------------------------------------------------------------------------------- boundaries


def _shift(lines: list[int], changed: bytearray, other: bytearray) -> None:
    """Slide each run of changes down as far as it goes, merging runs, but keep it beside one of the other file."""
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
