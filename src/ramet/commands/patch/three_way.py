"""Three-way comparison of line lists: the regions that `patch --merge` merges."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ramet.commands.diff.changes import changes


@dataclass(frozen=True, slots=True)
class Region:
    """A region where the three texts differ: half-open line ranges in mine, old and yours."""

    mine: tuple[int, int]
    old: tuple[int, int]
    yours: tuple[int, int]


def blocks(
    mine: list[bytes], old: list[bytes], yours: list[bytes], check: Callable[[], object] | None = None
) -> list[Region]:
    """Return the regions changed in either text, overlapping ones joined; `check` runs periodically."""

    def watch_time() -> None:
        if check is not None:
            check()

    left = [(c.a, c.b, c.c, c.d) for c in changes(old, mine, check=watch_time)]
    right = [(c.a, c.b, c.c, c.d) for c in changes(old, yours, check=watch_time)]
    out: list[Region] = []
    i = j = 0
    shift_left = shift_right = 0
    while i < len(left) or j < len(right):
        starts = [x[k][0] for x, k in ((left, i), (right, j)) if k < len(x)]
        low = min(starts)
        high = low
        first_i, first_j = i, j
        grown = True
        while grown:
            grown = False
            while (
                i < len(left) and left[i][0] <= high and (left[i][0] < high or left[i][0] == low or left[i][0] == high)
            ):
                high = max(high, left[i][1])
                i += 1
                grown = True
            while (
                j < len(right)
                and right[j][0] <= high
                and (right[j][0] < high or right[j][0] == low or right[j][0] == high)
            ):
                high = max(high, right[j][1])
                j += 1
                grown = True
        begin_mine, begin_yours = low + shift_left, low + shift_right
        for a, b, c, d in left[first_i:i]:
            shift_left += (d - c) - (b - a)
        for a, b, c, d in right[first_j:j]:
            shift_right += (d - c) - (b - a)
        out.append(Region((begin_mine, high + shift_left), (low, high), (begin_yours, high + shift_right)))
    return out
