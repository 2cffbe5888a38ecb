"""Merge sorted runs slice by slice with the list sort of C, without a heap.

A slice ends inside every loaded chunk, so all lines that belong to it are in memory.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from operator import attrgetter
from typing import Any

from ramet.commands.text.sort.keys import Line
from ramet.commands.text.sort.order import ODD_SPACES, Order, ReversedKey

_SLICE = 16_384
"""Approximate lines per slice; fewer with keys, which take longer to compare."""

Chunk = tuple[list[Line], bool]
"""Sorted lines, and whether they are ASCII without odd spaces."""


def chunk(data: bytes, end: bytes, order: Order) -> Chunk:
    """Split a piece of input, in which every line has its delimiter."""
    simple = order.number is not None and data.isascii() and not any(space in data for space in ODD_SPACES)
    lines = data.decode("latin-1").split(end.decode())
    lines.pop()
    return lines, simple


class _Head:
    """The loaded part of one run."""

    __slots__ = ("at", "keys", "last", "lines", "number", "order", "run")

    def __init__(self, run: Iterator[Chunk], number: int, order: Order) -> None:
        self.run, self.number, self.order = run, number, order
        self.lines: list[Line] = []
        self.keys: list[Any] | None = None
        self.at = 0
        self.last = 0
        """Index of the last line that the next slice may include."""

    def load(self) -> bool:
        """Load the next chunk; return False at the end of the run."""
        for lines, simple in self.run:
            if lines:
                self.lines, self.at, self.keys = lines, 0, self.order.keys(lines, simple)
                return True
        return False

    def __lt__(self, other: _Head) -> bool:
        """Compare heads by their next lines."""
        return _before(self, self.at, other, other.at)


def merge(runs: list[Iterator[Chunk]], order: Order) -> Iterator[list[Line]]:
    """Yield the lines of all runs in order, in lists of a few thousand; equal lines in the order of the runs.

    Empty lists give the caller a chance to yield the event loop.
    """
    if len(runs) == 1:
        yield from (lines for lines, _ in runs[0])
        return
    size = _SLICE if order.key is None else _SLICE // 8 if order.slow else _SLICE // 4
    heads: list[_Head] = []
    for number, run in enumerate(runs):
        head = _Head(run, number, order)
        if head.load():
            heads.append(head)
        yield []
    while len(heads) > 1:
        lines: list[Line] = []
        keys: list[Any] = []
        leading = _leading(heads, size)
        cuts = _plain_cuts(leading, order.reverse) if order.key is None else _keyed_cuts(leading, order)
        for head, cut in zip(leading, cuts, strict=True):
            if head.at < cut:
                lines += head.lines[head.at : cut]
                if head.keys is not None:
                    keys += head.keys[head.at : cut]
                head.at = cut
        order.sort(lines, None if order.key is None else keys)
        yield lines
        for head in leading:
            if head.at == len(head.lines):
                if not head.load():
                    heads.remove(head)
                yield []
    for head in heads:
        yield head.lines[head.at :]
        yield from (lines for lines, _ in head.run)


def _leading(heads: list[_Head], size: int) -> list[_Head]:
    """Return the heads that contribute to the next slice of about `size` lines; the rest begin after it.

    They are few where runs hardly overlap, as for sorted or reversed input.
    """
    heads.sort()
    count = 1
    while True:
        leading = sorted(heads[:count], key=_number)
        share = max(size // count, 16)
        for head in leading:
            head.last = min(head.at + share, len(head.lines)) - 1
        if count == len(heads):
            return leading
        end = _first_end(leading)
        if _before(end, end.last, heads[count], heads[count].at):
            return leading
        count = min(2 * count, len(heads))


_number = attrgetter("number")


def _first_end(heads: list[_Head]) -> _Head:
    """Return the head whose part of the slice ends first."""
    first = heads[0]
    for head in heads[1:]:
        if _before(head, head.last, first, first.last):
            first = head
    return first


def _before(one: _Head, place: int, other: _Head, there: int) -> bool:
    """Return whether a line of one head orders before a line of another."""
    order = one.order
    if order.key is None:
        this, that = one.lines[place], other.lines[there]
        return this > that if order.reverse else this < that
    a, b = _keys(one)[place], _keys(other)[there]
    if a != b:
        return bool(b < a if order.reverse else a < b)
    if not order.last_resort:
        return False
    this, that = one.lines[place], other.lines[there]
    return this > that if order.last_reverse else this < that


def _plain_cuts(heads: list[_Head], reverse: bool) -> list[int]:
    """Return where the slice ends in each chunk, if lines are their own keys."""
    lasts = [head.lines[head.last] for head in heads]
    if reverse:
        pivot = ReversedKey(max(lasts))
        return [bisect_right(head.lines, pivot, head.at, key=ReversedKey) for head in heads]
    first = min(lasts)
    return [bisect_right(head.lines, first, head.at) for head in heads]


def _keyed_cuts(heads: list[_Head], order: Order) -> list[int]:
    """Return where the slice ends in each chunk: by keys, then lines, then the order of the runs."""
    end = _first_end(heads)
    pivot, line = _keys(end)[end.last], end.lines[end.last]
    cuts: list[int] = []
    for head in heads:
        low, high = _equal(_keys(head), pivot, head.at, len(head.lines), order.reverse)
        if order.last_resort:
            low = _equal(head.lines, line, low, high, order.last_reverse)[1]
        cuts.append(high if not order.last_resort and head.number <= end.number else low)
    return cuts


def _keys(head: _Head) -> list[Any]:
    assert head.keys is not None
    return head.keys


def _equal(values: list[Any], value: Any, low: int, high: int, reverse: bool) -> tuple[int, int]:
    """Return the range of `value` among sorted values."""
    if reverse:
        wrapped = ReversedKey(value)
        low = bisect_left(values, wrapped, low, high, key=ReversedKey)
        return low, bisect_right(values, wrapped, low, high, key=ReversedKey)
    low = bisect_left(values, value, low, high)
    return low, bisect_right(values, value, low, high)
