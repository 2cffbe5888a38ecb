"""`Log`: numbered entries by name, appended one at a time. It is all that refs, leases and tags need of a server.

The rule of every implementation: of many callers that append the same number, exactly one succeeds, and an entry that
was appended is never changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from ramet.core.errors import RametError
from ramet.store.objects import Objects


class Log(Protocol):
    def names(self, start: str = "") -> list[str]:
        """Names that begin with `start` and have at least one entry, sorted."""
        ...

    def newest(self, name: str, after: int = 0) -> tuple[int, bytes] | None:
        """The last entry, if its number is above `after`."""
        ...

    def entries(self, name: str, after: int = 0) -> Iterator[tuple[int, bytes]]:
        """All entries with numbers above `after`, in order."""
        ...

    def append(self, name: str, number: int, data: bytes) -> bool:
        """Add an entry; False when the number is taken."""
        ...


class ObjectLog:
    """Entries as objects `<space>/<name>/<20-digit number>`: appending is create-if-absent."""

    def __init__(self, objects: Objects, space: str = "refs") -> None:
        self._objects, self._space = objects, space

    def names(self, start: str = "") -> list[str]:
        cut = len(self._space) + 1
        return sorted({key[cut:].rpartition("/")[0] for key in self._objects.list(f"{self._space}/{start}")})

    def newest(self, name: str, after: int = 0) -> tuple[int, bytes] | None:
        known = self._key(name, after) if after else ""
        newest = None
        for key in self._objects.list(f"{self._space}/{name}/", known):
            newest = key
        return None if newest is None else (int(newest.rpartition("/")[2]), self._read(newest))

    def entries(self, name: str, after: int = 0) -> Iterator[tuple[int, bytes]]:
        for key in self._objects.list(f"{self._space}/{name}/", self._key(name, after) if after else ""):
            yield int(key.rpartition("/")[2]), self._read(key)

    def _read(self, key: str) -> bytes:
        try:
            return self._objects.get(key)
        except RametError as error:
            if error.code != "store_corrupt":
                raise
            return b""  # an encrypted entry that is damaged is no entry: whoever decodes it says so

    def append(self, name: str, number: int, data: bytes) -> bool:
        return self._objects.create(self._key(name, number), data)

    def _key(self, name: str, number: int) -> str:
        return f"{self._space}/{name}/{number:020d}"
