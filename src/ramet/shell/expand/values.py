"""Values of variables besides plain text: indexed and associative arrays, name references, computed values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any, Final

from ramet.concurrency.sizes import BATCH, SMALL
from ramet.core.paths import encode

EXPORT, READONLY, INTEGER, LOWER, UPPER, NAMEREF, TRACE, CAPITAL = (1 << n for n in range(8))

ATTRIBUTE_LETTERS = (
    ("i", INTEGER),
    ("n", NAMEREF),
    ("r", READONLY),
    ("t", TRACE),
    ("x", EXPORT),
    ("c", CAPITAL),
    ("l", LOWER),
    ("u", UPPER),
)


class Indexed:
    """An indexed array, read in the order of its indices.

    Elements are in a list by index, with None for a missing one; elements far beyond its end are in a dict.
    """

    __slots__ = ("_far", "_holes", "_row", "_sorted", "blank", "owner", "top")

    def __init__(self, items: Iterable[str] = (), owner: object = None) -> None:
        """Take ownership of a list that is given."""
        self._row: list[str | None] = items if type(items) is list else list(items)
        self._holes = 0
        self._far: dict[int, str] = {}
        self._sorted = True
        self.top = len(self._row)
        """One more than the last index."""
        self.owner = owner
        self.blank = False
        """Declared and never assigned to."""

    def copy(self, owner: object) -> Indexed:
        twin = Indexed((), owner)
        twin._row, twin._holes, twin._far = self._row.copy(), self._holes, self._far.copy()
        twin._sorted, twin.top, twin.blank = self._sorted, self.top, self.blank
        return twin

    @property
    def whole(self) -> list[str] | None:
        """The elements, not to be changed, when none is missing; None otherwise."""
        return None if self._holes or self._far else self._row  # type: ignore[return-value]

    def get(self, index: int) -> str | None:
        """The element at an index that is not negative."""
        row = self._row
        return row[index] if index < len(row) else self._far.get(index)

    def set(self, index: int, value: str) -> None:
        row, size = self._row, len(self._row)
        if index < size:
            if row[index] is None:
                self._holes -= 1
            row[index] = value
            return
        if index == size:
            row.append(value)
            if self._far:
                self._far.pop(index, None)
        elif not self._far and index - size <= max(_GAP, size):
            row += [None] * (index - size)
            row.append(value)
            self._holes += index - size
        else:
            if index < self.top and index not in self._far:
                self._sorted = False
            self._far[index] = value
        if index >= self.top:
            self.top = index + 1

    def extend(self, values: list[str]) -> None:
        """Put elements after the last one."""
        if self._far:
            self._far.update(enumerate(values, self.top))
        else:
            self._row += values
        self.top += len(values)

    def unset(self, index: int) -> None:
        self.blank = False
        row = self._row
        if index >= len(row):
            if self._far.pop(index, None) is None:
                return
        elif row[index] is None:
            return
        else:
            row[index] = None
            self._holes += 1
        if index == len(row) - 1:
            self._trim()
        if index == self.top - 1:
            self._order()
            self.top = next(reversed(self._far)) + 1 if self._far else len(row)

    def _trim(self) -> None:
        """The list does not end in holes."""
        row = self._row
        while self._holes and row[-1] is None:
            last = row[-_GAP:]
            cut = len(last) if last.count(None) == len(last) else 1
            del row[-cut:]
            self._holes -= cut

    def _order(self) -> None:
        if self._sorted:
            return
        far, size = self._far, len(self._row)
        if self.top - size <= 4 * len(far):
            # Filled from its end, say, and by now as good as a list.
            self._row += map(far.get, range(size, self.top))
            self._holes += self.top - size - len(far)
            self._far = {}
        else:
            self._far = {index: far[index] for index in sorted(far)}
        self._sorted = True

    def keys(self) -> list[int]:
        self._order()
        if not self._far and not self._holes:
            return list(range(len(self._row)))
        return [index for index, value in enumerate(self._row) if value is not None] + list(self._far)

    def values(self) -> list[str]:
        whole = self.whole
        return whole.copy() if whole is not None else self.between(0, self.top)

    def stored(self) -> list[str | None]:
        """Return the elements in about their order, None for missing ones; not to be changed."""
        return self._row if not self._far else [*self._row, *self._far.values()]

    def between(self, start: int, stop: int) -> list[str]:
        """The elements that are there from one index up to another."""
        self._order()
        found = self._row[start:stop]
        if self._holes:
            found = [value for value in found if value is not None]
        if self._far and stop > len(self._row):
            found += [value for index, value in self._far.items() if start <= index < stop]
        return found  # type: ignore[return-value]

    def pairs(self) -> Iterator[tuple[int, str]]:
        if self.whole is not None:
            return enumerate(self.whole)
        return zip(self.keys(), self.values(), strict=True)

    def __len__(self) -> int:
        return len(self._row) - self._holes + len(self._far)


_GAP: Final = 64
"""Missing elements that the list of a short array is extended by."""


_BUCKETS: Final = 1024
_FULL, _GROWTH = 2, 4
"""Elements per bucket that fill a table, and the factor by which it then grows."""


class Assoc:
    """An associative array, read in the order of bash's hash table (1024 buckets at first, newest first within one)."""

    __slots__ = ("_order", "blank", "buckets", "items", "owner")

    def __init__(self, items: dict[str, str] | None = None, owner: object = None, buckets: int = _BUCKETS) -> None:
        self.items: dict[str, str] = items if items is not None else {}
        self.owner = owner
        self.blank = False
        self._order: list[str] | None = None
        while buckets * _FULL < len(self.items):
            buckets *= _GROWTH
        self.buckets = buckets

    def copy(self, owner: object) -> Assoc:
        twin = Assoc(dict(self.items), owner, self.buckets)
        twin.blank = self.blank
        return twin

    def set(self, key: str, value: str) -> None:
        if key not in self.items:
            self._order = None
            if len(self.items) == self.buckets * _FULL:
                # A full table is copied to a larger one, which reverses the order within each bucket.
                self.items = dict(reversed(self.items.items()))
                self.buckets *= _GROWTH
        self.items[key] = value

    def unset(self, key: str) -> None:
        self.blank = False
        if self.items.pop(key, None) is not None:
            self._order = None

    def keys(self) -> list[str]:
        if self._order is None:
            names = list(self.items)
            names.reverse()
            if self.buckets == _BUCKETS:
                names.sort(key=bucket)
            else:
                rows: list[list[str]] = [[] for _ in range(self.buckets)]
                for name in names:
                    rows[_hashed(name) % self.buckets].append(name)
                names = list(chain.from_iterable(rows))
            self._order = names
        return list(self._order)

    def values(self) -> list[str]:
        return list(map(self.items.__getitem__, self.keys()))

    def stored(self) -> list[str]:
        """The elements in any order."""
        return list(self.items.values())

    def pairs(self) -> Iterator[tuple[str, str]]:
        items = self.items
        return ((key, items[key]) for key in self.keys())

    def __len__(self) -> int:
        return len(self.items)


