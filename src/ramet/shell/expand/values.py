"""What a variable can hold besides plain text: arrays of both kinds, name references and computed values."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

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
    """An indexed array: sparse, read in the order of its indices."""

    __slots__ = ("_sorted", "blank", "items", "owner", "top")

    def __init__(self, items: Iterable[str] = (), owner: object = None) -> None:
        self.items: dict[int, str] = dict(enumerate(items))
        self.top = len(self.items)
        self.owner = owner
        self.blank = False
        """Declared and never assigned to."""
        self._sorted = True

    def copy(self, owner: object) -> Indexed:
        twin = Indexed((), owner)
        twin.items, twin.top, twin._sorted, twin.blank = dict(self.items), self.top, self._sorted, self.blank
        return twin

    def set(self, index: int, value: str) -> None:
        if index >= self.top:
            self.top = index + 1
        elif index not in self.items:
            self._sorted = False
        self.items[index] = value

    def extend(self, values: list[str]) -> None:
        """Put elements after the last one."""
        top = self.top
        if len(values) == 1:
            self.items[top] = values[0]
        else:
            self.items.update(enumerate(values, top))
        self.top = top + len(values)

    def unset(self, index: int) -> None:
        self.blank = False
        if self.items.pop(index, None) is not None and index == self.top - 1:
            self.top = max(self.items, default=-1) + 1

    def _order(self) -> None:
        if not self._sorted:
            self.items = dict(sorted(self.items.items()))
            self._sorted = True

    def keys(self) -> list[int]:
        self._order()
        return list(self.items)

    def values(self) -> list[str]:
        self._order()
        return list(self.items.values())

    def pairs(self) -> list[tuple[int, str]]:
        self._order()
        return list(self.items.items())

    def __len__(self) -> int:
        return len(self.items)


class Assoc:
    """An associative array, read in the order of bash's hash table (1024 buckets, newest first within one)."""

    __slots__ = ("_order", "blank", "items", "owner")

    def __init__(self, items: dict[str, str] | None = None, owner: object = None) -> None:
        self.items: dict[str, str] = items if items is not None else {}
        self.owner = owner
        self.blank = False
        self._order: list[str] | None = None

    def copy(self, owner: object) -> Assoc:
        twin = Assoc(dict(self.items), owner)
        twin.blank = self.blank
        return twin

    def set(self, key: str, value: str) -> None:
        if key not in self.items:
            self._order = None
        self.items[key] = value

    def unset(self, key: str) -> None:
        self.blank = False
        if self.items.pop(key, None) is not None:
            self._order = None

    @property
    def ordered(self) -> bool:
        return self._order is not None

    def keys(self) -> list[str]:
        if self._order is None:
            names = list(self.items)
            names.reverse()
            names.sort(key=bucket)
            self._order = names
        return list(self._order)

    def values(self) -> list[str]:
        items = self.items
        return [items[key] for key in self.keys()]

    def pairs(self) -> list[tuple[str, str]]:
        items = self.items
        return [(key, items[key]) for key in self.keys()]

    def __len__(self) -> int:
        return len(self.items)


_buckets: dict[str, int] = {}
_PRODUCTS = tuple(bits * 16777619 & 1023 for bits in range(1024))


def bucket(key: str) -> int:
    """The bucket of a key: the lowest ten bits of 32-bit FNV-1 over its bytes, which only the lowest ten make up."""
    found = _buckets.get(key)
    if found is None:
        found, product = 2166136261 & 1023, _PRODUCTS
        for byte in encode(key):
            # Bytes are signed there: one above 127 carries its sign into the higher bits.
            found = product[found] ^ (byte if byte < 128 else byte | 0x300)
        if len(_buckets) > 20_000:
            _buckets.clear()
        _buckets[key] = found
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


class Subscript(str):
    """A subscript with quotes in it: the key it is for an associative array, and what an indexed one evaluates."""

    arithmetic: str


def to_evaluate(key: str) -> str:
    """What stands for this subscript of an indexed array."""
    return key.arithmetic if isinstance(key, Subscript) else key
