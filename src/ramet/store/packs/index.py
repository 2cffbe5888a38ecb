"""Pack index: find the location of an object by its id.

An index is a magic number, the count of its records, and the records of equal width, sorted by id. It is searched in
its encoded form: besides the bytes, only the first four bytes of each id are extracted, all at once, so that opening
and searching a store of a million objects creates no Python object per record.
"""

from __future__ import annotations

import struct
import sys
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence, Set
from typing import Final, NamedTuple

from ramet.core.errors import RametError
from ramet.store.model.ids import SIZE
from ramet.store.objects.compression import SHARED_BLOCK_BYTES

INDEX_MAGIC: Final = b"RAMETIX1"
RECORD: Final = struct.Struct(">32sQIII")
_HEAD: Final = 12
_WIDTH: Final = RECORD.size
_PREFIX: Final = 4
_OWNER_BITS: Final = 20
"""Bits that name the index a prefix comes from."""
_MERGE_SLICES: Final = 256
_SEARCHES_PER_SCAN: Final = 6
"""Unpacking all records of an index costs as much as this many searches."""
_SLICED_MERGE_IDS: Final = 100_000
"""Ids above which the merge runs in slices, to bound the number of Python integers."""


class Location(NamedTuple):
    """Location of an object: its pack, the compressed frame, and the offset inside the block."""

    pack: str
    start: int
    length: int
    offset: int
    size: int

    @property
    def block_bound(self) -> int:
        """Bytes that the block may have: a block is small, or it is one object and ends with it."""
        return max(SHARED_BLOCK_BYTES, self.offset + self.size)


def encode_index(records: list[bytes]) -> bytes:
    """Encode an index of `RECORD` records, which it sorts in place."""
    records.sort()
    return b"".join((INDEX_MAGIC, len(records).to_bytes(4, "big"), *records))


class Index:
    """The index of one pack."""

    __slots__ = ("_prefixes", "count", "data", "pack")

    def __init__(self, pack: str, data: bytes) -> None:
        if data[:8] != INDEX_MAGIC or (len(data) - _HEAD) % _WIDTH:
            raise RametError("store_corrupt", f"the index of pack {pack} is damaged", "run verify, then repair")
        self.pack = pack
        self.data = data
        self.count = (len(data) - _HEAD) // _WIDTH
        self._prefixes: array[int] | None = None

    def prefixes(self) -> array[int]:
        """Return the first four bytes of each id as integers, in order."""
        if self._prefixes is None:
            joined = bytearray(_PREFIX * self.count)
            for at in range(_PREFIX):
                joined[at::_PREFIX] = self.data[_HEAD + at :: _WIDTH]
            found = array("I", bytes(joined))
            if sys.byteorder == "little":
                found.byteswap()
            self._prefixes = found
        return self._prefixes

    def find(self, key: bytes) -> Location | None:
        prefixes = self._prefixes
        if prefixes is None:
            prefixes = self.prefixes()
        number = int.from_bytes(key[:_PREFIX], "big")
        at = bisect_left(prefixes, number)
        while at < self.count and prefixes[at] == number:
            begin = _HEAD + at * _WIDTH
            if self.data[begin : begin + SIZE] == key:
                _, start, length, offset, size = RECORD.unpack_from(self.data, begin)
                return Location(self.pack, start, length, offset, size)
            at += 1
        return None

    def find_all(self, keys: Set[bytes]) -> dict[bytes, Location]:
        """Find many objects, faster than one by one."""
        if len(keys) * _SEARCHES_PER_SCAN >= self.count:
            table, name = self.table(), self.pack
            return {key: Location(name, *table[key]) for key in table.keys() & keys}
        prefixes, data, count, pack, unpack = self.prefixes(), self.data, self.count, self.pack, RECORD.unpack_from
        found: dict[bytes, Location] = {}
        for key in keys:
            number = int.from_bytes(key[:_PREFIX], "big")
            at = bisect_left(prefixes, number)
            while at < count and prefixes[at] == number:
                known, *where = unpack(data, _HEAD + at * _WIDTH)
                if known == key:
                    found[key] = Location(pack, *where)
                    break
                at += 1
        return found

    def table(self) -> dict[bytes, tuple[int, int, int, int]]:
        """Decode all records: start, length, offset and size by id."""
        records = RECORD.iter_unpack(memoryview(self.data)[_HEAD:])
        return {key: (start, length, offset, size) for key, start, length, offset, size in records}

    def ids(self) -> Iterator[bytes]:
        for at in range(_HEAD, len(self.data), _WIDTH):
            yield self.data[at : at + SIZE]


class MergedIndex:
    """Searches many indexes as one, at eight bytes per object; the first index that has an object wins."""

    __slots__ = ("_indexes", "_rows")

    def __init__(self, indexes: Sequence[Index]) -> None:
        self._indexes = list(indexes)
        self._rows = array("Q")
        lists = [index.prefixes() for index in self._indexes]
        pieces = _MERGE_SLICES if sum(map(len, lists)) > _SLICED_MERGE_IDS else 1
        begins = [0] * len(lists)
        for piece in range(1, pieces + 1):
            rows: list[int] = []
            for owner, prefixes in enumerate(lists):
                begin = begins[owner]
                end = begins[owner] = bisect_left(prefixes, piece * (1 << 32) // pieces, begin)
                rows += [prefix << _OWNER_BITS | owner for prefix in prefixes[begin:end]]
            rows.sort()
            self._rows.extend(rows)

    def __len__(self) -> int:
        return len(self._rows)

    def find(self, key: bytes) -> Location | None:
        rows = self._rows
        number = int.from_bytes(key[:_PREFIX], "big")
        at = bisect_left(rows, number << _OWNER_BITS)
        while at < len(rows) and rows[at] >> _OWNER_BITS == number:
            place = self._indexes[rows[at] & ((1 << _OWNER_BITS) - 1)].find(key)
            if place is not None:
                return place
            at += 1
        return None
