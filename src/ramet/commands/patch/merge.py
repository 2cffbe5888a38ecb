"""`patch --merge`: merge hunks into changed text and mark conflicts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ramet.commands.patch.hunks import Hunk
from ramet.commands.patch.three_way import blocks

_NEAR = 1000
"""Lines searched before and after the expected position."""

MERGED, APPLIED, CONFLICT = "merged", "already applied", "NOT MERGED"


@dataclass
class Merge:
    """Result of merging a hunk: replaced range, new lines, and a note per part."""

    start: int
    stop: int
    lines: list[bytes] = field(default_factory=list)
    notes: list[tuple[str, str]] = field(default_factory=list)
    gone: int = 0
    """Number of removed lines."""

    @property
    def conflict(self) -> bool:
        return any(kind == CONFLICT for kind, _ in self.notes)

    def told(self) -> str:
        """Format the notes; equal results share a word."""
        out, last = "", ""
        for kind, where in self.notes:
            out += f",{where}" if kind == last else f"{', ' if out else ''}{kind} at {where}"
            last = kind
        return out


def region(
    lines: list[bytes], old: list[bytes], low: int, expected: int, check: Callable[[], object]
) -> tuple[int, int]:
    """Find the range most similar to the old lines, the nearest of several."""
    first, last = max(low, expected - _NEAR), min(len(lines), expected + len(old) + _NEAR)
    if first >= last:
        place = min(max(low, expected), len(lines))
        return place, place
    width = last - first
    costs, starts = [0] * (width + 1), list(range(width + 1))
    for line in old:
        check()
        left, left_start = costs[0] + 1, starts[0]
        new_costs, new_starts = [left], [left_start]
        for at in range(width):
            best, start = costs[at + 1] + 1, starts[at + 1]
            if left + 1 < best:
                best, start = left + 1, left_start
            if lines[first + at] == line and costs[at] < best:
                best, start = costs[at], starts[at]
            new_costs.append(best)
            new_starts.append(start)
            left, left_start = best, start
        costs, starts = new_costs, new_starts
    end = min(range(width + 1), key=lambda at: (costs[at], abs(first + starts[at] - expected), abs(at - starts[at])))
    if costs[end] >= len(old):
        place = min(max(low, expected), len(lines))
        return place, place
    return first + starts[end], first + end


def merged(
    lines: list[bytes], hunk: Hunk, low: int, expected: int, written: int, both: bool, check: Callable[[], object]
) -> Merge:
    """Merge the hunk where it fits best; `written` lines precede it, `both` adds the expected lines to conflicts."""
    old, new = hunk.old(), hunk.new()
    start, stop = region(lines, old, low, expected, check)
    mine = lines[start:stop]
    result = Merge(start, stop)
    out, at, extra = result.lines, 0, 0
    base = written + start - low
    # Line numbers include removed lines, as in the original.
    for block in blocks(mine, old, new):
        out += mine[at : block.mine[0]]
        at = block.mine[1]
        here, before, wanted = mine[slice(*block.mine)], old[slice(*block.old)], new[slice(*block.yours)]
        place = base + len(out) + 1 + extra
        if wanted == before:
            out += here
        elif here == wanted:
            out += here
            result.notes.append((APPLIED, str(place)))
        elif here == before:
            out += wanted
            extra += len(before)
            result.notes.append((MERGED, str(place)))
        else:
            shown = [
                b"<<<<<<<\n",
                *here,
                *([b"|||||||\n", *before] if both else []),
                b"=======\n",
                *wanted,
                b">>>>>>>\n",
            ]
            result.notes.append((CONFLICT, f"{place}-{place + len(shown) - 1}"))
            out += shown
    out += mine[at:]
    result.gone = extra
    return result
