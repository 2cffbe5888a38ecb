"""Shortest edit search of GNU diff: the middle snake of Myers in linear space.

A front is the farthest point that a number of edits reaches on each diagonal x - y. Stepping fronts from cost to cost
takes the square of the cost. Where pairs of equal lines are few, their longest chains (Hunt and Szymanski) give the
fronts of any cost directly: behind a chain of k pairs, a front of cost c is at x + y = start + 2k + c.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from itertools import accumulate
from math import isqrt

Check = Callable[[], None]
Box = tuple[int, int, int, int]
"""Lines [x, x end) of the first file and [y, y end) of the second."""
Split = tuple[int, int, bool, bool, int]
"""Division of a box, whether its parts are searched for the minimum, and the cost."""
Pair = tuple[int, int, int]
"""Two equal lines: length of the longest chain that ends there, cost to reach it, diagonal."""

_EXPENSIVE = 4096
"""Cost from which on GNU takes the best diagonal instead of the shortest path; higher in huge files."""
_PATIENCE = 20_000_000
"""Steps after which a comparison, some seconds in, accepts a longer script."""
_CONTENT = 256
"""Cost limit after that; the script is longer than GNU's."""
_LEAST = 64
"""Cost up to which stepping is the fastest."""
_SAMPLE = 16
"""One in this number of lines is sampled for equal lines."""
_FAR = 1 << 60