def is_slow(array: object) -> bool:
    """Return whether reading all elements is work to offload: many that must be put in order first."""
    if type(array) is Indexed:
        return array.whole is None and len(array) > BATCH
    return type(array) is Assoc and len(array) > BATCH


def key_names(array: Indexed | Assoc) -> list[str]:
    """Return the keys of an array as texts."""
    if isinstance(array, Assoc):
        return array.keys()
    return list(map(str, array.keys() if array.whole is None else range(array.top)))


_buckets: dict[str, int] = {}
_PRODUCTS = tuple(bits * 16777619 & 1023 for bits in range(1024))


def bucket(key: str) -> int:
    """Return the bucket of a key: the lowest ten bits of 32-bit FNV-1, of its first `SMALL` characters."""
    found = _buckets.get(key)
    if found is None:
        found, product = 2166136261 & 1023, _PRODUCTS
        for byte in encode(key[:SMALL]):
            # Bytes are signed there: one above 127 carries its sign into the higher bits.
            found = product[found] ^ (byte if byte < 128 else byte | 0x300)
        if len(_buckets) > 20_000:
            _buckets.clear()
        _buckets[key] = found
    return found


def _hashed(key: str) -> int:
    """All bits of the same."""
    found = 2166136261
    for byte in encode(key[:SMALL]):
        found = found * 16777619 & 0xFFFFFFFF ^ (byte if byte < 128 else byte | 0xFFFFFF00)
    return found


class NameRef:
    """`declare -n`: another name for `target`, which may carry a subscript; empty when not bound yet."""

    __slots__ = ("target",)

    def __init__(self, target: str) -> None:
        self.target = target


class Dynamic:
    """A variable whose value is computed when it is read (`RANDOM`, `SECONDS`, `LINENO`)."""

    __slots__ = ("assoc", "get", "put", "set")

    def __init__(
        self,
        get: Callable[[Any], str | list[str] | dict[str, str]],
        set: Callable[[Any, str], None] | None = None,
        put: Callable[[Any, str, str], None] | None = None,
        assoc: bool = True,
    ) -> None:
        self.get, self.set, self.put = get, set, put
        """`put` takes an element of a computed array, which is associative unless it says otherwise."""
        self.assoc = assoc and put is not None


Value = str | Indexed | Assoc | NameRef | Dynamic | None
"""None is a variable that is declared and has no value."""


def is_unset(value: Value) -> bool:
    """Whether a variable is declared only."""
    return value is None or (isinstance(value, Indexed | Assoc) and value.blank and not len(value))


class Subscript(str):
    """A subscript with quotes in it: the key it is for an associative array, and what an indexed one evaluates."""

    arithmetic: str


def to_evaluate(key: str) -> str:
    """What stands for this subscript of an indexed array."""
    return key.arithmetic if isinstance(key, Subscript) else key
