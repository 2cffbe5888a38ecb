"""`PackedLog`: the last rows of a log in order, the older ones compressed in memory.

Appending, and reading the newest rows, does not touch packed ones; reading all rows unpacks group by group. Groups may
also be loaded from elsewhere on access.
"""

from __future__ import annotations

import marshal
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Final, Generic, NamedTuple, TypeVar

T = TypeVar("T")
GROUP_ROWS: Final = 256
"""Rows per group; the newest two groups stay unpacked."""
LEVEL: Final = 1
"""zlib level: rows are similar, so the fastest level is enough."""


class PackedRows(NamedTuple):
    """A group of rows, with the keys of the first and the last."""

    first: float
    last: float
    rows: int
    data: bytes | Callable[[], list[Any]]
    """The packed rows, or a function that loads them."""


class PackedLog(Generic[T]):
    """`plain` converts a row to a tuple of plain values, and `made` back; `key` of a row never decreases."""

    def __init__(
        self,
        most: int,
        plain: Callable[[T], tuple[Any, ...]],
        made: Callable[[tuple[Any, ...]], T],
        key: Callable[[T], float],
    ) -> None:
        self.most = most
        self._plain, self._made, self._key = plain, made, key
        self._pieces: deque[PackedRows] = deque()
        self._live: deque[T] = deque()
        self._length = 0
        self._skip = 0
        """Dropped rows of the first group."""

    def __len__(self) -> int:
        return self._length

    def append(self, row: T) -> None:
        live = self._live
        live.append(row)
        self._length += 1
        if len(live) >= 2 * GROUP_ROWS:
            self._pack()
        if self._length > self.most:
            self._drop()

    def extend(self, rows: list[T]) -> None:
        self._live.extend(rows)
        self._length += len(rows)
        while len(self._live) >= 2 * GROUP_ROWS:
            self._pack()
        self._drop()

    def _pack(self) -> None:
        rows = [self._live.popleft() for _ in range(GROUP_ROWS)]
        data = zlib.compress(marshal.dumps(list(map(self._plain, rows))), LEVEL)
        self._pieces.append(PackedRows(self._key(rows[0]), self._key(rows[-1]), len(rows), data))

    def _drop(self) -> None:
        """Drop the oldest rows beyond the limit."""
        while self._length > self.most:
            if not self._pieces:
                self._live.popleft()
                self._length -= 1
                continue
            left = self._pieces[0].rows - self._skip
            gone = min(left, self._length - self.most)
            self._length -= gone
            self._skip += gone
            if gone == left:
                self._pieces.popleft()
                self._skip = 0

    def add_lazy(self, first: float, last: float, rows: int, load: Callable[[], list[T]]) -> None:
        """Add a group that is loaded on access, before any other row."""
        assert not self._live
        self._pieces.append(PackedRows(first, last, rows, load))
        self._length += rows
        self._drop()

    def adopt(self, other: PackedLog[T]) -> None:
        """Start with the rows of another log, without unpacking them."""
        assert not self._length
        self._pieces, self._live = other._pieces.copy(), other._live.copy()
        self._length, self._skip = other._length, other._skip

    def _rows(self, piece: PackedRows) -> list[T]:
        if not isinstance(piece.data, bytes):
            return piece.data()
        return list(map(self._made, marshal.loads(zlib.decompress(piece.data))))

    def __iter__(self) -> Iterator[T]:
        """Iterate over a copy: rows added during the iteration are not included."""
        pieces, live, skip = tuple(self._pieces), tuple(self._live), self._skip
        for piece in pieces:
            yield from self._rows(piece)[skip:]
            skip = 0
        yield from live

    def since(self, key: float) -> list[T]:
        """Return the rows from a key on, newest first; costs O(result)."""
        found: list[T] = []
        for row in reversed(self._live):
            if self._key(row) < key:
                return found
            found.append(row)
        for number in range(len(self._pieces) - 1, -1, -1):
            piece = self._pieces[number]
            if piece.last < key:
                break
            rows = self._rows(piece)[self._skip if number == 0 else 0 :]
            found.extend(row for row in reversed(rows) if self._key(row) >= key)
        return found

    def first_key(self) -> float | None:
        """Return the key of the oldest row."""
        if not self._pieces:
            return self._key(self._live[0]) if self._live else None
        piece = self._pieces[0]
        if not self._skip or piece.last - piece.first == piece.rows - 1:  # consecutive keys
            return piece.first + self._skip
        return self._key(self._rows(piece)[self._skip])
