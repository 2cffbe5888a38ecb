"""`Prefetch`: predicts which files or directories a sequential reader needs next.

It only predicts. The cache fetches what is small and bounded, and treats it like any other answer.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from ramet.core.paths import Path
from ramet.core.stat import Kind, Stat

SURE: Final = 3
"""Files read in a row before the next ones are prefetched."""
FILES: Final = 32
"""Files prefetched at a time."""
LISTINGS: Final = 3
"""Directory listings prefetched at a time, from the second directory on."""
EACH: Final = 1 << 20
"""Bytes of a file above which it is not prefetched."""
TOTAL: Final = 8 << 20
"""Bytes prefetched at a time."""
DIRECTORIES: Final = 64
RECENT: Final = 4
"""Predictions kept, so that a few interleaved readers are each recognized."""

Entries = Sequence[tuple[str, Stat]]


class _Order:
    """The files of a directory in one order, with their positions."""

    def __init__(self, names: list[str]) -> None:
        self.names = names
        self.places = {name: place for place, name in enumerate(names)}


class Prefetch:
    def __init__(self, worth: Callable[[Stat], bool], *, sure: int = SURE, most: int = FILES) -> None:
        """`worth` selects entries, `sure` is the run length before prefetching starts, `most` the number fetched."""
        self._worth, self._sure, self._most = worth, sure, most
        self._orders: OrderedDict[Path, tuple[Entries, tuple[_Order, _Order]]] = OrderedDict()
        self._expected: OrderedDict[Path, tuple[int, int]] = OrderedDict()
        """Expected next path: the run length before it, and its order."""
        self._turned = 0
        """Run length at the end of the last directory: the next one starts with it."""

    def after(self, path: Path, entries: Entries) -> Iterator[Path]:
        """Note that `path` is being read; return what to fetch now, nearest first."""
        folder = path.parent
        orders = self._orders_of(folder, entries)
        row, which = self._expected.pop(path, (0, 0))
        place = orders[which].places.get(path.name)
        if place is None:
            return iter(())
        if not row and any(order.places[path.name] == 0 for order in orders):
            row, self._turned = self._turned, 0
        for number, order in enumerate(orders):
            following = order.places[path.name] + 1
            if following < len(order.names):
                self._expected[folder / order.names[following]] = (row + 1, number)
            elif number == which:
                self._turned = row + 1
        while len(self._expected) > RECENT:
            self._expected.popitem(last=False)
        if row < self._sure:
            return iter(())
        return (folder / name for name in orders[which].names[place + 1 : place + 1 + self._most])

    def behind(self, folder: Path, names: Sequence[str], entries: Entries) -> list[str]:
        """Return what follows these files if they are neighbours in one of the orders."""
        if not names:
            return []
        for order in self._orders_of(folder, entries):
            first, last = order.places.get(names[0]), order.places.get(names[-1])
            if first is not None and last is not None and last - first == len(names) - 1:
                return order.names[last + 1 : last + 1 + self._most]
        return []

    def _orders_of(self, folder: Path, entries: Entries) -> tuple[_Order, _Order]:
        """Return the listing order, as walks use it, and the sorted order, as `*` expands."""
        known = self._orders.get(folder)
        if known is not None and known[0] is entries:
            return known[1]
        names = [name for name, stat in entries if self._worth(stat)]
        made = _Order(names), _Order(sorted(names))
        self._orders[folder] = entries, made
        if len(self._orders) > DIRECTORIES:
            self._orders.popitem(last=False)
        return made


def is_directory(stat: Stat) -> bool:
    return stat.kind is Kind.DIR and stat.ttl != 0


def worth_it(stat: Stat) -> bool:
    return stat.kind is Kind.FILE and stat.size is not None and stat.size <= EACH and stat.ttl != 0
