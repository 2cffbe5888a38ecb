"""`Log`: append-only logs of numbered entries, the base of refs, leases and tags.

Every implementation guarantees: of many callers that append the same number, exactly one succeeds, and an entry never
changes once it is appended. Entries are JSON objects; as objects of a store each has a checksum as its last member.

    <space>/<name>/<20-digit number>     an entry
    past/<name>/<20-digit number>        of a log of refs, the compacted entries up to this number
    past/@gc/store/<20-digit number>     the same of the log of collections
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, Protocol

from blake3 import blake3

from ramet.core.errors import RametError
from ramet.store.objects.compression import DamagedFrame, compress, decompress
from ramet.store.objects.objects import Objects, delete_all

PAST: Final = {"refs": "past", "gc": "past/@gc"}
"""Key prefix of compacted entries, by the space of their log; no workspace can be called `@gc`."""
MAGIC: Final = b"RAMETPA1"
DIGEST: Final = 32
FULL_BYTES: Final = 256 * 1024
"""Bytes from which on a compacted object is not rewritten with newer entries."""
CONCURRENT_READS: Final = 16


class Log(Protocol):
    def names(self, start: str = "") -> list[str]:
        """List names that begin with `start` and have at least one entry, sorted."""
        ...

    def newest(self, name: str, after: int = 0) -> tuple[int, bytes] | None:
        """Return the last entry, if its number is above `after`."""
        ...

    def entries(self, name: str, after: int = 0) -> Iterator[tuple[int, bytes]]:
        """Yield all entries with numbers above `after`, in order."""
        ...

    def append(self, name: str, number: int, data: bytes) -> bool:
        """Append an entry; False when the number is taken."""
        ...


class ObjectLog:
    """Entries as objects `<space>/<name>/<20-digit number>`: appending is create-if-absent."""

    def __init__(self, objects: Objects, space: str = "refs") -> None:
        self._objects, self._space, self._past = objects, space, PAST.get(space)

    def names(self, start: str = "") -> list[str]:
        cut, below = len(self._space) + 1, f"{self._space}/{start}"
        folders: Callable[[str], Iterator[str]] | None = getattr(self._objects, "folders", None)
        if folders is not None:  # without reading the names of all entries
            return sorted(folder[cut:] for folder in folders(below))
        return sorted({key[cut:].rpartition("/")[0] for key in self._objects.list(below)})

    def newest(self, name: str, after: int = 0) -> tuple[int, bytes] | None:
        known = self._key(name, after) if after else ""
        newest = None
        for key in self._objects.list(f"{self._space}/{name}/", known):
            newest = key
        return None if newest is None else (int(newest.rpartition("/")[2]), self._read(newest))

    def entries(self, name: str, after: int = 0) -> Iterator[tuple[int, bytes]]:
        """Compaction drops entries that carry no information, so numbers may have gaps."""
        while True:
            live = list(self._objects.list(f"{self._space}/{name}/", self._key(name, after) if after else ""))
            try:
                if self._past is not None and (not live or _number(live[0]) != after + 1):
                    joined = list(self._objects.list(f"{self._past}/{name}/"))
                    for key in (key for key in joined if _number(key) > after):
                        for number, data in joined_rows(self._read(key)) or [(_number(key), b"")]:
                            if number > after:
                                yield number, data
                                after = number
                    after = max([after, *map(_number, joined)])
                for key in live:
                    if _number(key) > after:
                        data = self._read(key)
                        yield _number(key), data
                        after = _number(key)
                return
            except KeyError:
                continue  # compacted since it was listed: read the compacted object

    # ------------------------------------------------------------------------------------------ old entries

    def counts(self) -> Counter[str]:
        """Count the entries of each log that are not compacted."""
        cut = len(self._space) + 1
        return Counter(key[cut:].rpartition("/")[0] for key in self._objects.list(f"{self._space}/"))

    def live(self, name: str) -> list[int]:
        """List the numbers of the entries that are not compacted."""
        return [_number(key) for key in self._objects.list(f"{self._space}/{name}/")]

    def read_all(self, name: str, numbers: Sequence[int]) -> list[bytes]:
        """Read several entries; concurrently on a remote store."""
        if not getattr(self._objects, "remote", False):
            return [self._read(self._key(name, number)) for number in numbers]
        with ThreadPoolExecutor(CONCURRENT_READS, "ramet-log") as pool:
            return list(pool.map(lambda number: self._read(self._key(name, number)), numbers))

    def join(self, name: str, upto: int, kept: Sequence[tuple[int, bytes]]) -> None:
        """Replace all entries up to a number by `kept`. Nothing is removed before the replacement is durable."""
        before = self._compacted_numbers(name)
        rows = [(number, data) for number, data in kept if number > max(before, default=0)]
        last = f"{self._past}/{name}/{max(before):020d}" if before else ""
        needless: list[str] = []
        if last and len(packed := self._read(last)) < FULL_BYTES and (older := joined_rows(packed)):
            rows = [*older, *rows]
            needless.append(last)
        data = compress(json.dumps([[number, entry.decode()] for number, entry in rows]).encode())
        key = f"{self._past}/{name}/{upto:020d}"
        self._objects.put(key, MAGIC + blake3(data).digest() + data)
        old = (other for other in self._objects.list(f"{self._space}/{name}/") if _number(other) <= upto)
        delete_all(self._objects, [*old, *(other for other in needless if other != key)])

    def has(self, name: str, number: int) -> bool:
        """Return whether an entry with this number exists outside of compacted objects."""
        try:
            self._objects.get_range(self._key(name, number), 0, 1)
        except KeyError:
            return False
        return True

    def get(self, name: str, number: int) -> bytes | None:
        """Return the entry with this number; None when there is none, or it is compacted."""
        try:
            return self._read(self._key(name, number))
        except KeyError:
            return None

    def withdraw(self, name: str, number: int) -> None:
        """Delete an entry that was appended under the number of a compacted one."""
        self._objects.delete(self._key(name, number))

    def _compacted_numbers(self, name: str) -> list[int]:
        return [_number(key) for key in self._objects.list(f"{self._past}/{name}/")]

    def _read(self, key: str) -> bytes:
        try:
            data = self._objects.get(key)
            return data if data.startswith(MAGIC) else without_check(data)
        except RametError as error:
            if error.code != "store_corrupt":
                raise
            return b""  # a damaged encrypted entry reads as empty: decoding it reports the damage

    def append(self, name: str, number: int, data: bytes) -> bool:
        return self._objects.create(self._key(name, number), with_check(data))

    def _key(self, name: str, number: int) -> str:
        return f"{self._space}/{name}/{number:020d}"


def with_check(entry: bytes) -> bytes:
    """Add a checksum to a JSON object as its last member, which readers that do not know it ignore."""
    if len(entry) < 3 or entry[-1:] != b"}":
        return entry
    return b'%s, "check": "%s"}' % (entry[:-1], _check(entry))


def without_check(stored: bytes) -> bytes:
    """Return the entry without its checksum, empty when that is wrong; as it is when it has none (old stores)."""
    found = _CHECKED.search(stored, max(0, len(stored) - _CHECK_TAIL))
    if found is None:
        return stored if b'"check' not in stored[-_CHECK_TAIL:] else b""
    entry = stored[: found.start()] + b"}"
    return entry if _check(entry) == found[1] else b""


def _check(entry: bytes) -> bytes:
    return blake3(entry).hexdigest(8).encode()


_CHECKED: Final = re.compile(rb', "check": "([0-9a-f]{16})"\}\Z')
_CHECK_TAIL: Final = len(', "check": ""}') + 16


def _number(key: str) -> int:
    return int(key.rpartition("/")[2])


def joined_rows(data: bytes) -> list[tuple[int, bytes]] | None:
    """Decode compacted entries, by number; None when the bytes are damaged."""
    start = len(MAGIC) + DIGEST
    packed = data[start:]
    if data[: len(MAGIC)] != MAGIC or blake3(packed).digest() != data[len(MAGIC) : start]:
        return None
    try:
        return [(number, text.encode()) for number, text in json.loads(decompress(packed))]
    except (ValueError, TypeError, DamagedFrame):
        return None