class MyersSearch:
    """Finds which lines of two files, as numbers, are deleted and inserted."""

    def __init__(self, xs: list[int], ys: list[int], check: Check | None) -> None:
        self.xs, self.ys = xs, ys
        self.check: Check = check or (lambda: None)
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
        self.expensive = max(_EXPENSIVE, cost)
        self.patience = _PATIENCE
        self.places: list[int] = []
        """Positions of lines in the second file, grouped by equal lines; built on demand."""
        self.begin: list[int] = []
        """Start of each group of positions."""
        self.counts: list[int] = []
        """Cumulative number of pairs by line of the first file."""

    def run(self, minimal: bool) -> None:
        pending: list[tuple[Box, bool, int]] = [((0, len(self.xs), 0, len(self.ys)), minimal, 0)]
        xs, ys = self.xs, self.ys
        while pending:
            (xoff, xlim, yoff, ylim), exact, expected = pending.pop()
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
                # Both halves of a shortest path cost half of it; the next part may be as expensive.
                x, y, low, high, cost = self._middle((xoff, xlim, yoff, ylim), exact, expected // 2)
                pending.append(((x, xlim, y, ylim), high, cost))
                pending.append(((xoff, x, yoff, y), low, cost))

    def _middle(self, box: Box, exact: bool, expected: int) -> Split:
        xs, ys, fd, bd, off = self.xs, self.ys, self.forward, self.backward, self.offset
        xoff, xlim, yoff, ylim = box
        dmin, dmax = xoff - ylim, xlim - yoff
        fmid, bmid = xoff - yoff, xlim - ylim
        fmin = fmax = fmid
        bmin = bmax = bmid
        odd = (fmid - bmid) & 1
        fd[fmid + off], bd[bmid + off] = xoff, xlim
        expensive = _FAR if exact else self.expensive if self.patience > 0 else _CONTENT
        switch = max(_LEAST, 2 * isqrt(min(xlim - xoff, 2 * expensive)))
        counted = False
        if expected >= switch:
            counted, switch = True, self._worth(box, expensive)
            if expected >= switch:
                return self._by_pairs(box, 0, expensive)
        cost = 0
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
                    self.patience -= cost * cost
                    return x, y, True, True, cost
            if bmin > dmin:
                bmin -= 1
                bd[bmin - 1 + off] = _FAR
            else:
                bmin += 1
            if bmax < dmax:
                bmax += 1
                bd[bmax + 1 + off] = _FAR
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
                    self.patience -= cost * cost
                    return x, y, True, True, cost
            if cost & 15 == 0:
                self.check()
            if cost >= expensive:
                self.patience -= cost * cost
                return self._best(box, cost, range(fmin, fmax + 1, 2), range(bmin, bmax + 1, 2))
            if cost == switch and not counted:
                counted, switch = True, max(cost, self._worth(box, expensive))
            if cost == switch:  # so far the steps took about as long as the pairs would
                self.patience -= cost * cost
                return self._by_pairs(box, cost, expensive)

    def _best(self, box: Box, cost: int, forward: range, backward: range) -> Split:
        """Return the farthest diagonal."""
        fd, bd, off = self.forward, self.backward, self.offset
        xoff, xlim, yoff, ylim = box
        best_sum, best_x = -1, xoff
        for d in reversed(forward):
            x = min(fd[d + off], xlim)
            y = x - d
            if ylim < y:
                x, y = ylim + d, ylim
            if best_sum < x + y:
                best_sum, best_x = x + y, x
        back_sum, back_x = _FAR, xlim
        for d in reversed(backward):
            x = max(xoff, bd[d + off])
            y = x - d
            if y < yoff:
                x, y = yoff + d, yoff
            if x + y < back_sum:
                back_sum, back_x = x + y, x
        if (xlim + ylim) - back_sum < best_sum - (xoff + yoff):
            return best_x, best_sum - best_x, True, False, cost
        return back_x, back_sum - back_x, False, True, cost

    # --------------------------------------------------------------------------------------------- from the pairs

    def _find_places(self) -> None:
        sizes = [0] * (max(max(self.xs), max(self.ys)) + 2)
        for line in self.ys:
            sizes[line + 1] += 1
        self.begin = list(accumulate(sizes))
        self.places = [0] * len(self.ys)
        at = self.begin.copy()
        for y, line in enumerate(self.ys):
            self.places[at[line]] = y
            at[line] += 1
        self.counts = list(accumulate((self.begin[x + 1] - self.begin[x] for x in self.xs), initial=0))

    def _worth(self, box: Box, limit: int) -> int:
        """Return the cost from which on visiting pairs is faster than stepping, for paths of `limit`."""
        if not self.places:
            self._find_places()
        xoff, xlim, yoff, ylim = box
        near = min(xlim - xoff, 2 * limit)
        counts, places, begin = self.counts, self.places, self.begin
        count = counts[xoff + near] - counts[xoff] + counts[xlim] - counts[xlim - near]
        if count > 8 * near:  # some may be out of reach: estimate by a sample
            count = 0
            for first, mid in ((xoff, xoff - yoff), (xlim - near, xlim - ylim)):
                for x in range(first, first + near, _SAMPLE):
                    line = self.xs[x]
                    low = bisect_left(places, max(yoff, x - mid - limit), begin[line], begin[line + 1])
                    high = bisect_left(places, min(ylim, x - mid + limit + 1), begin[line], begin[line + 1])
                    count += max(0, high - low) * _SAMPLE
        return max(_LEAST, 2 * isqrt(near + count))

    def _chains(self, box: Box, limit: int, step: int) -> tuple[list[Pair], int]:
        """Return the pairs reached at a cost of at most `limit` from the low corner, or the high one (step -1).

        Pairs of the longest chains come first, together with its length.
        """
        xoff, xlim, yoff, ylim = box
        lines = range(xoff, xlim) if step > 0 else range(xlim - 1, xoff - 1, -1)
        start, mid = (xoff + yoff, xoff - yoff) if step > 0 else (xlim + ylim - 2, xlim - ylim)
        xs, places, begin = self.xs, self.places, self.begin
        pairs: list[Pair] = []
        ends: list[int] = []  # the nearest end of a chain of each length, times step
        for distance, x in enumerate(lines):
            if distance > limit + len(ends):
                break
            if not distance & 1023:
                self.check()
            line = xs[x]
            low, high = begin[line], begin[line + 1]
            if high - low > 2:
                low = bisect_left(places, max(yoff, x - mid - limit), low, high)
                high = bisect_left(places, min(ylim, x - mid + limit + 1), low, high)
            for y in places[low:high][::-step]:
                if not yoff <= y < ylim:
                    continue
                length = bisect_left(ends, y * step)
                cost = (x + y - start) * step - 2 * length
                if cost <= limit:
                    pairs.append((length + 1, cost, x - y))
                    ends[length : length + 1] = [y * step]
        self.patience -= 2 * len(pairs)
        pairs.sort(reverse=True)
        return pairs, len(ends)

    def _by_pairs(self, box: Box, least: int, expensive: int) -> Split:
        """Find the middle of a box whose fronts do not meet up to the cost `least`."""
        xoff, xlim, yoff, ylim = box
        forward, longest = self._chains(box, expensive, 1)
        most = expensive
        if expensive == _FAR:
            most = (xlim - xoff + ylim - yoff - 2 * longest + 1) // 2
            least = most - 1
        backward, _ = self._chains(box, most, -1)
        odd = (xlim - xoff + ylim - yoff) & 1

        def meeting(cost: int) -> tuple[int, int] | None:
            """Find where the fronts of a cost meet first, in stepping order."""
            self.check()
            ahead = self._draw(box, forward, cost, 1)
            behind = self._draw(box, backward, cost - odd, -1)
            last, other = (ahead, behind) if odd else (behind, ahead)
            front = self.forward if odd else self.backward
            for d in reversed(last):
                if d in other and self.backward[d + self.offset] <= self.forward[d + self.offset]:
                    return front[d + self.offset], front[d + self.offset] - d
            return None

        found = meeting(most)
        if found is None:
            ahead, behind = self._draw(box, forward, most, 1), self._draw(box, backward, most, -1)
            return self._best(box, most, ahead, behind)
        while most - least > 1:
            cost = (least + most) // 2
            if (earlier := meeting(cost)) is None:
                least = cost
            else:
                most, found = cost, earlier
        return *found, True, True, most

    def _draw(self, box: Box, pairs: list[Pair], cost: int, step: int) -> range:
        """Set the front of a cost on its diagonals and return these."""
        xoff, xlim, yoff, ylim = box
        start, mid = (xoff + yoff, xoff - yoff) if step > 0 else (xlim + ylim, xlim - ylim)
        lowest, highest = mid - cost, mid + cost
        # Outside the corners of the box, every other cost reaches the last diagonal.
        if lowest < xoff - ylim:
            lowest = xoff - ylim + ((lowest - xoff + ylim) & 1)
        if highest > xlim - yoff:
            highest = xlim - yoff - ((highest - xlim + yoff) & 1)
        diagonals = range(lowest, highest + 1, 2)
        lengths = [0] * len(diagonals)
        free = list(range(len(diagonals) + 1))  # leads to the next diagonal without a length
        for length, reached, d in pairs:
            if reached > cost:
                continue
            at = max(0, (d - cost + reached - lowest) // 2)
            end = min(len(diagonals), (d + cost - reached - lowest) // 2 + 1)
            while at < end:
                if free[at] == at:
                    lengths[at] = length
                    free[at] = at + 1
                else:
                    free[at] = free[free[at]]
                at = free[at]
        base = start + cost * step
        front = self.forward if step > 0 else self.backward
        front[lowest + self.offset : highest + self.offset + 1 : 2] = [
            (base + 2 * length * step + d) // 2 for length, d in zip(lengths, diagonals, strict=True)
        ]
        return diagonals
