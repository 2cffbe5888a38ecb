"""`Ahead`: guesses what a reader who goes through a directory wants next, files or the directories below it, so that it
can be under way already.

It only guesses; what is read ahead is small, bounded, and goes into the cache, where it is as good as any other answer.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from ramet.core.paths import Path
from ramet.core.stat import Kind, Stat

SURE: Final = 3
"""Files in a row after which a reader is taken to go on."""
FILES: Final = 32
"""Files that may be under way before they are asked for."""
LISTINGS: Final = 3
"""Directories whose listings may be, from the second of them on that somebody looks into."""
EACH: Final = 1 << 20
"""Bytes of a file that is still worth it: a larger one is better read when it is wanted."""
TOTAL: Final = 8 << 20
"""Bytes that may be under way."""
DIRECTORIES: Final = 64
RECENT: Final = 4
"""Guesses that are kept: what comes later than a few other files is not in a row, though readers may take turns."""

Entries = Sequence[tuple[str, Stat]]


class _Order:
    """The files of a directory in one order, and where in it each one is."""

    def __init__(self, names: list[str]) -> None:
        self.names = names
        self.places = {name: place for place, name in enumerate(names)}


class Ahead:
    def __init__(self, worth: Callable[[Stat], bool], *, sure: int = SURE, most: int = FILES) -> None:
        """`worth` says what is worth to be had early, `sure` after how many in a row, `most` how many of them."""
        self._worth, self._sure, self._most = worth, sure, most
        self._orders: OrderedDict[Path, tuple[Entries, tuple[_Order, _Order]]] = OrderedDict()
        self._expected: OrderedDict[Path, tuple[int, int]] = OrderedDict()
        """What would be next: how many came in a row before it, and in which order."""
        self._turned = 0
        """How many came in a row when the last directory ended: the next one begins with that."""

    def after(self, path: Path, entries: Entries) -> Iterator[Path]:
        """`path` of a directory with these entries is being read: what to fetch now, nearest first."""
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
        """What follows these files, if they are neighbours in an order that somebody may go through."""
        if not names:
            return []
        for order in self._orders_of(folder, entries):
            first, last = order.places.get(names[0]), order.places.get(names[-1])
            if first is not None and last is not None and last - first == len(names) - 1:
                return order.names[last + 1 : last + 1 + self._most]
        return []

    def _orders_of(self, folder: Path, entries: Entries) -> tuple[_Order, _Order]:
        """As they are listed, which is how trees are walked; and sorted, which is how `*` names them."""
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
